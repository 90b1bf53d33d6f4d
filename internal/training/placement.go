package training

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// Placement says which slices of its kind a job takes, where there are several
// sorts, or where a node pool has to be made for it.
type Placement struct {
	// Provisioning and Reservation restrict it to one capacity model; "" = any.
	Provisioning queue.Provisioning `json:",omitempty"`
	Reservation  string             `json:",omitempty"`
	// Policy is the workload policy that multi-host tpu7x slices are placed by,
	// as their nodes carry its name.
	Policy string `json:",omitempty"`
	// Pool is the type name of the slices that node pools are made of, where the
	// job's are parts of them (v6e) or formed of several (tpu7x).
	Pool string `json:",omitempty"`
}

// PoolSlice is the slice that a node pool is made of: the job's own, but for parts
// and for what is formed of cubes.
func (s Spec) PoolSlice() accelerator.Slice {
	if s.Placement.Pool == "" {
		return s.Slice
	}
	pool, err := accelerator.Resolve(s.Placement.Pool)
	if err != nil { // Validate says so
		return s.Slice
	}
	return pool
}

// whole tells whether a slice of the job is a node pool of its own.
func (s Spec) whole() bool { return s.Placement.Pool == "" }

// NodeSelector is what the nodes of the job's slices carry.
func (s Spec) NodeSelector() map[string]string {
	flavor := queue.Flavor{Slice: s.PoolSlice(), Provisioning: s.Placement.Provisioning, Reservation: s.Placement.Reservation}
	labels := flavor.Labels()
	if s.Placement.Policy != "" {
		labels[accelerator.LabelPlacementPolicy] = s.Placement.Policy
	}
	return labels
}

