package fakegke

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// Limits of GKE.
const (
	maxNodesPerZone     = 1000
	maxNodesPerCluster  = 15000
	maxFlexStartRun     = 7 * 24 * time.Hour
	compact             = containerpb.NodePool_PlacementPolicy_COMPACT
	specificReservation = containerpb.ReservationAffinity_SPECIFIC_RESERVATION
)

// sliceOf is the TPU slice that a multi-host pool is; false for any other
// pool. The pool's machine type and topology have been checked.
func sliceOf(p *containerpb.NodePool) (accelerator.Slice, bool) {
	m, ok := machineOf(p.Config.GetMachineType())
	if !ok || m.tpu == nil {
		return accelerator.Slice{}, false
	}
	if word := p.PlacementPolicy.GetTpuTopology(); word != "" {
		if t, err := accelerator.ParseTopology(word); err == nil {
			sl, err := accelerator.Lookup(m.tpu.Generation, t, m.name)
			return sl, err == nil && sl.MultiHost
		}
		return accelerator.Slice{}, false
	}
	// A workload policy is an object of Compute Engine, which holds the
	// topology; all that is seen of it here is its name and the pool's size.
	if m.tpu.WorkloadPolicy && p.PlacementPolicy.GetPolicyName() != "" {
		return policySlice(m, int(poolSize(p)))
	}
	return accelerator.Slice{}, false
}

// policySlice is the most compact slice of that many hosts.
func policySlice(m machine, hosts int) (accelerator.Slice, bool) {
	size := hosts * m.chips
	if m.tpu.NameCounts == accelerator.TensorCores {
		size *= m.tpu.CoresPerChip
	}
	sl, err := accelerator.Resolve(m.tpu.NamePrefix + "-" + strconv.Itoa(size))
	return sl, err == nil && sl.MultiHost && sl.MachineType == m.name
}

// poolSize is the number of nodes per zone that the pool is for: what it
// starts with, or may grow to.
func poolSize(p *containerpb.NodePool) int32 {
	if a := p.Autoscaling; p.InitialNodeCount == 0 && a.GetEnabled() {
		return max(a.TotalMaxNodeCount, a.MaxNodeCount)
	}
	return p.InitialNodeCount
}

// checkPool refuses what GKE refuses. The pool has its defaults.
func checkPool(p *containerpb.NodePool) error {
	if err := checkName("node_pool.name", p.Name); err != nil {
		return err
	}
	m, ok := machineOf(p.Config.MachineType)
	if !ok {
		return invalid("Machine type with name %q does not exist in zone %q.", p.Config.MachineType, p.Locations[0])
	}
	if p.InitialNodeCount < 0 {
		return invalid("Node pool initial node count must be non-negative.")
	}
	if p.InitialNodeCount > maxNodesPerZone {
		return invalid("Node pool %q has %d nodes per zone, the limit is %d.", p.Name, p.InitialNodeCount, maxNodesPerZone)
	}
	disk := p.Config.DiskType
	if m.hyperdiskOnly() && !strings.HasPrefix(disk, "hyperdisk") || m.tpu != nil && !m.hyperdiskOnly() && strings.HasPrefix(disk, "hyperdisk") {
		return invalid("%s disk type cannot be used by %s machine type.", disk, m.name)
	}
	for _, check := range []func(*containerpb.NodePool, machine) error{checkTopology, checkAutoscaling, checkProvisioning, checkNodes} {
		if err := check(p, m); err != nil {
			return err
		}
	}
	return nil
}

