package gke

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// MaxNodes of a cluster, on request; 15,000 without.
const MaxNodes = 65000

var reservationPath = regexp.MustCompile(`^(projects/[^/,\s]+/reservations/)?[a-z]([-a-z0-9]*[a-z0-9])?(/reservationBlocks/[^/,\s]+(/reservationSubBlocks/[^/,\s]+)?)?$`)

// refusal is something that GKE would refuse, or worse, would accept and never
// fulfil. say returns what is wrong and the nearest valid choice, or "".
type refusal func(p SlicePool, np *containerpb.NodePool) string

// when makes a refusal without values of its own.
func when(is func(p SlicePool, np *containerpb.NodePool) bool, say string) refusal {
	return func(p SlicePool, np *containerpb.NodePool) string {
		if is(p, np) {
			return say
		}
		return ""
	}
}

// Check refuses what facts about GKE rule out, the pool's own identity first:
// the other checks look at the very request that would be sent.
func (p SlicePool) Check() error {
	for _, r := range identityRefusals {
		if why := r(p, nil); why != "" {
			return fmt.Errorf("%s", why)
		}
	}
	np, err := p.NodePool(0, time.Unix(0, 0))
	if err != nil {
		return err
	}
	for _, r := range refusals {
		if why := r(p, np); why != "" {
			return fmt.Errorf("%s", why)
		}
	}
	return nil
}

var identityRefusals = []refusal{
	func(p SlicePool, _ *containerpb.NodePool) string {
		if len(p.Name) <= MaxSlicePoolName {
			return ""
		}
		return fmt.Sprintf("slice pool name %q has %d characters; the most is %d, since GKE allows node pools %d and each slice's index is appended", p.Name, len(p.Name), MaxSlicePoolName, MaxName)
	},
	func(p SlicePool, _ *containerpb.NodePool) string {
		if p.Count >= 0 && p.Count <= MaxSlices {
			return ""
		}
		return fmt.Sprintf("slice_count is %d: want 0 to %d", p.Count, MaxSlices)
	},
	func(p SlicePool, _ *containerpb.NodePool) string {
		if nodes := p.Count * p.Shape.Hosts; nodes > MaxNodes {
			return fmt.Sprintf("%d slices of %d hosts are %d nodes; a cluster has at most %d (and 15,000 unless Google raised the limit): at most %d slices fit", p.Count, p.Shape.Hosts, nodes, MaxNodes, MaxNodes/p.Shape.Hosts)
		}
		return ""
	},
	func(p SlicePool, _ *containerpb.NodePool) string {
		switch {
		case p.Zone == "":
			return fmt.Sprintf("cluster %s is regional, and a slice lives in one zone: set zone, for example %s-a (see `gcloud compute accelerator-types list` for the zones that have the TPU)", p.Cluster.Cluster, p.Cluster.Region())
		case zoneRegion(p.Zone) != p.Cluster.Region():
			return fmt.Sprintf("zone %s is not in the cluster's region %s", p.Zone, p.Cluster.Region())
		}
		return ""
	},
	func(p SlicePool, _ *containerpb.NodePool) string {
		switch byPolicy := p.Shape.Placement == accelerator.PlacementWorkloadPolicy; {
		case byPolicy && p.PlacementPolicy == "":
			return fmt.Sprintf("%s slices of several hosts are placed by a Compute workload policy (type HIGH_THROUGHPUT, accelerator topology %s, in region %s): make one and name it in placement_policy",
				p.Shape.Generation, p.Shape.Topology, p.Cluster.Region())
		case !byPolicy && p.PlacementPolicy != "":
			return fmt.Sprintf("placement_policy is for multi-host slices that a workload policy places (tpu7x); %s takes none", p.Shape.Name)
		}
		return ""
	},
	func(p SlicePool, _ *containerpb.NodePool) string {
		r := p.Provisioning.Reservation
		switch {
		case r == "":
			return ""
		case strings.Contains(r, ","):
			return fmt.Sprintf("provisioning.reservation %q names several reservations; a node pool consumes one: make a slice pool for each", r)
		case !reservationPath.MatchString(r):
			return fmt.Sprintf("provisioning.reservation %q is not a reservation: want NAME, or projects/PROJECT/reservations/NAME for a shared one, and after either /reservationBlocks/BLOCK and /reservationSubBlocks/SUBBLOCK", r)
		case p.Provisioning.Model != FromReservation:
			return fmt.Sprintf("provisioning.model %q takes no reservation: use model = \"reservation\", or leave the reservation out", p.Provisioning.Model)
		}
		return ""
	},
	func(p SlicePool, _ *containerpb.NodePool) string { return refuseValues(p) },
}

