package fakegke

import (
	"fmt"
	"strconv"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hasNodes reports whether a pool's instances are up.
func hasNodes(p *containerpb.NodePool) bool {
	switch p.Status {
	case containerpb.NodePool_RUNNING, containerpb.NodePool_RUNNING_WITH_ERROR, containerpb.NodePool_RECONCILING:
		return true
	}
	return false
}

// groupName is a pool's instance group in a zone: gke-<cluster>-<pool>-<hash>,
// of which cluster and pool together get 32 characters.
func groupName(poolPath, zone string) string {
	cluster, pool := clusterOf(poolPath), poolPath[strings.LastIndex(poolPath, "/")+1:]
	base := cluster[strings.LastIndex(cluster, "/")+1:] + "-" + pool
	if len(base) > 32 {
		base = strings.TrimRight(base[:32], "-")
	}
	return "gke-" + base + "-" + digest(8, poolPath, zone)
}

// buildNodes are the nodes of a pool that is up, as GKE registers them, zone by
// zone. The same pool always gives the same nodes.
func buildNodes(cluster string, p *containerpb.NodePool) []*corev1.Node {
	path := cluster + "/nodePools/" + p.Name
	count := int(p.InitialNodeCount)
	if p.Status == containerpb.NodePool_RUNNING_WITH_ERROR {
		count = min(count, shortfall(p))
	}
	var nodes []*corev1.Node
	for _, zone := range p.Locations {
		seen := map[string]bool{}
		for i := range count {
			suffix := nodeSuffix(path, zone, i, 0)
			for n := 1; seen[suffix]; n++ {
				suffix = nodeSuffix(path, zone, i, n)
			}
			seen[suffix] = true
			nodes = append(nodes, buildNode(path, p, zone, groupName(path, zone)+"-"+suffix))
		}
	}
	return nodes
}

// nodeSuffix is four letters and digits.
func nodeSuffix(path, zone string, i, try int) string {
	n, _ := strconv.ParseUint(digest(8, path, zone, strconv.Itoa(i), strconv.Itoa(try)), 16, 64)
	return fmt.Sprintf("%04s", strconv.FormatUint(n%(36*36*36*36), 36))
}

func buildNode(poolPath string, p *containerpb.NodePool, zone, name string) *corev1.Node {
	m, _ := machineOf(p.Config.MachineType)
	at, _, _ := parse(clusterOf(poolPath), "clusters")
	region := place{location: zone}.region()
	n := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: nodeLabels(p, m)},
		Spec:       corev1.NodeSpec{ProviderID: fmt.Sprintf("gce://%s/%s/%s", at.project, zone, name)},
	}
	for k, v := range map[string]string{
		"kubernetes.io/hostname":                   name,
		"topology.kubernetes.io/zone":              zone,
		"topology.kubernetes.io/region":            region,
		"topology.gke.io/zone":                     zone,
		"failure-domain.beta.kubernetes.io/zone":   zone,
		"failure-domain.beta.kubernetes.io/region": region,
	} {
		n.Labels[k] = v
	}
	if sl, ok := sliceOf(p); ok { // hosts of one slice share a block of the network
		n.Labels["cloud.google.com/gce-topology-block"] = digest(32, at.project, zone, "block")
		n.Labels["cloud.google.com/gce-topology-subblock"] = digest(32, poolPath, sl.Name, "subblock")
		n.Labels["cloud.google.com/gce-topology-host"] = digest(32, name, "host")
	}
	for _, t := range p.Config.Taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: taintEffect(t.Effect)})
	}
	if m.tpu != nil {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: accelerator.TaintKey, Value: accelerator.TaintValue, Effect: corev1.TaintEffectNoSchedule})
	}
	n.Status.Capacity, n.Status.Allocatable = resources(p, m)
	n.Status.NodeInfo = corev1.NodeSystemInfo{
		Architecture:            "amd64",
		OperatingSystem:         "linux",
		OSImage:                 "Container-Optimized OS from Google",
		KernelVersion:           "6.12.55+",
		ContainerRuntimeVersion: "containerd://2.1.5",
		KubeletVersion:          "v" + p.Version,
		MachineID:               digest(32, name, "machine"),
		SystemUUID:              digest(32, name, "system"),
		BootID:                  digest(32, name, "boot"),
	}
	return n
}

