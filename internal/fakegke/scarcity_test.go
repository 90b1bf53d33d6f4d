package fakegke

import (
	"strings"
	"testing"
	"time"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
)

func named(name string, edits ...func(*pool)) *pool {
	p := edited(edits...)
	p.Name = name
	return p
}

func TestQuotasCountChips(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		must[*containerpb.Operation](t)(api.newPool(named("a")))                  // 16 of 24 chips
		must[*containerpb.Operation](t)(api.newPool(named("reserved", reserved))) // counts against no quota
		_, err := api.newPool(named("b"))
		wantError(t, err, codes.PermissionDenied, `Insufficient regional quota to satisfy request: resource "TPUS_PER_TPU_FAMILY": request requires '16.0' and is short '8.0'. project has a quota of '24.0' with '8.0' available. View and manage quotas at https://console.cloud.google.com/iam-admin/quotas?usage=USED&project=acme.`)
		api.SetQuotas(Quota{Region: "us-west4", Limit: 16}, Quota{Metric: "OTHER", Family: "ct5lp", Limit: 20}, Quota{Region: "us-east5"}, Quota{Family: "ct6e"})
		_, err = api.newPool(named("b"))
		if text := errorText(err); !strings.HasPrefix(text, "\n\t(1) insufficient regional quota") || !strings.Contains(text, "\n\t(2) insufficient regional quota to satisfy request: resource \"OTHER\"") || strings.Contains(text, "(3)") {
			t.Errorf("two quotas: %q", text)
		}
		if n := len(api.NodePools(testCluster)); n != 3 {
			t.Errorf("%d pools, want 3: a refused one leaves nothing", n)
		}
		api.SetQuotas()
		must[*containerpb.Operation](t)(api.newPool(named("b")))
	}, WithQuota(Quota{Limit: 24}))
}

func TestReservationsRunOut(t *testing.T) {
	from := func(name string) func(*pool) {
		return func(p *pool) { reserved(p); p.Config.ReservationAffinity.Values = []string{name} }
	}
	inTime(t, func(t *testing.T, api *service) {
		must[*containerpb.Operation](t)(api.newPool(named("a", from("r"))))
		_, err := api.newPool(named("b", from("projects/acme/reservations/r/reservationBlocks/x")))
		wantError(t, err, codes.ResourceExhausted, `Reservation does not have enough resources for the request: specific reservation "projects/acme/reservations/r/reservationBlocks/x" is insufficient for node pool "b" at zone "us-west4-a": required 4 and short of 2 VM count of machine type ct5lp-hightpu-4t.`)
		_, err = api.newPool(named("b", from("s")))
		wantError(t, err, codes.NotFound, `Google Compute Engine: reservation "s" not found for node pool "b" at zone "us-west4-a".`)
		_, err = api.newPool(named("b", from("projects/other/reservations/r")))
		wantError(t, err, codes.NotFound, `Google Compute Engine: reservation "projects/other/reservations/r" not found for node pool "b" at zone "us-west4-a".`)
		_, err = api.newPool(named("b", from("v5p")))
		if !strings.HasPrefix(errorText(err), "Invalid value for field 'resource.reservationAffinity'") {
			t.Errorf("a reservation of other machines: %v", err)
		}
	}, WithReservation(Reservation{Project: "acme", Name: "r", Zone: "us-west4-a", Machine: "ct5lp-hightpu-4t", Count: 6}, Reservation{Name: "v5p", Zone: "us-west4-a", Machine: "ct5p-hightpu-4t", Count: 6}))
}

