package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
	"google.golang.org/api/option"
)

const parent = "projects/sandbox/locations/us-west4-a"

// start runs a sandbox without control planes until the test ends.
func start(t *testing.T, opts ...Option) *Sandbox {
	t.Helper()
	s, err := Start(t.Context(), append([]Option{WithoutControlPlanes(), WithTimeScale(0)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Sandbox) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// client is Google's own client, configured by what Env says.
func client(t *testing.T, s *Sandbox) *container.ClusterManagerClient {
	t.Helper()
	env := map[string]string{}
	for _, kv := range s.Env() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	hc := oauth2.NewClient(t.Context(), oauth2.StaticTokenSource(&oauth2.Token{AccessToken: env["GOOGLE_OAUTH_ACCESS_TOKEN"]}))
	c, err := container.NewClusterManagerRESTClient(t.Context(), option.WithEndpoint(env["TPU_GKE_ENDPOINT"]), option.WithHTTPClient(hc))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func createCluster(t *testing.T, c *container.ClusterManagerClient, name string) {
	t.Helper()
	op, err := c.CreateCluster(t.Context(), &containerpb.CreateClusterRequest{Parent: parent, Cluster: &containerpb.Cluster{
		Name: name,
		NodePools: []*containerpb.NodePool{{
			Name: "system", InitialNodeCount: 2, Config: &containerpb.NodeConfig{MachineType: "e2-standard-8"},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, c, op)
}

func await(t *testing.T, c *container.ClusterManagerClient, op *containerpb.Operation) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for op.Status != containerpb.Operation_DONE {
		if time.Now().After(deadline) {
			t.Fatalf("operation %s is still %s", op.Name, op.Status)
		}
		time.Sleep(10 * time.Millisecond) // a server that is not ours to wake us
		var err error
		if op, err = c.GetOperation(t.Context(), &containerpb.GetOperationRequest{Name: parent + "/operations/" + op.Name}); err != nil {
			t.Fatal(err)
		}
	}
	if op.Error != nil {
		t.Fatalf("operation %s failed: %s", op.Name, op.Error.Message)
	}
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there (%v)", path, err)
	}
}

func TestATemporarySandboxLeavesNothing(t *testing.T) {
	s := start(t)
	if _, err := os.Stat(s.Dir()); err != nil {
		t.Fatal(err)
	}
	stop(t, s)
	gone(t, s.Dir())
	// Another program may have the port by now, but not with this token.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Endpoint()+statusPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Token())
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Errorf("%s still answers", s.Endpoint())
		}
	}
}

func TestStateAddressAndTokenSurviveAStop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "box")
	s := start(t, WithDir(dir))
	createCluster(t, client(t, s), "kept")
	before := s.Env()
	stop(t, s)

	s = start(t, WithDir(dir))
	if diff := cmp.Diff(before, s.Env()); diff != "" {
		t.Errorf("the environment changed (-before +after):\n%s", diff)
	}
	want := []string{parent + "/clusters/kept", parent + "/clusters/kept/nodePools/system"}
	if diff := cmp.Diff(want, s.Remaining()); diff != "" {
		t.Errorf("remaining (-want +got):\n%s", diff)
	}
	if s.Empty() {
		t.Error("Empty, with a cluster")
	}
}

func TestOneSandboxAFolderManyAMachine(t *testing.T) {
	dir := t.TempDir()
	first := start(t, WithDir(dir))
	_, err := Start(t.Context(), WithDir(dir), WithoutControlPlanes())
	var running *RunningError
	if !errors.As(err, &running) || running.Pid != os.Getpid() || running.Dir != dir {
		t.Errorf("got %v, want that process %d runs one in %s", err, os.Getpid(), dir)
	}
	if pid, ok := Running(dir); !ok || pid != os.Getpid() {
		t.Errorf("Running = %d, %v after the refusal", pid, ok)
	}
	second := start(t)
	if first.Endpoint() == second.Endpoint() || first.Token() == second.Token() {
		t.Error("two sandboxes share an address or a token")
	}
}

func TestAPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	dir := filepath.Join(t.TempDir(), "new", "box")
	_, err = Start(t.Context(), WithDir(dir), WithPort(port), WithoutControlPlanes())
	if err == nil || !strings.Contains(err.Error(), "is in use by another program") || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("got %v, want one clear line", err)
	}
	gone(t, dir)
}