func checkTopology(p *containerpb.NodePool, m machine) error {
	policy := p.PlacementPolicy
	word := policy.GetTpuTopology()
	if m.tpu == nil {
		if word != "" {
			return invalid("TPU topology %q can't be specified for machine type %q, which has no TPU.", word, m.name)
		}
		return nil
	}
	if m.tpu.WorkloadPolicy && policy.GetType() == compact {
		return invalid("Creation of a managed instance group with %s machine type with placement policy is not supported. Use workload policy instead.", m.name)
	}
	if m.tpu.WorkloadPolicy && policy.GetPolicyName() != "" {
		if word != "" {
			return invalid("TPU topology can't be specified together with a workload policy; the policy has it.")
		}
		if size := poolSize(p); size > 1 {
			if _, ok := policySlice(m, int(size)); !ok {
				return invalid("Requested invalid target size '%d' for a Managed Instance Group in the gang mode", size)
			}
		}
		return nil
	}
	if word == "" {
		return nil // independent single hosts
	}
	if m.tpu.WorkloadPolicy {
		return invalid("TPU topology can't be specified for machine type %q. Use workload policy instead.", m.name)
	}
	t, err := accelerator.ParseTopology(word)
	if err != nil {
		return invalid("Invalid TPU topology %q: %v.", word, err)
	}
	if t.Chips() <= m.chips {
		return invalid("TPU topology can't be specified with single-host TPU slice pool")
	}
	sl, err := accelerator.Lookup(m.tpu.Generation, t, m.name)
	if err != nil {
		return invalid("TPU topology %q is not valid for machine type %q: %v.", word, m.name, err)
	}
	if len(p.Locations) != 1 {
		return invalid("Compact placement policy requires exactly one zone, node pool %q has %d.", p.Name, len(p.Locations))
	}
	if n := p.InitialNodeCount; int(n) != sl.Hosts && !(n == 0 && p.Autoscaling.GetEnabled()) {
		return invalid("Requested invalid target size '%d' for a Managed Instance Group in the gang mode of size '%d'", n, sl.Hosts)
	}
	return nil
}

func checkAutoscaling(p *containerpb.NodePool, _ machine) error {
	a := p.Autoscaling
	if !a.GetEnabled() {
		return nil
	}
	most := max(a.MaxNodeCount, a.TotalMaxNodeCount)
	if min(a.MinNodeCount, a.TotalMinNodeCount) < 0 {
		return invalid("Node pool autoscaling: minimum node count must be non-negative.")
	}
	if least := max(a.MinNodeCount, a.TotalMinNodeCount); least > most {
		return invalid("Node pool autoscaling: minimum node count %d is greater than maximum node count %d.", least, most)
	}
	if word := p.PlacementPolicy.GetTpuTopology(); word != "" {
		if sl, ok := sliceOf(p); ok && int(most) != sl.Hosts {
			return invalid("Maximum node count %d is not a valid size of TPU pod slice with topology %s", most, word)
		}
	} else if most < 1 {
		return invalid("Node pool autoscaling: maximum node count must be at least 1.")
	}
	return nil
}

