package training

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// PoolUse is a node pool of TPU hosts, which is one slice, as its cluster sees
// it. The zero value is a node pool that has no host and runs nothing.
type PoolUse struct {
	Hosts      int // nodes that joined the cluster
	HostsReady int
	// Accelerator, Topology and Spot are what the nodes' labels say; Slice is
	// what the catalogue knows by them, the zero value for a shape it has not.
	Accelerator, Topology string
	Slice                 accelerator.Slice
	Spot                  bool
	// Jobs are those with pods on the hosts, by namespace, name and slice.
	// There is more than one only when jobs share a slice's hosts.
	Jobs []Occupant
}

// Busy tells whether taking the node pool away would kill a job.
func (u PoolUse) Busy() bool { return len(u.Jobs) > 0 }

// Occupant is one slice of a job where it runs.
type Occupant struct {
	Namespace, Name string // of the JobSet
	Slice           int    // index among the slices of the job
	Hosts           int    // its pods in this node pool that are not finished
}

// String is namespace/name[slice].
func (o Occupant) String() string { return fmt.Sprintf("%s/%s[%d]", o.Namespace, o.Name, o.Slice) }

// occupancyPage bounds what one answer holds: a pod takes several kilobytes,
// and a large cluster runs tens of thousands of them.
const occupancyPage = 500

// Occupancy reads which TPU node pools of a cluster run which jobs, by name of
// the node pool. Only TPU nodes are read and, when there are any, only pods of
// JobSets that sit on a node and are not finished. A pod that is being deleted
// still counts: it may be writing its last checkpoint.
func Occupancy(ctx context.Context, c *kube.Client) (map[string]PoolUse, error) {
	uses, poolOf, err := tpuNodes(ctx, c)
	if err != nil || len(poolOf) == 0 {
		return uses, err
	}
	// Hosts by node pool and slice of a job.
	hosts := map[string]map[Occupant]int{}
	live := fields.AndSelectors(
		fields.OneTermNotEqualSelector("spec.nodeName", ""),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	)
	var pods corev1.PodList
	err = pages(ctx, c, &pods, func() {
		for i := range pods.Items {
			pod := &pods.Items[i]
			pool, ok := poolOf[pod.Spec.NodeName]
			if !ok {
				continue // a head or helper on a CPU node
			}
			index, err := strconv.Atoi(pod.Labels[jobset.JobIndexKey])
			if err != nil {
				index = 0
			}
			if hosts[pool] == nil {
				hosts[pool] = map[Occupant]int{}
			}
			hosts[pool][Occupant{Namespace: pod.Namespace, Name: pod.Labels[jobset.JobSetNameKey], Slice: index}]++
		}
	}, client.HasLabels{jobset.JobSetNameKey}, client.MatchingFieldsSelector{Selector: live})
	if err != nil {
		return nil, err
	}
	for pool, occupants := range hosts {
		use := uses[pool]
		for o, n := range occupants {
			o.Hosts = n
			use.Jobs = append(use.Jobs, o)
		}
		slices.SortFunc(use.Jobs, func(a, b Occupant) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Slice, b.Slice))
		})
		uses[pool] = use
	}
	return uses, nil
}

// tpuNodes counts the TPU hosts of each node pool, and tells the node pool of
// each host.
func tpuNodes(ctx context.Context, c *kube.Client) (uses map[string]PoolUse, poolOf map[string]string, err error) {
	uses, poolOf = map[string]PoolUse{}, map[string]string{}
	var nodes corev1.NodeList
	err = pages(ctx, c, &nodes, func() {
		for i := range nodes.Items {
			node := &nodes.Items[i]
			pool := node.Labels[accelerator.LabelNodePool]
			if pool == "" {
				continue // not made by GKE
			}
			poolOf[node.Name] = pool
			use := uses[pool]
			use.Hosts++
			if hostReady(node) {
				use.HostsReady++
			}
			if use.Accelerator == "" {
				use.Accelerator, use.Topology = node.Labels[accelerator.LabelAccelerator], node.Labels[accelerator.LabelTopology]
				use.Slice, _ = queue.SliceOf(node.Labels)
				use.Spot = node.Labels[accelerator.LabelSpot] == "true"
			}
			uses[pool] = use
		}
	}, client.HasLabels{accelerator.LabelAccelerator})
	return uses, poolOf, err
}

// hostReady tells whether the kubelet reports the node ready and nobody has
// cordoned it: a pod can be placed there.
func hostReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && !node.Spec.Unschedulable
		}
	}
	return false
}

// pages lists page by page and calls each after every one. Every cluster has
// nodes and pods: unlike list, it takes no answer for an empty one.
func pages(ctx context.Context, c *kube.Client, into client.ObjectList, each func(), opts ...client.ListOption) error {
	token := ""
	for {
		if err := c.List(ctx, into, append(slices.Clone(opts), client.Limit(occupancyPage), client.Continue(token))...); err != nil {
			return &kube.Error{Verb: "listing", Kind: kube.Plural(into), Key: "of every slice", Cluster: c.Name, Err: err}
		}
		each()
		if token = into.GetContinue(); token == "" {
			return nil
		}
	}
}
