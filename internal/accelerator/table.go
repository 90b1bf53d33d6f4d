package accelerator

// The shapes that are documented one by one.
var (
	planar = []Topology{{1, 1, 0}, {2, 2, 0}, {2, 4, 0}, {4, 4, 0}, {4, 8, 0}, {8, 8, 0}, {8, 16, 0}, {16, 16, 0}}
	solid  = []Topology{{2, 2, 1}, {2, 2, 2}, {2, 2, 4}, {2, 4, 4}, {4, 4, 4}}
	// Ironwood also comes as a single chip.
	solidFromOne = append([]Topology{{1, 1, 1}}, solid...)
)

// zonesRead dates the zones: cloud.google.com/tpu/docs/types-zones and
// request-using-flex-start. Some zones are for single tenants only.
const (
	zonesRead = "2025-08"
	// cloud.google.com/tpu/docs/regions-zones in an undated copy that has AI
	// zones (us-central1-ai1a). It lists zones for single tenants no more; they
	// are kept from the older page, and v6e, whose us-south1-ai1b is from here,
	// keeps the older date.
	zonesReadAgain = "2026-11"
)

const hyperdisk = "hyperdisk-balanced"

// table holds one row per generation. Sources: "plan-tpus" is
// cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus; "autoscaler" is
// the GKE autoscaler's TPU tables; xpk is AI-Hypercomputer/xpk v1.13.1.
var table = []Facts{
	{
		Generation: V4, NamePrefix: "v4", AcceleratorLabel: "tpu-v4-podslice",
		CoresPerChip: 2, NameCounts: TensorCores,
		Dimensions: 3, Small: solid, DocumentedChips: 4096, MaxChips: 4096,
		Machines: []Machine{{"ct4p-hightpu-4t", 4}}, MultiHost: "ct4p-hightpu-4t",
		BootDisks: []string{"pd-balanced", "pd-standard"}, ContainersPerHost: 1,
		Capacity: Capacity{Zones: []string{"us-central2-b"}, AsOf: zonesRead},
		Source:   "plan-tpus; autoscaler",
	},
	{
		Generation: V5e, NamePrefix: "v5litepod", Aliases: []string{"v5lite"}, AcceleratorLabel: "tpu-v5-lite-podslice",
		CoresPerChip: 1, NameCounts: Chips,
		Dimensions: 2, Small: planar, DocumentedChips: 256, MaxChips: 256,
		Machines:  []Machine{{"ct5lp-hightpu-1t", 1}, {"ct5lp-hightpu-4t", 4}, {"ct5lp-hightpu-8t", 8}},
		MultiHost: "ct5lp-hightpu-4t",
		BootDisks: []string{"pd-balanced", "pd-standard"}, ContainersPerHost: 1, FlexStart: true,
		Capacity: Capacity{
			Zones:          []string{"us-central1-a", "us-east5-a", "us-east5-b", "us-east5-c", "us-south1-a", "us-west1-c", "us-west4-a", "europe-west4-b"},
			FlexStartZones: []string{"us-central1-a", "us-west4-a"}, AsOf: zonesRead},
		Source: "plan-tpus; autoscaler",
	},
	{
		Generation: V5p, NamePrefix: "v5p", AcceleratorLabel: "tpu-v5p-slice",
		CoresPerChip: 2, NameCounts: TensorCores,
		Dimensions: 3, Small: solid, DocumentedChips: 6144, MaxChips: 8960,
		Machines: []Machine{{"ct5p-hightpu-4t", 4}}, MultiHost: "ct5p-hightpu-4t",
		BootDisks: []string{"pd-balanced", "pd-standard"}, ContainersPerHost: 1, FlexStart: true,
		Capacity: Capacity{Zones: []string{"us-central1-a", "us-east5-a", "us-east5-b", "us-east5-c", "us-south1-a", "europe-west4-b"}, AsOf: zonesRead},
		Source:   "plan-tpus; up to 8,960 chips: xpk",
	},
	{
		Generation: V6e, NamePrefix: "v6e", Aliases: []string{"trillium"}, AcceleratorLabel: "tpu-v6e-slice",
		CoresPerChip: 1, NameCounts: Chips,
		Dimensions: 2, Small: planar, DocumentedChips: 256, MaxChips: 256,
		Machines:  []Machine{{"ct6e-standard-1t", 1}, {"ct6e-standard-4t", 4}, {"ct6e-standard-8t", 8}},
		MultiHost: "ct6e-standard-4t",
		BootDisks: []string{hyperdisk}, ContainersPerHost: 1, FlexStart: true,
		Capacity: Capacity{
			Zones:          []string{"us-central1-b", "us-east1-d", "us-east4-a", "us-east4-b", "us-east5-a", "us-east5-b", "us-east5-c", "us-south1-ai1b", "us-west1-c", "europe-west4-a", "asia-northeast1-b", "southamerica-west1-a"},
			FlexStartZones: []string{"asia-northeast1-b", "us-east5-a"}, AsOf: zonesRead},
		Source: "plan-tpus; autoscaler",
	},
	{
		Generation: TPU7x, NamePrefix: "tpu7x", Aliases: []string{"v7x", "ironwood"}, AcceleratorLabel: "tpu7x",
		CoresPerChip: 2, NameCounts: TensorCores,
		Dimensions: 3, Small: solidFromOne, DocumentedChips: 9216, MaxChips: 9216,
		Machines:  []Machine{{"tpu7x-standard-1t", 1}, {"tpu7x-standard-4t", 4}},
		MultiHost: "tpu7x-standard-4t", WorkloadPolicy: true,
		BootDisks: []string{hyperdisk}, ContainersPerHost: 2, FlexStart: true,
		MinGKEVersion: "1.34.0-gke.2201000",
		Capacity:      Capacity{Zones: []string{"us-central1-ai1a", "us-central1-c"}, AsOf: zonesReadAgain},
		Source:        "plan-tpus; the tpu7x guide; xpk",
	},
	{
		Generation: TPU7, NamePrefix: "tpu7", AcceleratorLabel: "tpu7",
		CoresPerChip: 2, NameCounts: TensorCores,
		Dimensions: 3, Small: solidFromOne, DocumentedChips: 256, MaxChips: 256,
		Machines:  []Machine{{"tpu7-standard-1t", 1}, {"tpu7-standard-4t", 4}},
		MultiHost: "tpu7-standard-4t", WorkloadPolicy: true,
		BootDisks: []string{hyperdisk}, ContainersPerHost: 2,
		Capacity: Capacity{AsOf: zonesRead},
		Source:   "autoscaler and xpk only; not in Google's documentation",
	},
}