// refusals of a request. They hold for what node_pool_overrides make of it too.
var refusals = []refusal{
	func(p SlicePool, np *containerpb.NodePool) string {
		if np.GetConfig().GetFlexStart() && !p.Shape.FlexStart {
			return fmt.Sprintf("flex_start is not offered for %s: use on_demand, spot or reservation", p.Shape.Generation)
		}
		return ""
	},
	when(func(_ SlicePool, np *containerpb.NodePool) bool {
		return np.GetConfig().GetFlexStart() && np.GetManagement().GetAutoRepair()
	}, "flex_start nodes are not repaired: set management.auto_repair = false, or leave it out"),
	when(func(_ SlicePool, np *containerpb.NodePool) bool {
		return np.GetConfig().GetFlexStart() && (np.GetInitialNodeCount() > 0 || !np.GetAutoscaling().GetEnabled() || autoscalingOf(np).Min > 0)
	}, "flex_start slices come up when a job asks for them and cannot be kept up: set autoscaling.min_hosts = 0, or leave it out"),
	when(func(_ SlicePool, np *containerpb.NodePool) bool {
		return np.GetConfig().GetFlexStart() && np.GetQueuedProvisioning().GetEnabled()
	}, "flex start node pools don't support TPUs with queued provisioning: choose one of flex_start and queued"),
	when(func(_ SlicePool, np *containerpb.NodePool) bool {
		c := np.GetConfig()
		return c.GetSpot() && (c.GetFlexStart() || c.GetReservationAffinity().GetConsumeReservationType() == containerpb.ReservationAffinity_SPECIFIC_RESERVATION)
	}, "spot machines come neither by flex_start nor from a reservation: choose one model"),
	when(func(_ SlicePool, np *containerpb.NodePool) bool {
		return np.GetQueuedProvisioning().GetEnabled() && autoscalingOf(np) != nil && autoscalingOf(np).Min > 0
	}, "queued slices come up when their request is granted and cannot be kept up: set autoscaling.min_hosts = 0, or leave it out"),
	func(p SlicePool, _ *containerpb.NodePool) string {
		d := p.Provisioning.MaxRunDuration
		switch {
		case d > maxFlexStartRun && p.Provisioning.Model == FlexStart:
			return fmt.Sprintf("provisioning.max_run_duration is %s; flex_start machines run at most 7 days: set 168h or less", d)
		case d > 0 && p.Provisioning.Model != FlexStart && p.Provisioning.Model != Queued:
			return "provisioning.max_run_duration is for flex_start and queued machines: leave it out, or choose one of these models"
		}
		return ""
	},
	func(p SlicePool, np *containerpb.NodePool) string {
		a := autoscalingOf(np)
		switch {
		case a == nil:
			return ""
		case a.Max != p.Shape.Hosts:
			return fmt.Sprintf("autoscaling.max_hosts is %d; a slice of %s has %d hosts, all or none: set %d, or leave it out", a.Max, p.Shape.Name, p.Shape.Hosts, p.Shape.Hosts)
		case a.Min != 0 && a.Min != p.Shape.Hosts:
			return fmt.Sprintf("autoscaling.min_hosts is %d; a slice of %s has %d hosts, all or none: set 0 or %d", a.Min, p.Shape.Name, p.Shape.Hosts, p.Shape.Hosts)
		}
		return ""
	},
	when(func(_ SlicePool, np *containerpb.NodePool) bool {
		return np.GetPlacementPolicy().GetType() == containerpb.NodePool_PlacementPolicy_COMPACT && np.GetUpgradeSettings().GetStrategy() == containerpb.NodePoolUpdateStrategy_BLUE_GREEN
	}, "compactly placed slices cannot be upgraded blue_green: set upgrade.strategy = \"surge\""),
	func(p SlicePool, np *containerpb.NodePool) string {
		facts, ok := p.Shape.Generation.Facts()
		if disk := np.GetConfig().GetDiskType(); ok && !slices.Contains(facts.BootDisks, disk) {
			return fmt.Sprintf("%s hosts do not boot from %s: set node.boot_disk.type to %s, or leave it out", p.Shape.Generation, disk, strings.Join(facts.BootDisks, " or "))
		}
		return ""
	},
	func(p SlicePool, _ *containerpb.NodePool) string {
		if p.MaxPods != 0 && (p.MaxPods < 8 || p.MaxPods > 256) {
			return fmt.Sprintf("node.max_pods is %d: want 8 to 256; %d is enough for training and is the default", p.MaxPods, accelerator.MaxPodsPerNode)
		}
		return ""
	},
	refuseLabels,
	refuseTaints,
}