// Troubles other than a stockout show in less than a minute, by their own code
// and condition.
func TestTroublesOfNewPools(t *testing.T) {
	for trouble, want := range map[Trouble]struct {
		code      code.Code
		condition containerpb.StatusCondition_Code
		words     string
	}{
		OverQuota:      {code.Code_RESOURCE_EXHAUSTED, containerpb.StatusCondition_GCE_QUOTA_EXCEEDED, "Quota 'TPUS_PER_TPU_FAMILY' exceeded.  Limit: 0.0 in region us-west4."},
		Forbidden:      {code.Code_FAILED_PRECONDITION, containerpb.StatusCondition_UNKNOWN, "Constraint constraints/compute.vmExternalIpAccess violated for project acme."},
		OutOfAddresses: {code.Code_RESOURCE_EXHAUSTED, containerpb.StatusCondition_UNKNOWN, "IP space of 'projects/acme/regions/us-west4/subnetworks/default' is exhausted."},
		KeyDenied:      {code.Code_FAILED_PRECONDITION, containerpb.StatusCondition_CLOUD_KMS_KEY_ERROR, "Cloud KMS error when using key projects/acme/locations/us-west4/keyRings/ring/cryptoKeys/disk"},
	} {
		t.Run(string(trouble), func(t *testing.T) {
			inTime(t, func(t *testing.T, api *service) {
				op := must[*containerpb.Operation](t)(api.newPool(slicePool("v5e")))
				pass(time.Minute)
				got, p := api.op(t, op.Name), api.pool(t, "v5e")
				if got.Status != containerpb.Operation_DONE || code.Code(got.Error.GetCode()) != want.code || !strings.Contains(got.Error.GetMessage(), "["+string(trouble)+"]: Instance '") || !strings.Contains(got.Error.GetMessage(), want.words) {
					t.Errorf("operation: %v", got)
				}
				if p.Status != containerpb.NodePool_ERROR || len(p.Conditions) != 1 || p.Conditions[0].Code != want.condition || p.StatusMessage != got.Error.GetMessage() {
					t.Errorf("pool: %v", p)
				}
			}, WithStockout(Stockout{Trouble: trouble}))
		})
	}
}

func TestARunningPoolLosesInstances(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		must[*containerpb.Operation](t)(api.newPool(named("v5e", spot)))
		pass(3 * time.Minute)
		before := api.pool(t, "v5e")
		if !api.Break(testCluster+"/nodePools/v5e", 3, OutOfStock) || api.Break(testCluster+"/nodePools/none", 0, OutOfStock) {
			t.Error("Break tells whether there is such a pool")
		}
		p := api.pool(t, "v5e")
		if p.Status != containerpb.NodePool_RUNNING_WITH_ERROR || !strings.Contains(p.StatusMessage, "Expected 4, running 3, transitioning 1. Current errors: [GCE_STOCKOUT]") || p.Etag == before.Etag {
			t.Errorf("pool: %v", p)
		}
		if n := len(api.Nodes(testCluster)); n != 1+3 {
			t.Errorf("%d nodes, want 4", n)
		}
	})
}

// What a pool is made with for life is refused in an update, and so is an
// update of what somebody else has changed since.
func TestImmutableAndStale(t *testing.T) {
	const name = testCluster + "/nodePools/v5e"
	onBoth(t, nil, func(t *testing.T, _ *Server, c *container.ClusterManagerClient) {
		createCluster(t, c)
		createPool(t, c, slicePool("v5e"))
		update := func(r *containerpb.UpdateNodePoolRequest) error {
			r.Name = name
			op, err := c.UpdateNodePool(t.Context(), r)
			if err == nil {
				succeed(t, c, op, nil)
			}
			return err
		}
		read := func() *pool {
			p, err := c.GetNodePool(t.Context(), &containerpb.GetNodePoolRequest{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		old := read()
		for what, r := range map[string]*containerpb.UpdateNodePoolRequest{
			"Locations of a node pool":     {Locations: []string{"us-west4-b"}},
			"Subnetwork and pod range":     {NodeNetworkConfig: &containerpb.NodeNetworkConfig{PodRange: "other"}},
			"Machine type of a multi-host": {MachineType: "ct5lp-hightpu-8t"},
		} {
			if err := update(r); err == nil || !strings.HasPrefix(message(err), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
		private := true
		if err := update(&containerpb.UpdateNodePoolRequest{Etag: old.Etag, NodeNetworkConfig: &containerpb.NodeNetworkConfig{EnablePrivateNodes: &private}}); err != nil {
			t.Fatalf("with the current etag: %v", err)
		}
		if now := read(); !now.NetworkConfig.GetEnablePrivateNodes() || now.NetworkConfig.PodRange != old.NetworkConfig.PodRange || now.Etag == old.Etag {
			t.Errorf("after the update: %v", now)
		}
		err := update(&containerpb.UpdateNodePoolRequest{Etag: old.Etag, Tags: &containerpb.NetworkTags{Tags: []string{"a"}}})
		if err == nil || !strings.Contains(message(err), "does not match the node pool's current etag") {
			t.Errorf("with a stale etag: %v", err)
		}
	})
}
