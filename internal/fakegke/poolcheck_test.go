package fakegke

import (
	"context"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

type pool = containerpb.NodePool

// edited is the slice pool of the harness with changes.
func edited(edits ...func(p *pool)) *pool {
	p := slicePool("p")
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func machineType(name string) func(*pool) { return func(p *pool) { p.Config.MachineType = name } }
func topology(name string) func(*pool)    { return func(p *pool) { p.PlacementPolicy.TpuTopology = name } }
func nodes(n int32) func(*pool)           { return func(p *pool) { p.InitialNodeCount = n } }
func spot(p *pool)                        { p.Config.Spot = true }
func noPlacement(p *pool)                 { p.PlacementPolicy = nil }
func policy(name string) func(*pool) {
	return func(p *pool) { p.PlacementPolicy = &containerpb.NodePool_PlacementPolicy{PolicyName: name} }
}
func autoscaled(most int32) func(*pool) {
	return func(p *pool) {
		p.Autoscaling = &containerpb.NodePoolAutoscaling{Enabled: true, TotalMaxNodeCount: most}
	}
}
func flexStart(p *pool) {
	p.Config.FlexStart = proto.Bool(true)
	p.Management = &containerpb.NodeManagement{AutoUpgrade: true}
	nodes(0)(p)
	autoscaled(4)(p)
}
func queued(p *pool) {
	p.QueuedProvisioning = &containerpb.NodePool_QueuedProvisioning{Enabled: true}
}
func reserved(p *pool) {
	p.Config.ReservationAffinity = &containerpb.ReservationAffinity{
		ConsumeReservationType: specificReservation, Key: "compute.googleapis.com/reservation-name", Values: []string{"r"},
	}
}

func TestNodePoolsThatGKERefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		pool *pool
		want string // "" = accepted
	}{
		"a multi-host slice":      {edited(), ""},
		"an account of no domain": {edited(func(p *pool) { p.Config.ServiceAccount = "foo" }), `Service account "foo" is not a valid service account email.`},
		"an unknown image type":   {edited(func(p *pool) { p.Config.ImageType = "ubuntoo" }), `Image type "ubuntoo" is not supported.`},
		"a tag twice":             {edited(func(p *pool) { p.Config.Tags = []string{"a", "a"} }), `Invalid value for field 'resource.properties.tags': network tag "a" is invalid or there twice.`},
		"a tag in capitals":       {edited(func(p *pool) { p.Config.Tags = []string{"A_b"} }), `Invalid value for field 'resource.properties.tags': network tag "A_b" is invalid or there twice.`},
		"a disk image of nothing": {edited(func(p *pool) {
			p.Config.SecondaryBootDisks = []*containerpb.SecondaryBootDisk{{DiskImage: "foo"}}
		}), `Secondary boot disk image "foo" is invalid or there twice.`},
		"an unknown profile": {edited(func(p *pool) {
			p.NetworkConfig = &containerpb.NodeNetworkConfig{AcceleratorNetworkProfile: "foo"}
		}), `Accelerator network profile "foo" is not supported.`},
		"too many in an upgrade": {edited(func(p *pool) {
			p.UpgradeSettings = &containerpb.NodePool_UpgradeSettings{MaxSurge: 30, MaxUnavailable: 30}
		}), "Max surge and max unavailable must not be more than 20 together."},
		"fewer than no hosts":     {edited(autoscaled(4), func(p *pool) { p.Autoscaling.TotalMinNodeCount = -1 }), "Node pool autoscaling: minimum node count must be non-negative."},
		"eight-chip hosts":        {edited(noPlacement, machineType("ct5lp-hightpu-8t"), nodes(1)), ""},
		"single hosts":            {edited(noPlacement, nodes(3)), ""},
		"v5p":                     {edited(machineType("ct5p-hightpu-4t"), topology("2x2x2"), nodes(2)), ""},
		"v6e":                     {edited(machineType("ct6e-standard-4t")), ""},
		"tpu7x":                   {edited(machineType("tpu7x-standard-4t"), policy("wp"), nodes(2)), ""},
		"flex-start":              {edited(flexStart), ""},
		"autoscaled from nothing": {edited(nodes(0), autoscaled(4)), ""},
		"a reservation":           {edited(reserved), ""},

		"name":              {edited(func(p *pool) { p.Name = "Upper" }), `Invalid value for field "node_pool.name": "Upper". Name must start`},
		"long name":         {edited(func(p *pool) { p.Name = strings.Repeat("a", 41) }), `Invalid value for field "node_pool.name"`},
		"no such machine":   {edited(noPlacement, machineType("q9-standard-4")), `Machine type with name "q9-standard-4" does not exist in zone "us-west4-a".`},
		"too few hosts":     {edited(nodes(2)), "Requested invalid target size '2' for a Managed Instance Group in the gang mode of size '4'"},
		"no hosts":          {edited(nodes(0)), "Requested invalid target size '0' for a Managed Instance Group in the gang mode of size '4'"},
		"autoscaled wrong":  {edited(nodes(0), autoscaled(3)), "Maximum node count 3 is not a valid size of TPU pod slice with topology 4x4"},
		"single host":       {edited(topology("2x2"), nodes(1)), "TPU topology can't be specified with single-host TPU slice pool"},
		"no such topology":  {edited(topology("3x5")), `TPU topology "3x5" is not valid for machine type "ct5lp-hightpu-4t"`},
		"no topology":       {edited(topology("big")), `Invalid TPU topology "big"`},
		"topology on CPUs":  {edited(machineType("e2-standard-4")), `TPU topology "4x4" can't be specified for machine type "e2-standard-4"`},
		"v6e disk":          {edited(machineType("ct6e-standard-4t"), func(p *pool) { p.Config.DiskType = "pd-balanced" }), "pd-balanced disk type cannot be used by ct6e-standard-4t machine type."},
		"v5e disk":          {edited(func(p *pool) { p.Config.DiskType = "hyperdisk-balanced" }), "hyperdisk-balanced disk type cannot be used by ct5lp-hightpu-4t machine type."},
		"tpu7x compact":     {edited(machineType("tpu7x-standard-4t"), topology("2x2x2"), nodes(2)), "Creation of a managed instance group with tpu7x-standard-4t machine type with placement policy is not supported. Use workload policy instead."},
		"tpu7x odd size":    {edited(machineType("tpu7x-standard-4t"), policy("wp"), nodes(3)), "Requested invalid target size '3' for a Managed Instance Group in the gang mode"},
		"two zones":         {edited(func(p *pool) { p.Locations = []string{"us-west4-a", "us-west4-b"} }), "Compact placement policy requires exactly one zone"},
		"other region":      {edited(func(p *pool) { p.Locations = []string{"us-east5-a"} }), `Node pool location "us-east5-a" is not a zone of region "us-west4".`},
		"spot reservation":  {edited(spot, reserved), "Spot VMs can't consume reservations."},
		"flex-start queued": {edited(flexStart, queued), "Flex start node pools don't support TPUs with queued provisioning"},
		"flex-start repair": {edited(flexStart, func(p *pool) { p.Management.AutoRepair = true }), "Flex start node pools require node auto-repair to be disabled."},
		"flex-start spot":   {edited(flexStart, spot), "Flex start node pools can't use Spot VMs or reservations."},
		"flex-start static": {edited(flexStart, nodes(4)), "Flex start node pools require autoscaling and an initial node count of 0."},
		"flex-start long":   {edited(flexStart, func(p *pool) { p.Config.MaxRunDuration = durationpb.New(8 * 24 * time.Hour) }), "Max run duration of flex start node pools must not be longer than 7 days."},
		"queued spot":       {edited(queued, spot), "Queued provisioning can't be used with Spot VMs or reservations."},
		"queued affinity":   {edited(queued, nodes(0), autoscaled(4)), "Queued_provisioning requires reservation affinity to be set to none"},
		"queued minimum":    {edited(queued, autoscaled(4), func(p *pool) { p.Autoscaling.TotalMinNodeCount = 4 }), "Queued provisioning requires a minimum node count of 0."},
		"blue-green": {edited(func(p *pool) {
			p.UpgradeSettings = &containerpb.NodePool_UpgradeSettings{Strategy: containerpb.NodePoolUpdateStrategy_BLUE_GREEN.Enum()}
		}), "Compact placement policy can't be used with blue-green upgrades."},
		"no upgrades":    {edited(func(p *pool) { p.Management = &containerpb.NodeManagement{AutoRepair: true} }), "Auto_upgrade must be true when release_channel RAPID is set."},
		"too many nodes": {edited(noPlacement, nodes(1001)), `Node pool "p" has 1001 nodes per zone, the limit is 1000.`},
		"reserved label": {edited(func(p *pool) { p.Config.Labels = map[string]string{"kubernetes.io/x": "y"} }), `Node labels with key "kubernetes.io/x" are managed by GKE or Kubernetes and must not be manually specified.`},
		"taint":          {edited(func(p *pool) { p.Config.Taints = []*containerpb.NodeTaint{{Key: "k"}} }), `Node taint "k" must have a key and an effect.`},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, api *service) {
				api.settle(func(next state) { // the policy that tpu7x pools name here
					next.policies[policyPath("acme", "us-west4", "wp")] = &resourcePolicy{Name: "wp", Status: "READY"}
				})
				_, err := api.newPool(tc.pool)
				if tc.want == "" {
					if err != nil {
						t.Fatal(err)
					}
					pass(3 * time.Minute)
					if got := api.pool(t, "p"); got.Status != containerpb.NodePool_RUNNING {
						t.Errorf("the pool is %s: %s", got.Status, got.StatusMessage)
					}
					return
				}
				if !strings.HasPrefix(errorText(err), tc.want) {
					t.Errorf("got %q\nwant %q", errorText(err), tc.want)
				}
				if n := len(api.NodePools(testCluster)); n != 1 {
					t.Errorf("a refused pool was kept")
				}
			})
		})
	}
}

