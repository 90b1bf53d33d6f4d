package sandbox

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// A cluster outlives its sandbox: the objects in it, its nodes, its place in
// the kubeconfig; and once it is deleted, nothing of it is left.
func TestARealClusterSurvivesARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "box")
	run := func() *Sandbox {
		s, err := Start(t.Context(), WithDir(dir), WithTimeScale(0))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop(t, s) })
		return s
	}
	s := run()
	createCluster(t, client(t, s), "real")
	before := nodeNames(t, s)
	if len(before) != 2 {
		t.Fatalf("nodes %v, want 2", before)
	}
	for _, p := range s.Status().Processes {
		if !slices.ContainsFunc(s.Status().Clusters, func(c Cluster) bool { return c.Path == p.Cluster }) {
			t.Errorf("process %s belongs to %q, which is no cluster", p.Name, p.Cluster)
		}
	}
	if n := len(s.Status().Processes); n < 5 {
		t.Errorf("%d processes, want the control plane's 5", n)
	}
	disruptHosts(t, dir, slices.Sorted(maps.Keys(before))[0])
	began := time.Now()
	stop(t, s)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("stopping took %s", took)
	}
	if left := process.List(dir); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}

	s = run()
	for name, uid := range nodeNames(t, s) {
		if before[name] != uid {
			t.Errorf("node %s is another one than before the restart", name)
		}
	}
	c := client(t, s)
	op, err := c.DeleteCluster(t.Context(), &containerpb.DeleteClusterRequest{Name: parent + "/clusters/real"})
	if err != nil {
		t.Fatal(err)
	}
	await(t, c, op)
	if !s.Empty() {
		t.Errorf("remaining: %v", s.Remaining())
	}
	if left := process.List(dir); len(left) > 0 {
		t.Errorf("still running after the delete: %v", left)
	}
	gone(t, filepath.Join(dir, clustersFolder, "sandbox_us-west4-a_real"))
	gone(t, filepath.Join(dir, kubeconfigFile))
}

// disruptHosts takes a host away and brings it back, by what the command line
// calls.
func disruptHosts(t *testing.T, dir, host string) {
	t.Helper()
	want := []Disrupted{{parent + "/clusters/real", host, "taint"}}
	got, err := Disrupt(t.Context(), dir, Disruption{Kind: "taint", HostOf: HostOf{Cluster: "real", Host: host}})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("disrupted: %v (-want +got):\n%s", err, diff)
	}
	got, err = DisruptedHosts(t.Context(), dir)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("listed: %v (-want +got):\n%s", err, diff)
	}
	got, err = Mend(t.Context(), dir)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("brought back: %v (-want +got):\n%s", err, diff)
	}
	if got, err = DisruptedHosts(t.Context(), dir); len(got) != 0 || err != nil {
		t.Errorf("listed at the end: %v, %v", got, err)
	}
	for want, d := range map[string]Disruption{
		"there is no cluster other":    {Kind: "evict", HostOf: HostOf{Cluster: "other", Host: host}},
		"there is no such host":        {Kind: "evict", HostOf: HostOf{Host: "nowhere"}},
		`"explode" is no disruption`:   {Kind: "explode", HostOf: HostOf{Host: host}},
		"no pod of it runs in slice 1": {Kind: "evict", HostOf: HostOf{Namespace: "default", Job: "none", Slice: 1, Index: -1}},
	} {
		if _, err := Disrupt(t.Context(), dir, d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := Mend(t.Context(), dir, "nowhere"); err == nil || !strings.Contains(err.Error(), "nothing lasts on host nowhere") {
		t.Errorf("mending nothing: %v", err)
	}
	if _, err := EndPrograms(t.Context(), dir, Exit{Code: 3, HostOf: HostOf{Namespace: "default", Job: "none", Slice: -1, Index: -1}}); err == nil || !strings.Contains(err.Error(), "no pod of it runs") {
		t.Errorf("ending nothing: %v", err)
	}
}

// nodeNames reads the nodes (name -> uid) as a user's kubectl would.
func nodeNames(t *testing.T, s *Sandbox) map[string]string {
	t.Helper()
	env, err := EnvironmentOf(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", env.Map()["KUBECONFIG"])
	if err != nil {
		t.Fatal(err)
	}
	k, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	list, err := k.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, n := range list.Items {
		out[n.Name] = string(n.UID)
	}
	return out
}
