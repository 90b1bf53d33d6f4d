package gke

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// MaxName is GKE's limit for the names of clusters and node pools.
const MaxName = 40

// MaxSlicePoolName leaves room for "-" and an index of up to four digits.
const MaxSlicePoolName = MaxName - 5

// MaxSlices of one pool: what the index in a node pool's name has room for.
const MaxSlices = 10000

// SlicePool is the specification of N equal slices, each of which is one node
// pool named NAME-INDEX.
type SlicePool struct {
	Cluster      ClusterName
	Name         string
	Owner        string // name of the configuration, or ""
	Object       string // which of the configuration's objects this is, or "": slices say whose they are
	Shape        accelerator.Slice
	Count        int
	Zone         string
	Provisioning Provisioning
	Autoscaling  *Autoscaling // nil is none, where the model allows it
	// PlacementPolicy is the Compute workload policy that some generations'
	// multi-host slices are placed by, or "".
	PlacementPolicy string
	ServiceAccount  string            // of the nodes; "" is the project's default
	DiskType        string            // "" is the shape's default
	DiskSizeGB      int               // 0 is GKE's default
	NodeLabels      map[string]string // nil leaves them as they are
	ResourceLabels  map[string]string
	// The zero value of each of these leaves it as it is.
	Version        string // the oldest that nodes may have
	ImageType      string
	ImageStreaming *bool
	Private        *bool
	NetworkProfile string
	MaxPods        int
	Tags           []string
	Taints         []Taint
	SecondaryDisks []string // images of disks with container images
	AutoRepair     *bool
	AutoUpgrade    *bool
	Upgrade        *Upgrade
	// Overrides is JSON that is merged into the request for a node pool, or "".
	Overrides string
	// MaxUnavailable is how many slices may be down at a time while they get
	// new nodes; 0 is 1.
	MaxUnavailable int
	OnStockout     StockoutPolicy // "" is StockoutWait
	// Force lets slices go, or get new nodes, that run a job.
	Force bool
}

// StockoutPolicy is what happens to a slice for which there is no capacity.
type StockoutPolicy string

// The policies.
const (
	// StockoutWait asks again until the time is up.
	StockoutWait StockoutPolicy = "wait"
	// StockoutKeep asks once and leaves the node pool as GKE left it.
	StockoutKeep StockoutPolicy = "keep"
	// StockoutCleanup asks once and removes what did not come up.
	StockoutCleanup StockoutPolicy = "cleanup"
)

// SliceStatus is what one slice's node pool is.
type SliceStatus string

// Statuses of a slice: those of its node pool, and Missing.
const (
	SliceRunning      SliceStatus = "RUNNING"
	SliceProvisioning SliceStatus = "PROVISIONING"
	SliceStopping     SliceStatus = "STOPPING"
	SliceError        SliceStatus = "ERROR"
	SliceMissing      SliceStatus = "MISSING"
)

// Statuses of a slice pool.
const (
	PoolReady        = "READY"        // every slice's node pool is up
	PoolDegraded     = "DEGRADED"     // one is missing or failed
	PoolProvisioning = "PROVISIONING" // one is still being made
	PoolOutdated     = "OUTDATED"     // all are up, and one has other settings than it should
)

// Slice is one slice as GKE sees it.
type Slice struct {
	NodePool string
	Status   SliceStatus
	Message  string // what is wrong, in a few words, or ""
	// Outdated names the settings that are not as wanted.
	Outdated []string
	// Hostless: the node pool is up and has no hosts, though it should.
	Hostless bool
}

// Slices are a pool's slices by index.
type Slices map[int]Slice

// Ready counts the slices whose node pool is up, with its hosts.
func (s Slices) Ready() int {
	n := 0
	for _, one := range s {
		if one.Status == SliceRunning && !one.Hostless {
			n++
		}
	}
	return n
}

// Status of a pool that should have count slices. Too many, after a shrink that
// did not finish or had to spare a job, is as wrong as too few.
func (s Slices) Status(count int) string {
	status := PoolReady
	if len(s) != count {
		status = PoolDegraded
	}
	for _, one := range s {
		switch one.Status {
		case SliceRunning:
			if one.Hostless {
				return PoolDegraded
			}
			if status == PoolReady && len(one.Outdated) > 0 {
				status = PoolOutdated
			}
		case SliceProvisioning:
			if status == PoolReady || status == PoolOutdated {
				status = PoolProvisioning
			}
		default:
			return PoolDegraded
		}
	}
	return status
}

// Indices in ascending order.
func (s Slices) Indices() []int { return slices.Sorted(maps.Keys(s)) }

// NodePoolName names the node pool of slice i.
func (p SlicePool) NodePoolName(i int) string { return p.Name + "-" + strconv.Itoa(i) }

// SliceIndex reads the index out of a node pool's name, if it has the form of
// a slice of pool.
func SliceIndex(pool, nodePool string) (int, bool) {
	digits, ok := strings.CutPrefix(nodePool, pool+"-")
	if !ok || digits == "" || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	i, err := strconv.Atoi(digits)
	return i, err == nil && i >= 0 && i < MaxSlices && strconv.Itoa(i) == digits
}

// Hash digests what a node pool has for life. Other settings can be changed, so
// that a node pool that a killed run left may be adopted whatever they are.
func (p SlicePool) Hash() string {
	return SpecHash(struct {
		Accelerator, Topology, Machine, Zone, Policy, Reservation string
		Model                                                     ProvisioningModel
	}{p.Shape.AcceleratorLabel, p.Shape.Topology.String(), p.Shape.MachineType, p.Zone, p.PlacementPolicy,
		p.Provisioning.Reservation, cmp.Or(p.Provisioning.Model, OnDemand)})
}

func (p SlicePool) diskType() string { return cmp.Or(p.DiskType, p.Shape.BootDisk) }

func zoneRegion(zone string) string { return ClusterName{Location: zone}.Region() }

func (p SlicePool) ownership(created time.Time) Ownership {
	return Ownership{Kind: KindSlice, Owner: p.Owner, Spec: p.Hash(), Pool: p.Name, Object: p.Object, Created: created}
}

// slice reads a node pool and compares it with what it should be.
func (p SlicePool) slice(np *containerpb.NodePool) Slice {
	s := sliceOf(np)
	s.Outdated, s.Hostless = p.outdated(np), !p.hosted(np) && np.GetInitialNodeCount() == 0
	if len(s.Outdated) > 0 && s.Message == "" {
		s.Message = "has not got yet: " + strings.Join(s.Outdated, ", ")
	}
	return s
}

// sliceOf reads a node pool. RUNNING_WITH_ERROR counts as up where GKE brings
// the rest back by itself: preempted spot nodes.
func sliceOf(np *containerpb.NodePool) Slice {
	s := Slice{NodePool: np.GetName(), Message: briefTrouble(np)}
	switch np.GetStatus() {
	case containerpb.NodePool_RUNNING, containerpb.NodePool_RECONCILING:
		s.Status, s.Message = SliceRunning, ""
	case containerpb.NodePool_RUNNING_WITH_ERROR:
		s.Status = SliceError
		if np.GetConfig().GetSpot() || np.GetConfig().GetPreemptible() {
			s.Status = SliceRunning
		}
	case containerpb.NodePool_PROVISIONING:
		s.Status = SliceProvisioning
	case containerpb.NodePool_STOPPING:
		s.Status = SliceStopping
	default:
		s.Status = SliceError
	}
	return s
}