// nodeLabels are GKE's labels that are the same on all nodes of a pool.
func nodeLabels(p *containerpb.NodePool, m machine) map[string]string {
	labels := map[string]string{}
	for k, v := range p.Config.Labels {
		labels[k] = v
	}
	provisioning := "standard"
	set := func(k, v string) { labels["cloud.google.com/"+k] = v }
	set("gke-nodepool", p.Name)
	set("gke-boot-disk", p.Config.DiskType)
	set("gke-container-runtime", "containerd")
	set("gke-os-distribution", "cos")
	set("gke-cpu-scaling-level", strconv.Itoa(int(m.vcpus)))
	set("gke-memory-gb-scaling-level", strconv.Itoa(int(m.memoryGB)))
	set("gke-max-pods-per-node", strconv.FormatInt(p.MaxPodsConstraint.GetMaxPodsPerNode(), 10))
	set("machine-family", m.family)
	set("private-node", strconv.FormatBool(p.NetworkConfig.GetEnablePrivateNodes()))
	if p.Config.Spot {
		set("gke-spot", "true")
		provisioning = "spot"
	}
	if p.Config.Preemptible {
		set("gke-preemptible", "true")
		provisioning = "preemptible"
	}
	if p.Config.GetFlexStart() {
		set("gke-flex-start", "true")
		provisioning = "flex-start"
	}
	if p.QueuedProvisioning.GetEnabled() {
		set("gke-queued", "true")
	}
	set("gke-provisioning", provisioning)
	if v := p.Config.ReservationAffinity.GetValues(); len(v) > 0 {
		set("reservation-name", v[0][strings.LastIndex(v[0], "/")+1:])
	}
	if name := p.PlacementPolicy.GetPolicyName(); name != "" {
		set("placement-policy-name", name)
	}
	if m.tpu != nil {
		topology := m.oneHost()
		if sl, ok := sliceOf(p); ok {
			topology = sl.Topology
		}
		labels[accelerator.LabelAccelerator] = m.tpu.AcceleratorLabel
		labels[accelerator.LabelTopology] = topology.String()
		labels[accelerator.LabelAcceleratorCount] = strconv.Itoa(m.chips)
	}
	for _, k := range []string{"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"} {
		labels[k] = m.name
	}
	for _, prefix := range []string{"kubernetes.io/", "beta.kubernetes.io/"} {
		labels[prefix+"os"], labels[prefix+"arch"] = "linux", "amd64"
	}
	return labels
}

func resources(p *containerpb.NodePool, m machine) (capacity, allocatable corev1.ResourceList) {
	list := func(milli, mib, diskGB int64) corev1.ResourceList {
		l := corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewMilliQuantity(milli, resource.DecimalSI),
			corev1.ResourceMemory:           *resource.NewQuantity(mib<<20, resource.BinarySI),
			corev1.ResourcePods:             *resource.NewQuantity(p.MaxPodsConstraint.GetMaxPodsPerNode(), resource.DecimalSI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(diskGB<<30, resource.BinarySI),
		}
		if m.tpu != nil {
			l[accelerator.ResourceName] = *resource.NewQuantity(int64(m.chips), resource.DecimalSI)
		}
		return l
	}
	disk := int64(p.Config.DiskSizeGb)
	milli, mib := m.allocatable()
	// GKE keeps half of the boot disk for itself, but no more than 100 GB.
	return list(int64(m.vcpus*1000), int64(m.memoryGB*1024), disk), list(milli, mib, disk-min(disk/2, 100))
}

func taintEffect(e containerpb.NodeTaint_Effect) corev1.TaintEffect {
	switch e {
	case containerpb.NodeTaint_PREFER_NO_SCHEDULE:
		return corev1.TaintEffectPreferNoSchedule
	case containerpb.NodeTaint_NO_EXECUTE:
		return corev1.TaintEffectNoExecute
	}
	return corev1.TaintEffectNoSchedule
}