// tolerations of the taints on those nodes.
func (s Spec) tolerations() []corev1.Toleration {
	if s.Placement.Provisioning == queue.AnyProvisioning {
		return []corev1.Toleration{{Key: accelerator.TaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	}
	return queue.Flavor{Slice: s.PoolSlice(), Provisioning: s.Placement.Provisioning}.AddedTolerations()
}

// topologyAnnotations ask Kueue for parts of slices, or for cubes to form them
// of. A job of one part needs all its pods in one; of several, as many pods in
// each as it has hosts. Cubes are taken whole, in one block: GKE's controller
// for them asks for the same.
func (s Spec) topologyAnnotations() map[string]string {
	if s.whole() {
		return nil
	}
	part := s.Slice.Topology
	asks := map[string]string{accelerator.AnnotationSliceTopology: part.String()}
	switch {
	case s.Slice.Cubes() > 0:
		asks[kueue.PodSetRequiredTopologyAnnotation] = accelerator.LabelBlock
		asks[kueue.PodSetSliceRequiredTopologyAnnotation] = accelerator.LabelCube
		asks[kueue.PodSetSliceSizeAnnotation] = strconv.Itoa(s.Slice.Hosts / s.Slice.Cubes())
	case s.Slices == 1:
		asks[kueue.PodSetRequiredTopologyAnnotation] = accelerator.SubSliceLabel(part)
	default:
		asks[kueue.PodSetSliceRequiredTopologyAnnotation] = accelerator.SubSliceLabel(part)
		asks[kueue.PodSetSliceSizeAnnotation] = strconv.Itoa(s.Slice.Hosts)
	}
	return asks
}

// place puts a pod of the job's slices where they are.
func (s Spec) place(t *corev1.PodTemplateSpec) {
	t.Spec.NodeSelector = s.NodeSelector()
	t.Spec.Tolerations = append(s.tolerations(), t.Spec.Tolerations...)
	asks := s.topologyAnnotations()
	if len(asks) == 0 {
		return
	}
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	maps.Copy(t.Annotations, asks)
}

// workloadName is how Kueue's Workload of a job is called, with its namespace:
// GKE names the slices that it forms after it.
func (s Spec) workloadName() string { return s.Namespace + "-jobset-" + s.Name + "-abcde" }

func (s Spec) validatePlacement(add report) {
	p := s.Placement
	if p.Provisioning != queue.AnyProvisioning && !slices.Contains(queue.Provisionings, string(p.Provisioning)) {
		add("placement.provisioning", "%q; want %s", p.Provisioning, strings.Join(queue.Provisionings, ", "))
	} else if err := p.Provisioning.Check(p.Reservation); err != nil {
		field := "placement.reservation"
		if p.Reservation == "" {
			field = "placement.provisioning"
		}
		add(field, "%v", err)
	}
	if p.Provisioning == queue.FlexStart && !s.Slice.FlexStart {
		add("placement.provisioning", "%s is not offered by flex-start", s.Slice.Generation)
	}
	if p.Policy != "" {
		for _, problem := range naming.LabelValue(p.Policy) {
			add("placement.policy", "%q: nodes carry the name as a label: %s", p.Policy, problem)
		}
		if s.PoolSlice().Placement != accelerator.PlacementWorkloadPolicy {
			add("placement.policy", "slices of %s are not placed by a workload policy; leave it out", s.PoolSlice().Name)
		}
	}
	if p.Pool != "" {
		s.validatePool(func(format string, args ...any) { add("placement.pool_accelerator", format, args...) })
	}
	if n := s.ContainersPerHost; n != 0 && n != 1 && n != s.Slice.ContainersPerHost {
		if s.Slice.ContainersPerHost > 1 {
			add("containers_per_host", "%d; the chips of a host of %s are for 1 container, or for %d", n, s.Slice.Name, s.Slice.ContainersPerHost)
		} else {
			add("containers_per_host", "%d; the chips of a host of %s are for 1 container", n, s.Slice.Name)
		}
	}
}

func (s Spec) validatePool(add func(string, ...any)) {
	pool, err := accelerator.Resolve(s.Placement.Pool)
	switch {
	case err != nil:
		add("%v", err)
		return
	case s.Slice.Hosts < 1: // said already
		return
	case pool == s.Slice:
		add("%s is what the job's slices are by themselves; leave it out", pool.Name)
		return
	case pool.Generation != s.Slice.Generation:
		add("%s: a slice of %s cannot be made of it", pool.Name, s.Slice.Generation)
		return
	}
	if s.Slice.Generation == accelerator.TPU7x {
		s.validateCubes(pool, add)
	} else if part, err := pool.SubSlice(s.Slice.Topology); err != nil {
		add("%v", err)
		return
	} else if part.Part != s.Slice {
		add("%s on machines of %s is no part of %s, whose machines are %s", s.Slice.Topology, s.Slice.MachineType, pool.Name, pool.MachineType)
	}
	if s.Queue == "" {
		add("Kueue chooses the parts: set queue as well, and give its flavor topology_aware")
	}
	// Seen with Kueue 0.19: it admits such a job, and forgets the parts.
	if other := s.asking(); other != "" {
		add("Kueue would spread the hosts of a slice over several parts, since %s asks for cpu or memory without chips. Leave its resources out, or run on whole slices", other)
	}
}

// asking names a kind of pods that ask for cpu or memory and no chips, or "".
func (s Spec) asking() string {
	if s.Pathways != nil {
		return "the head of a Pathways job"
	}
	for _, j := range s.Jobs {
		if j.Resources != (Resources{}) {
			return "job " + j.Name
		}
	}
	return ""
}

func (s Spec) validateCubes(pool accelerator.Slice, add func(string, ...any)) {
	switch {
	case pool.Cubes() != 1:
		add("%s: slices of tpu7x are formed of cubes of 4x4x4 (tpu7x-128)", pool.Name)
	case s.Slice.Cubes() < 1:
		add("%s is smaller than a cube (4x4x4), and no part of one can be asked for", s.Slice.Topology)
	case len(s.workloadName()) > accelerator.MaxSuperSliceName:
		add("name %q has %d characters; %d fit, since the slices that GKE forms are called %s, which may have %d", s.Name, len(s.Name),
			max(len(s.Name)+accelerator.MaxSuperSliceName-len(s.workloadName()), 0), strings.TrimSuffix(s.workloadName(), "abcde")+"xxxxx", accelerator.MaxSuperSliceName)
	}
}

// containersPerHost is the number of containers that share a host's chips.
func (s Spec) containersPerHost() int {
	if s.ContainersPerHost > 0 {
		return s.ContainersPerHost
	}
	return max(s.Slice.ContainersPerHost, 1)
}

// topologyOf is the topology of the slices that a pod is for: parts, and slices
// formed of cubes, say it by annotation.
func topologyOf(t *corev1.PodTemplateSpec) string {
	if own := t.Annotations[accelerator.AnnotationSliceTopology]; own != "" {
		return own
	}
	return t.Spec.NodeSelector[accelerator.LabelTopology]
}
