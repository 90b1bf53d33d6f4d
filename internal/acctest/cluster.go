package acctest

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// Cluster is the API server of every cluster of a GKE, as far as it takes to
// say what runs where: it lists nodes, pods and JobSets. Tests that need more use the
// sandbox.
type Cluster struct {
	server *httptest.Server

	mu    sync.Mutex
	nodes map[string][]*corev1.Node // by node pool
	lost  map[string]int            // hosts that were taken away, by node pool
	lists int                       // of pods
	pods  []corev1.Pod
	sets  []jobset.JobSet
	deny  bool
	store *store // see Keep
}

func newCluster(t testing.TB) *Cluster {
	c := &Cluster{nodes: map[string][]*corev1.Node{}, lost: map[string]int{}}
	c.server = httptest.NewTLSServer(http.HandlerFunc(c.answer))
	t.Cleanup(c.server.Close)
	return c
}

// Start implements fakegke.ControlPlanes.
func (c *Cluster) Start(context.Context, string) (fakegke.Endpoint, error) {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	return fakegke.Endpoint{Host: strings.TrimPrefix(c.server.URL, "https://"), CA: ca}, nil
}

// Stop implements fakegke.ControlPlanes.
func (c *Cluster) Stop(context.Context, string) error { return nil }

// SetNodes implements fakegke.ControlPlanes. Its nodes are ready.
func (c *Cluster) SetNodes(_ context.Context, _, pool string, nodes []*corev1.Node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[pool] = nil
	for _, n := range nodes {
		n = n.DeepCopy()
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
		c.nodes[pool] = append(c.nodes[pool], n)
	}
	return nil
}

// Preempt takes so many hosts of a node pool away, as Compute Engine does with
// spot machines; 0 gives them back.
func (c *Cluster) Preempt(pool string, hosts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost[pool] = hosts
}

// Run lets a JobSet in namespace default have a pod on the first host of each
// node pool, and on no others; "" ends it.
func (c *Cluster) Run(job string, pools ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods = nil
	for _, p := range pools {
		if job == "" || len(c.nodes[p]) == 0 {
			continue
		}
		c.pods = append(c.pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: job + "-" + p, Namespace: "default",
				Labels: map[string]string{jobset.JobSetNameKey: job, jobset.JobIndexKey: "0"}},
			Spec:   corev1.PodSpec{NodeName: c.nodes[p][0].Name},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		})
	}
}

// Jobs lets the cluster have JobSet installed, and these JobSets; with none it
// has neither.
func (c *Cluster) Jobs(sets ...jobset.JobSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets = sets
}

// Deny lets the cluster refuse (403) whatever it is asked, or no longer.
func (c *Cluster) Deny(deny bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deny = deny
}

// Lists counts how often pods were listed.
func (c *Cluster) Lists() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists
}

func (c *Cluster) answer(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deny {
		http.Error(w, "the account may not use this cluster", http.StatusForbidden)
		return
	}
	if c.store != nil && c.store.serve(w, r) {
		return
	}
	out := c.resource(r.URL.Path)
	if c.store != nil {
		out = c.store.discover(r.URL.Path, out)
	}
	if out == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

// resource is what the cluster has at a path; nil is nothing.
func (c *Cluster) resource(path string) any {
	var out any
	switch path {
	case "/api":
		out = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "/apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		if len(c.sets) > 0 {
			v := metav1.GroupVersionForDiscovery{GroupVersion: jobset.GroupVersion.String(), Version: jobset.GroupVersion.Version}
			groups.Groups = []metav1.APIGroup{{Name: jobset.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}}
		}
		out = groups
	case "/api/v1":
		out = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{
				{Name: "nodes", Kind: "Node", Verbs: metav1.Verbs{"get", "list"}},
				{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}},
			}}
	case "/api/v1/nodes":
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}}
		for pool, nodes := range c.nodes {
			for _, n := range nodes[min(c.lost[pool], len(nodes)):] {
				list.Items = append(list.Items, *n)
			}
		}
		out = list
	case "/api/v1/pods":
		c.lists++
		out = corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: c.pods}
	}
	if len(c.sets) == 0 {
		return out
	}
	switch at := "/apis/" + jobset.GroupVersion.String(); path {
	case at:
		out = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: jobset.GroupVersion.String(),
			APIResources: []metav1.APIResource{{Name: "jobsets", Kind: "JobSet", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}}}}
	case at + "/jobsets":
		out = jobset.JobSetList{TypeMeta: metav1.TypeMeta{Kind: "JobSetList", APIVersion: jobset.GroupVersion.String()}, Items: c.sets}
	}
	return out
}