// checkProvisioning refuses combinations of spot, reservations, flex-start,
// queued provisioning and placement.
func checkProvisioning(p *containerpb.NodePool, m machine) error {
	c := p.Config
	spot := c.Spot || c.Preemptible
	reservation := c.ReservationAffinity.GetConsumeReservationType()
	reserved := reservation == specificReservation
	if reserved && (c.ReservationAffinity.Key == "" || len(c.ReservationAffinity.Values) == 0) {
		return invalid("Reservation affinity of type SPECIFIC_RESERVATION needs a key and a value.")
	}
	if reserved && len(c.ReservationAffinity.Values) > 1 {
		return invalid("Exactly one reservation may be specified, got %d.", len(c.ReservationAffinity.Values))
	}
	queued := p.QueuedProvisioning.GetEnabled()
	a := p.Autoscaling
	switch {
	case spot && reserved:
		return invalid("Spot VMs can't consume reservations.")
	case c.GetFlexStart() && queued && m.tpu != nil:
		return invalid("Flex start node pools don't support TPUs with queued provisioning")
	case c.GetFlexStart() && p.Management.GetAutoRepair():
		return invalid("Flex start node pools require node auto-repair to be disabled.")
	case c.GetFlexStart() && (spot || reserved):
		return invalid("Flex start node pools can't use Spot VMs or reservations.")
	case c.GetFlexStart() && reservation == containerpb.ReservationAffinity_ANY_RESERVATION:
		return invalid("Flex start node pools require reservation affinity NO_RESERVATION.")
	case c.GetFlexStart() && (p.InitialNodeCount > 0 || !a.GetEnabled()):
		return invalid("Flex start node pools require autoscaling and an initial node count of 0.")
	case c.GetFlexStart() && c.MaxRunDuration.AsDuration() > maxFlexStartRun:
		return invalid("Max run duration of flex start node pools must not be longer than 7 days.")
	case queued && (spot || reserved):
		return invalid("Queued provisioning can't be used with Spot VMs or reservations.")
	case queued && max(a.GetMinNodeCount(), a.GetTotalMinNodeCount()) > 0:
		return invalid("Queued provisioning requires a minimum node count of 0.")
	case queued && reservation != containerpb.ReservationAffinity_NO_RESERVATION:
		return invalid("Queued_provisioning requires reservation affinity to be set to none")
	case p.PlacementPolicy.GetType() == compact && len(p.Locations) > 1:
		return invalid("Compact placement policy requires exactly one zone, node pool %q has %d.", p.Name, len(p.Locations))
	case p.PlacementPolicy.GetType() == compact && p.UpgradeSettings.GetStrategy() == containerpb.NodePoolUpdateStrategy_BLUE_GREEN:
		return invalid("Compact placement policy can't be used with blue-green upgrades.")
	}
	for _, t := range c.Taints {
		if t.Effect == containerpb.NodeTaint_EFFECT_UNSPECIFIED || t.Key == "" {
			return invalid("Node taint %q must have a key and an effect.", t.Key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		if domain, _, ok := strings.Cut(key, "/"); ok && slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "cloud.google.com"}, func(d string) bool {
			return domain == d || strings.HasSuffix(domain, "."+d)
		}) {
			return invalid("Node labels with key %q are managed by GKE or Kubernetes and must not be manually specified.", key)
		}
	}
	return nil
}

var (
	accountEmail = regexp.MustCompile(`^([^@\s]+@[^@\s]+\.[^@\s]+|default)$`)
	networkTag   = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	imageTypes   = []string{"COS_CONTAINERD", "UBUNTU_CONTAINERD", "COS", "UBUNTU", "WINDOWS_LTSC_CONTAINERD", "WINDOWS_SAC_CONTAINERD"}
)

// maxUpgradeNodes may be surplus or down at a time in an upgrade.
const maxUpgradeNodes = 20

// checkNodes refuses settings of nodes that are none.
func checkNodes(p *containerpb.NodePool, _ machine) error {
	c := p.Config
	if !accountEmail.MatchString(c.ServiceAccount) {
		return invalid("Service account %q is not a valid service account email.", c.ServiceAccount)
	}
	if !slices.Contains(imageTypes, strings.ToUpper(c.ImageType)) {
		return invalid("Image type %q is not supported.", c.ImageType)
	}
	for i, tag := range c.Tags {
		if !networkTag.MatchString(tag) || slices.Contains(c.Tags[:i], tag) {
			return invalid("Invalid value for field 'resource.properties.tags': network tag %q is invalid or there twice.", tag)
		}
	}
	for i, d := range c.SecondaryBootDisks {
		same := func(o *containerpb.SecondaryBootDisk) bool { return o.DiskImage == d.DiskImage }
		if !strings.Contains(d.DiskImage, "global/images/") || slices.ContainsFunc(c.SecondaryBootDisks[:i], same) {
			return invalid("Secondary boot disk image %q is invalid or there twice.", d.DiskImage)
		}
	}
	if profile := p.NetworkConfig.GetAcceleratorNetworkProfile(); profile != "" && profile != "auto" {
		return invalid("Accelerator network profile %q is not supported.", profile)
	}
	if u := p.UpgradeSettings; u.GetMaxSurge()+u.GetMaxUnavailable() > maxUpgradeNodes {
		return invalid("Max surge and max unavailable must not be more than %d together.", maxUpgradeNodes)
	}
	return nil
}
