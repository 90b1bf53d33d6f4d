package slices

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

var main = gke.ClusterName{Project: "acc-project", Location: "us-west4-a", Cluster: "main"}

// withSlices is a cluster with a pool of two slices, v5e-0 and v5e-1, and a
// slice that nobody manages, byhand.
func withSlices(t *testing.T) *acctest.GKE {
	t.Helper()
	g := acctest.NewGKE(t)
	t.Setenv(target.EndpointVariable, g.Endpoint)
	t.Setenv("GOOGLE_OAUTH_ACCESS_TOKEN", acctest.Token)
	c, err := gke.New(gke.Config{Endpoint: g.Endpoint, PollInterval: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	shape, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	err = c.CreateCluster(t.Context(), main, &containerpb.Cluster{Name: main.Cluster, InitialNodeCount: 1,
		IpAllocationPolicy: &containerpb.IPAllocationPolicy{UseIpAliases: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pool := gke.SlicePool{Cluster: main, Name: "v5e", Owner: "team-a", Shape: shape, Count: 2, Zone: main.Location,
		ResourceLabels: map[string]string{"team": "a"}, NodeLabels: map[string]string{"tier": "gold"},
		Taints: []gke.Taint{{Key: "k", Value: "v", Effect: "NoSchedule"}}, Overrides: `{"config": {"linuxNodeConfig": {"sysctls": {"net.core.somaxconn": "2048"}}}}`}
	if _, err := c.ApplySlicePool(t.Context(), pool, gke.SlicePoolRun{}); err != nil {
		t.Fatal(err)
	}
	err = c.CreateNodePool(t.Context(), main, &containerpb.NodePool{Name: "byhand", InitialNodeCount: 4, Locations: []string{main.Location},
		Config:          &containerpb.NodeConfig{MachineType: shape.MachineType},
		PlacementPolicy: &containerpb.NodePool_PlacementPolicy{Type: containerpb.NodePool_PlacementPolicy_COMPACT, TpuTopology: "4x4"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// again runs the command, with what the user types.
func again(typed string, args ...string) (string, error) {
	s, _, said := clitest.Streams(0, false)
	s.In = strings.NewReader(typed)
	err := clitest.Run(New(s), append([]string{"recreate", "--cluster", main.String()}, args...)...)
	return said.String(), err
}

// poolNow is what GKE says of a node pool, without what a new one has anew.
func poolNow(t *testing.T, g *acctest.GKE, name string) *containerpb.NodePool {
	t.Helper()
	for _, np := range g.NodePools(main.String()) {
		if np.Name == name {
			delete(np.Config.ResourceLabels, gke.LabelCreated)
			np.Etag, np.NetworkConfig.PodIpv4CidrBlock = "", "" // the block is that of the range
			return np
		}
	}
	return nil
}

// A slice comes back as it was, also out of an error; the others are left alone.
func TestRecreate(t *testing.T) {
	g := withSlices(t)
	was, other := poolNow(t, g, "v5e-1"), poolNow(t, g, "v5e-0")
	if !g.Break(main.NodePool("v5e-1"), 3, fakegke.OutOfStock) {
		t.Fatal("there is no v5e-1")
	}
	before := g.Calls()
	said, err := again("yes\n", "v5e-1", "v5e-1")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "recreate.txt", said)
	if diff := cmp.Diff(was, poolNow(t, g, "v5e-1"), protocmp.Transform()); diff != "" {
		t.Errorf("v5e-1 (-was +is):\n%s", diff)
	}
	if diff := cmp.Diff(other, poolNow(t, g, "v5e-0"), protocmp.Transform()); diff != "" {
		t.Errorf("v5e-0 (-was +is):\n%s", diff)
	}
	after := g.Calls()
	for method, want := range map[string]int{"DeleteNodePool": 1, "CreateNodePool": 1} {
		if n := after[method] - before[method]; n != want {
			t.Errorf("%d of %s, want %d", n, method, want)
		}
	}
}

// What is refused is refused in words, and before anything is done.
func TestRecreateRefuses(t *testing.T) {
	g := withSlices(t)
	g.Cluster.Run("train", "v5e-0")
	for name, tt := range map[string]struct {
		typed string
		args  []string
		want  string
		code  int
	}{
		"a busy slice":        {"yes\n", []string{"v5e-1", "v5e-0"}, "v5e-0 runs default/train[0]\nWait for the end of the jobs, or give --force", exit.Failure},
		"another answer":      {"y\n", []string{"v5e-1"}, "nothing was done: the answer was not yes", exit.Usage},
		"no answer":           {"", []string{"v5e-1"}, "nothing was done: the answer was not yes (--yes does not ask)", exit.Usage},
		"an unknown slice":    {"", []string{"v5e-7", "--yes"}, "the cluster's slices are byhand, v5e-0, v5e-1", exit.Failure},
		"a CPU pool":          {"", []string{"default-pool", "--yes"}, "the cluster's slices are byhand, v5e-0, v5e-1", exit.Failure},
		"nobody's slice":      {"", []string{"byhand", "--yes"}, "no tpu_slice_pool made it", exit.Failure},
		"a kubeconfig":        {"", []string{"v5e-1", "--yes", "--kube-context", "x"}, "give --cluster instead", exit.Usage},
		"no slice":            {"", nil, "name the slices to recreate", exit.Usage},
		"one of them unknown": {"", []string{"v5e-1", "v5e-8", "--yes"}, "v5e-8", exit.Failure},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := again(tt.typed, tt.args...); err == nil || !strings.Contains(strings.Join(strings.Fields(err.Error()), " "), strings.Join(strings.Fields(tt.want), " ")) || exit.Code(err) != tt.code {
				t.Errorf("got %v with code %d, want %q with %d", err, exit.Code(err), tt.want, tt.code)
			}
		})
	}
	if n := g.Calls()["DeleteNodePool"]; n != 0 {
		t.Errorf("%d deletions", n)
	}
	if said, err := again("", "v5e-0", "--yes", "--force"); err != nil || !strings.Contains(said, "runs default/train[0]") {
		t.Errorf("by force: %v\n%s", err, said)
	}
}

// When the slice does not come back, the error says why and how it goes on;
// asked for once more, what is missing is not there to recreate.
func TestRecreateThatFails(t *testing.T) {
	g := withSlices(t)
	defer g.Fail(fakegke.Fault{Method: "CreateNodePool", Code: codes.PermissionDenied, Message: "no"})()
	_, err := again("", "v5e-1", "--yes")
	if err == nil || !strings.Contains(err.Error(), "creating node pool") || !strings.Contains(err.Error(), "the next terraform apply of the slice pools makes what is missing") {
		t.Errorf("got %v", err)
	}
	if _, err = again("", "v5e-1", "--yes"); err == nil || !strings.Contains(err.Error(), "the cluster's slices are byhand, v5e-0") {
		t.Errorf("then: %v", err)
	}
}
