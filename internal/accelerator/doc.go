// Package accelerator is the catalogue of Cloud TPU slices on GKE: which
// generations and topologies exist, and what follows from one (chips, hosts,
// machine type, node labels, placement, disks). Everything else derives its
// counts from here.
//
// It is pure: no I/O, no clock, no clients, and it imports nothing of this
// project. A generation and a topology identify a slice; type names such as
// v5p-128 are sugar, since some generations count TensorCores in them and
// others count chips.
package accelerator

// Labels that GKE puts on TPU nodes.
const (
	LabelAccelerator      = "cloud.google.com/gke-tpu-accelerator"
	LabelTopology         = "cloud.google.com/gke-tpu-topology"
	LabelAcceleratorCount = "cloud.google.com/gke-accelerator-count" // chips per host
	LabelNodePool         = "cloud.google.com/gke-nodepool"
	LabelSpot             = "cloud.google.com/gke-spot"
	LabelProvisioning     = "cloud.google.com/gke-provisioning"
	LabelFlexStart        = "cloud.google.com/gke-flex-start"
	LabelQueued           = "cloud.google.com/gke-queued"
	LabelPlacementPolicy  = "cloud.google.com/placement-policy-name"
	LabelReservation      = "cloud.google.com/reservation-name"
	LabelMachineFamily    = "cloud.google.com/machine-family"
	LabelBlock            = "cloud.google.com/gce-topology-block"
	LabelSubblock         = "cloud.google.com/gce-topology-subblock"
	LabelTopologyHost     = "cloud.google.com/gce-topology-host"
	LabelHostname         = "kubernetes.io/hostname"
)

// ResourceName is the extended resource that counts chips on a node and in a
// container.
const ResourceName = "google.com/tpu"

// The taint on every TPU node: google.com/tpu=present:NoSchedule.
const (
	TaintKey    = "google.com/tpu"
	TaintValue  = "present"
	TaintEffect = "NoSchedule"
)

// MaxPodsPerNode is what TPU node pools use instead of GKE's 110: a host runs
// one training pod and a few system pods, and each node takes twice this
// number of pod addresses.
const MaxPodsPerNode = 15