func TestThePortOfLastTimeIsTakenByAnother(t *testing.T) {
	dir := t.TempDir()
	s := start(t, WithDir(dir))
	before := s.Endpoint()
	stop(t, s)
	l, err := net.Listen("tcp", strings.TrimPrefix(before, "http://"))
	switch {
	case err == nil:
		defer l.Close()
	case !errors.Is(err, syscall.EADDRINUSE): // else another has it already
		t.Fatal(err)
	}
	if s := start(t, WithDir(dir)); s.Endpoint() == before {
		t.Errorf("two listeners on %s", before)
	}
}

func TestAForeignFolderIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), WithDir(dir), WithoutControlPlanes()); err == nil || !strings.Contains(err.Error(), "not a sandbox's") {
		t.Errorf("got %v, want a refusal", err)
	}
	if g, err := Down(t.Context(), dir, false); err != nil || g.Found {
		t.Errorf("Down = %+v, %v, want that there is no sandbox", g, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v), want what it held", entries, err)
	}
}

func TestAFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if _, err := Start(t.Context(), WithDir(dir), WithoutControlPlanes()); err == nil || !strings.Contains(err.Error(), "use another folder") {
			t.Errorf("%s: got %v, want one message with a way out", dir, err)
		}
	}
}

func TestABrokenStateFileIsNamedAndKept(t *testing.T) {
	dir := t.TempDir()
	stop(t, start(t, WithDir(dir)))
	state := filepath.Join(dir, fakeStateFile)
	if err := os.WriteFile(state, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), WithDir(dir), WithoutControlPlanes()); err == nil || !strings.Contains(err.Error(), state) {
		t.Errorf("got %v, want the file's name", err)
	}
	if _, err := os.Stat(state); err != nil {
		t.Error(err)
	}
	if _, running := Running(dir); running {
		t.Error("the lock is held after a start that failed")
	}
}

func TestACancelledStartLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("Ctrl-C")
	cancel(why)
	dir := filepath.Join(t.TempDir(), "box")
	if _, err := Start(ctx, WithDir(dir), WithoutControlPlanes()); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
	gone(t, dir)
}

func TestSecretsAreTheOwnersAlone(t *testing.T) {
	s := start(t, WithDir(t.TempDir()))
	createCluster(t, client(t, s), "c")
	err := filepath.WalkDir(s.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %s, want it readable by its owner only", path, fi.Mode())
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(string(b), s.Token()) && d.Name() != tokenFile {
			t.Errorf("%s holds the token", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStatusNeedsTheToken(t *testing.T) {
	s := start(t)
	for _, auth := range []string{"", "Bearer wrong", s.Token()} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Endpoint()+statusPath, nil)
		req.Header.Set("Authorization", auth)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("Authorization %q: %s, want 401", auth, resp.Status)
		}
	}
}

func TestStatusOfAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	var stopped *NotRunningError
	if _, err := StatusOf(t.Context(), dir); !errors.As(err, &stopped) {
		t.Errorf("got %v, want *NotRunningError", err)
	}
	s := start(t, WithDir(dir))
	createCluster(t, client(t, s), "c")
	st, err := StatusOf(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Cluster{{
		Path: parent + "/clusters/c", Status: "RUNNING", Endpoint: st.Clusters[0].Endpoint,
		NodePools: []NodePool{{Name: "system", Status: "RUNNING", MachineType: "e2-standard-8", Nodes: 2}},
	}}
	if diff := cmp.Diff(want, st.Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if st.Pid != os.Getpid() || st.Endpoint != s.Endpoint() {
		t.Errorf("got %+v", st)
	}
	stop(t, s)
	if _, err := EnvironmentOf(dir); !errors.As(err, &stopped) {
		t.Errorf("after Stop: got %v, want *NotRunningError", err)
	}
}

func TestDownRemovesWhatAKilledSandboxLeft(t *testing.T) {
	dir := t.TempDir()
	stop(t, start(t, WithDir(dir))) // on disk, a stopped one and a killed one look alike
	g, err := Down(t.Context(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Gone{Dir: dir, Found: true, Kept: true}, g); diff != "" {
		t.Errorf("Down, keeping (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, fakeStateFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Down(t.Context(), dir, false); err != nil {
		t.Fatal(err)
	}
	gone(t, dir)
	if g, err := Down(t.Context(), dir, false); err != nil || g.Found {
		t.Errorf("Down of nothing = %+v, %v", g, err)
	}
}
