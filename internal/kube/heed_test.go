package kube_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// deaf answers after a while, whatever becomes of the request's context.
type deaf time.Duration

func (d deaf) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(time.Duration(d))
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// A request ends with its context also where what carries it waits for
// something else.
func TestHeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://c", nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		resp, err := kube.Heed(deaf(time.Hour)).RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		resp, err = kube.Heed(deaf(time.Millisecond)).RoundTrip(req.WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		time.Sleep(time.Hour) // those that nobody waits for end with the bubble
	})
}

// So do calls while a cluster does not say what it serves.
func TestCallsEndWithTheirContext(t *testing.T) {
	asked, over := make(chan struct{}, 16), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(over)
	for name, call := range map[string]func(context.Context, *kube.Client) error{
		"get": func(ctx context.Context, c *kube.Client) error {
			return c.Get(ctx, client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.Pod{})
		},
		"list":   func(ctx context.Context, c *kube.Client) error { return c.List(ctx, &corev1.PodList{}) },
		"create": func(ctx context.Context, c *kube.Client) error { return c.Create(ctx, &corev1.Pod{}) },
		"delete": func(ctx context.Context, c *kube.Client) error { return c.Delete(ctx, &corev1.Pod{}) },
	} {
		c, err := kube.ForConfig("c", &rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- call(ctx, c) }()
		<-asked
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || !errors.As(err, new(*kube.UnsentError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