func TestAMultiHostSliceIsNotResized(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		must[*containerpb.Operation](t)(api.newPool(slicePool("v5e")))
		pass(3 * time.Minute)
		resize := func(n int32) error {
			_, err := api.SetNodePoolSize(context.Background(), &containerpb.SetNodePoolSizeRequest{Name: testCluster + "/nodePools/v5e", NodeCount: n})
			return err
		}
		wantError(t, resize(16), codes.InvalidArgument, "Requested invalid target size '16' for a Managed Instance Group in the gang mode of size '4'")
		for _, n := range []int32{0, 4} { // all hosts or none
			if err := resize(n); err != nil {
				t.Fatal(err)
			}
			pass(2 * time.Minute)
			if got := len(api.Nodes(testCluster)) - 1; got != int(n) {
				t.Errorf("%d hosts, want %d", got, n)
			}
		}
	})
}

func TestUpdatesOfANodePool(t *testing.T) {
	const name = testCluster + "/nodePools/v5e"
	for title, tc := range map[string]struct {
		update *containerpb.UpdateNodePoolRequest
		code   codes.Code
		want   string
		check  func(p *pool) bool
	}{
		"labels": {update: &containerpb.UpdateNodePoolRequest{Labels: &containerpb.NodeLabels{Labels: map[string]string{"a": "b"}}},
			check: func(p *pool) bool { return p.Config.Labels["a"] == "b" }},
		"no taints": {update: &containerpb.UpdateNodePoolRequest{Taints: &containerpb.NodeTaints{}},
			check: func(p *pool) bool { return len(p.Config.Taints) == 0 }},
		"version": {update: &containerpb.UpdateNodePoolRequest{NodeVersion: "1.35", ImageType: "COS_CONTAINERD"},
			check: func(p *pool) bool { return strings.HasPrefix(p.Version, "1.35.") }},
		"resource labels": {update: &containerpb.UpdateNodePoolRequest{ResourceLabels: &containerpb.ResourceLabels{Labels: map[string]string{"a": "b"}}},
			check: func(p *pool) bool { return len(p.Config.ResourceLabels) == 2 }},
		"nothing":      {update: &containerpb.UpdateNodePoolRequest{}, code: codes.InvalidArgument, want: "Exactly one kind of change of a node pool can be made at a time, got 0."},
		"two":          {update: &containerpb.UpdateNodePoolRequest{Labels: &containerpb.NodeLabels{}, Tags: &containerpb.NetworkTags{}}, code: codes.InvalidArgument, want: "Exactly one kind of change of a node pool can be made at a time, got 2."},
		"etag":         {update: &containerpb.UpdateNodePoolRequest{Etag: "old", Tags: &containerpb.NetworkTags{}}, code: codes.Aborted, want: "The etag old does not match the node pool's current etag."},
		"machine type": {update: &containerpb.UpdateNodePoolRequest{MachineType: "ct5lp-hightpu-8t"}, code: codes.InvalidArgument, want: "Machine type of a multi-host TPU slice node pool can't be changed."},
		"bad version":  {update: &containerpb.UpdateNodePoolRequest{NodeVersion: "2.0"}, code: codes.InvalidArgument, want: `Node version "2.0" is unsupported.`},
	} {
		t.Run(title, func(t *testing.T) {
			inTime(t, func(t *testing.T, api *service) {
				must[*containerpb.Operation](t)(api.newPool(slicePool("v5e")))
				pass(3 * time.Minute)
				before := api.pool(t, "v5e")
				tc.update.Name = name
				_, err := api.UpdateNodePool(context.Background(), tc.update)
				if tc.want != "" {
					wantError(t, err, tc.code, tc.want)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if p := api.pool(t, "v5e"); p.Status != containerpb.NodePool_RECONCILING {
					t.Errorf("while it updates the pool is %s", p.Status)
				}
				pass(10 * time.Minute)
				p := api.pool(t, "v5e")
				if !tc.check(p) || p.Status != containerpb.NodePool_RUNNING || p.Etag == before.Etag {
					t.Errorf("after the update: %v", p)
				}
			})
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	_, text, _ := strings.Cut(err.Error(), "desc = ")
	return text
}
