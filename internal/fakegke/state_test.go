package fakegke

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

func TestStateSurvivesARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gke.json")
	planes := &recorder{}
	inTime(t, func(t *testing.T, api *service) {
		ctx := context.Background()
		must[*containerpb.Operation](t)(api.newPool(slicePool("up")))
		pass(3 * time.Minute)
		op := must[*containerpb.Operation](t)(api.newPool(slicePool("under-way")))
		pass(time.Minute)
		before := api.Clusters()
		if err := api.Close(); err != nil {
			t.Fatal(err)
		}
		planes.calls()
		info := must[os.FileInfo](t)(os.Stat(file))
		if info.Mode().Perm() != 0o600 {
			t.Errorf("the file has mode %v", info.Mode())
		}

		s := must[*Server](t)(New(WithTimeScale(1), WithStateFile(file), WithControlPlanes(planes)))
		defer func() { _ = s.Close() }()
		if diff := cmp.Diff(before, s.Clusters(), protocmp.Transform()); diff != "" {
			t.Error("clusters after a restart (-before +after):\n", diff)
		}
		if err := s.Resume(ctx); err != nil {
			t.Fatal(err)
		}
		if got := s.Clusters()[0].Endpoint; got != "127.0.0.1:1002" {
			t.Errorf("endpoint is %s, want the new one", got)
		}
		got := planes.calls()
		want := []string{"start " + testCluster, "system has 1 nodes", "up has 4 nodes"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("control plane after a restart (-want +got):\n", diff)
		}
		again := &service{Server: s}
		pass(80 * time.Second)
		if got := again.op(t, op.Name); got.Status != containerpb.Operation_RUNNING {
			t.Errorf("before its time the operation is %s", got.Status)
		}
		pass(10 * time.Second) // 150 s since it started, not since the restart
		if got := again.op(t, op.Name); got.Status != containerpb.Operation_DONE || got.Error != nil {
			t.Errorf("the resumed operation: %v", got)
		}
		if p := again.pool(t, "under-way"); p.Status != containerpb.NodePool_RUNNING {
			t.Errorf("the resumed pool is %s", p.Status)
		}
	}, WithStateFile(file), WithControlPlanes(planes))
}

// An update that a restart interrupts ends as it would have, and does not bring
// back the address that the API server had before.
func TestAnUpdateSurvivesARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gke.json")
	planes := &recorder{}
	inTime(t, func(t *testing.T, api *service) {
		c := must[*containerpb.Cluster](t)(api.create(t, func(c *containerpb.Cluster) {
			proto.Reset(c)
			proto.Merge(c, contractCluster())
			c.Name = "other"
		}))
		must[*containerpb.Operation](t)(api.SetLabels(context.Background(), &containerpb.SetLabelsRequest{
			Name: testParent + "/clusters/other", ResourceLabels: map[string]string{"team": "research"}, LabelFingerprint: c.LabelFingerprint,
		}))
		pass(time.Second)
		if err := api.Close(); err != nil {
			t.Fatal(err)
		}
		s := must[*Server](t)(New(WithTimeScale(1), WithStateFile(file), WithControlPlanes(planes)))
		defer func() { _ = s.Close() }()
		if err := s.Resume(context.Background()); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		after := s.Clusters()[0]
		if after.Status != containerpb.Cluster_RUNNING || after.ResourceLabels["team"] != "research" || after.LabelFingerprint == c.LabelFingerprint {
			t.Errorf("after the restart: %s, labels %v", after.Status, after.ResourceLabels)
		}
		if after.Endpoint == c.Endpoint || after.PrivateClusterConfig.PublicEndpoint != after.Endpoint {
			t.Errorf("endpoint %s, before %s; %v", after.Endpoint, c.Endpoint, after.PrivateClusterConfig)
		}
		for what, same := range map[string]bool{
			"maintenance": proto.Equal(c.MaintenancePolicy, after.MaintenancePolicy), "addons": proto.Equal(c.AddonsConfig, after.AddonsConfig),
			"ranges": proto.Equal(c.IpAllocationPolicy, after.IpAllocationPolicy), "networks": proto.Equal(c.MasterAuthorizedNetworksConfig, after.MasterAuthorizedNetworksConfig),
		} {
			if !same {
				t.Errorf("%s did not survive", what)
			}
		}
	}, WithStateFile(file), WithControlPlanes(planes))
}

func TestAControlPlaneThatDoesNotComeBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gke.json")
	inTime(t, func(t *testing.T, api *service) { _ = api.Close() }, WithStateFile(file), WithControlPlanes(&recorder{}))
	planes := &recorder{startErr: errors.New("port in use")}
	s := must[*Server](t)(New(WithStateFile(file), WithControlPlanes(planes)))
	err := s.Resume(t.Context())
	if err == nil || err.Error() != "start the control plane of "+testCluster+": port in use" {
		t.Errorf("error %v", err)
	}
	if c := s.Clusters()[0]; c.Status != containerpb.Cluster_ERROR || c.StatusMessage != "port in use" {
		t.Errorf("cluster is %s, %q", c.Status, c.StatusMessage)
	}
	planes.startErr = nil
	if err := s.Resume(t.Context()); err != nil || s.Clusters()[0].Status != containerpb.Cluster_RUNNING {
		t.Errorf("second try: %v, cluster is %s", err, s.Clusters()[0].Status)
	}
	_ = s.Close()
}

// A full disk refuses the call that needed it, and everything else stays.
func TestAWriteThatFailsIsAnInternalError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gke.json")
	var full atomic.Pointer[error]
	write := func(path string, data []byte) error {
		if err := full.Load(); err != nil {
			return *err
		}
		return replaceFile(path, data)
	}
	inTime(t, func(t *testing.T, api *service) {
		before := must[[]byte](t)(os.ReadFile(file))
		noSpace := errors.New("write gke.json: no space left on device")
		full.Store(&noSpace)
		_, err := api.newPool(slicePool("v5e"))
		wantError(t, err, codes.Internal, "An internal error has occurred: the change was not stored: write gke.json: no space left on device")
		if n := len(api.NodePools(testCluster)); n != 1 {
			t.Errorf("the refused pool exists: %d pools", n)
		}
		if diff := cmp.Diff(string(before), string(must[[]byte](t)(os.ReadFile(file)))); diff != "" {
			t.Error("the file changed:\n", diff)
		}
		full.Store(nil)
		op := must[*containerpb.Operation](t)(api.newPool(slicePool("v5e")))
		full.Store(&noSpace)
		pass(3 * time.Minute) // the operation ends while nothing can be written
		full.Store(nil)
		if got := api.op(t, op.Name); got.Status != containerpb.Operation_DONE || got.Error != nil {
			t.Errorf("operation %v", got)
		}
		must[*containerpb.Operation](t)(api.newPool(slicePool("later")))
		st := must[state](t)(load(file))
		if p := st.pools[testCluster+"/nodePools/v5e"]; p.GetStatus() != containerpb.NodePool_RUNNING {
			t.Errorf("the next write did not catch up: pool is %s", p.GetStatus())
		}
	}, WithStateFile(file), WithStateWriter(write))
}

func TestReplacingAFileLeavesTheOldOneWhenItFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := replaceFile(file, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(filepath.Join(dir, "none", "f"), []byte("two")); err == nil {
		t.Error("no error for a folder that does not exist")
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(filepath.Join(dir, "folder"), []byte("two")); err == nil {
		t.Error("no error for a folder in the file's place")
	}
	entries := must[[]os.DirEntry](t)(os.ReadDir(dir))
	if data := must[[]byte](t)(os.ReadFile(file)); string(data) != "one" || len(entries) != 2 {
		t.Errorf("file holds %q, folder %v", data, entries)
	}
}

func TestAStateFileThatCannotBeReadSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct{ content, want string }{
		"cut":     {`{"version":1,"clus`, "remove the file to start from nothing"},
		"version": {`{"version":9}`, "version 9, want 1; remove the file to start from nothing"},
		"object":  {`{"version":1,"clusters":{"x":{"name":1}}}`, "remove the file to start from nothing"},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(WithStateFile(file)); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestOldOperationsAreForgotten(t *testing.T) {
	st := newState()
	for i := range 110 {
		op := &operation{pb: &containerpb.Operation{Name: time.Unix(int64(i), 0).UTC().Format(time.RFC3339), Status: containerpb.Operation_DONE}}
		op.pb.StartTime = op.pb.Name
		st.operations[op.pb.Name] = op
	}
	st.operations["running"] = &operation{pb: &containerpb.Operation{Name: "running", Status: containerpb.Operation_RUNNING}}
	st.forget(100)
	if len(st.operations) != 101 || st.operations["running"] == nil || st.operations["1970-01-01T00:00:09Z"] != nil {
		t.Errorf("%d operations kept", len(st.operations))
	}
}

func TestNothingRunsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must[*Server](t)(New(WithTimeScale(1)))
		api := &service{Server: s}
		must[*containerpb.Operation](t)(api.CreateCluster(t.Context(), &containerpb.CreateClusterRequest{Parent: testParent, Cluster: cluster("train")}))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour) // a goroutine left behind would fail the test
		if c := s.Clusters()[0]; c.Status != containerpb.Cluster_PROVISIONING {
			t.Errorf("cluster is %s", c.Status)
		}
	})
}
