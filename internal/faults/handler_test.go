package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// behind is an API that counts what reaches it: each answer is its number.
func behind(t *testing.T, s *Set) (url string, reached *atomic.Int32) {
	t.Helper()
	reached = &atomic.Int32{}
	server := httptest.NewServer(s.GKE(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, reached.Add(1))
	})))
	t.Cleanup(server.Close)
	return server.URL + "/v1/projects/p/locations/z/clusters", reached
}

// once sends one request on a connection of its own: Go's client sends again
// what it lost on a connection that was used before.
func once(ctx context.Context, method, url string) (int, http.Header, string, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, nil, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b), err
}

func TestWhatAFaultDoes(t *testing.T) {
	for _, c := range []struct {
		rule    Rule
		code    int
		header  string
		body    string
		err     error
		effects int32
	}{
		{Rule{Kind: Status, Code: 503}, 503, "", `"status":"UNAVAILABLE"`, nil, 0},
		{Rule{Kind: Status, Code: 429, RetryAfter: Duration(1500 * time.Millisecond)}, 429, "2", "Quota exceeded", nil, 0},
		{Rule{Kind: Status, Code: 400, Message: "no, thanks"}, 400, "", `"message":"no, thanks"`, nil, 0},
		{Rule{Kind: StatusAfter, Code: 500}, 500, "", `"status":"INTERNAL"`, nil, 1},
		{Rule{Kind: Reset}, 0, "", "", syscall.ECONNRESET, 0},
		{Rule{Kind: ResetAfter}, 0, "", "", syscall.ECONNRESET, 1},
		{Rule{Kind: Lost, Delay: Duration(time.Millisecond)}, 0, "", "", io.EOF, 1},
		{Rule{Kind: Slow, Delay: Duration(time.Millisecond)}, 200, "", "1", nil, 1},
		{Rule{Kind: Stale}, 200, "", "1", nil, 1}, // nothing was asked before
	} {
		t.Run(string(c.rule.Kind), func(t *testing.T) {
			var s Set
			url, reached := behind(t, &s)
			if _, err := s.Add(c.rule); err != nil {
				t.Fatal(err)
			}
			code, header, body, err := once(t.Context(), http.MethodGet, url)
			if code != c.code || header.Get("Retry-After") != c.header || !strings.Contains(body, c.body) {
				t.Errorf("answered %d %q %q, want %d %q %q", code, header.Get("Retry-After"), body, c.code, c.header, c.body)
			}
			if c.err != nil && !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if got := reached.Load(); got != c.effects {
				t.Errorf("took effect %d times, want %d", got, c.effects)
			}
		})
	}
}

// A caller that waits for a reply that is lost waits until it gives up.
func TestALostReplyHasNoEnd(t *testing.T) {
	var s Set
	url, reached := behind(t, &s)
	if _, err := s.Add(Rule{Kind: Lost}); err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	defer s.OnCall(func(_ Call, at Stage) bool {
		if at == After {
			giveUp()
		}
		return false
	})()
	if _, _, _, err := once(ctx, http.MethodPost, url); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if reached.Load() != 1 {
		t.Error("it took no effect")
	}
}

func TestStaleReads(t *testing.T) {
	var s Set
	url, _ := behind(t, &s)
	rule, err := s.Add(Rule{Kind: Stale, Call: 4}, Rule{Kind: Stale, Call: 5}, Rule{Kind: Stale, Call: 99})
	if err != nil || len(rule) != 3 {
		t.Fatal(err)
	}
	var got []string
	for range 6 {
		_, _, body, err := once(t.Context(), http.MethodGet, url)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, body)
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "2", "2", "4"}, got); diff != "" {
		t.Error(diff)
	}
}

// What was never answered before cannot be stale: that is no hit.
func TestTheFirstReadIsNotStale(t *testing.T) {
	var s Set
	url, _ := behind(t, &s)
	if _, err := s.Add(Rule{Kind: Stale, Times: 2}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"1", "1", "1", "2"} {
		_, _, body, err := once(t.Context(), http.MethodGet, url)
		if err != nil || body != want {
			t.Errorf("read %d: %q, %v, want %q", i+1, body, err, want)
		}
	}
	if r := s.List()[0]; r.Seen != 4 || r.Hits != 2 {
		t.Errorf("seen %d, hit %d, want 4 and 2", r.Seen, r.Hits)
	}
}

// A hook sees each call at each stage, in their order, and cuts it off where it
// likes.
func TestHooks(t *testing.T) {
	for _, cutAt := range []Stage{Before, After, Replied, ""} {
		var s Set
		url, reached := behind(t, &s)
		seen := make(chan string, 10)
		remove := s.OnCall(func(c Call, at Stage) bool {
			seen <- fmt.Sprintf("%s %d %s", c.Method, c.N, at)
			return at == cutAt
		})
		_, _, _, err := once(t.Context(), http.MethodPost, url)
		want := map[Stage][]string{Before: {"before"}, After: {"before", "after"}, Replied: {"before", "after", "replied"}, "": {"before", "after", "replied"}}[cutAt]
		for _, stage := range want {
			if got := <-seen; got != "CreateCluster 1 "+stage {
				t.Errorf("cut at %q: saw %q, want %q", cutAt, got, stage)
			}
		}
		if wantErr := cutAt == Before || cutAt == After; wantErr != errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("cut at %q: %v", cutAt, err)
		}
		if effect := reached.Load() == 1; effect == (cutAt == Before) {
			t.Errorf("cut at %q: effect %v", cutAt, effect)
		}
		remove()
		if _, _, _, err := once(t.Context(), http.MethodPost, url); err != nil {
			t.Errorf("after the hook is gone: %v", err)
		}
	}
}

// gRPC callers meet the same rules: a status as a status, trailers of a reply
// that was held back where they belong.
func TestGRPC(t *testing.T) {
	fake, err := fakegke.New(fakegke.WithTimeScale(0))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	var s Set
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s.GKE(fake), Protocols: &protocols}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := containerpb.NewClusterManagerClient(conn)
	req := &containerpb.ListClustersRequest{Parent: "projects/p/locations/-"}

	if _, err := s.Add(Rule{Kind: Status, Code: 503, Call: 1, Method: "ListClusters"}, Rule{Kind: ResetAfter, Call: 2}, Rule{Kind: Slow, Delay: 1, Call: 3}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []codes.Code{codes.Unavailable, codes.Internal, codes.OK, codes.OK} {
		if _, err := client.ListClusters(t.Context(), req); status.Code(err) != want {
			t.Errorf("call %d: %v, want %s", i+1, err, want)
		}
	}
}
