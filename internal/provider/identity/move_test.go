package identity_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

const (
	google     = "registry.terraform.io/hashicorp/google"
	googleBeta = "registry.opentofu.org/hashicorp/google-beta"
	nodePool   = "google_container_node_pool"
)

// What cannot become a slice pool is refused with the reason, before anything
// is asked of GKE.
func TestMovesThatAreRefused(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	s := serve(t, g)
	in := "projects/" + g.Project + "/locations/" + g.Zone + "/clusters/main/nodePools/"
	for name, tt := range map[string]struct{ provider, typ, state, want string }{
		"no index":         {google, nodePool, `{"id": "` + in + `training"}`, "are called NAME-INDEX"},
		"an index of 01":   {google, nodePool, `{"id": "` + in + `v5e-01"}`, "are called NAME-INDEX"},
		"a long name":      {google, nodePool, `{"id": "` + in + strings.Repeat("v", 36) + `-0"}`, "at most 35 characters"},
		"a large index":    {google, nodePool, `{"id": "` + in + `v5e-10000"}`, "at most 9999"},
		"no path":          {google, nodePool, `{"id": "v5e-0"}`, "is not a node pool path"},
		"no id":            {google, nodePool, `{}`, "is not a node pool path"},
		"several zones":    {googleBeta, nodePool, `{"id": "` + in + `v5e-0", "node_locations": ["us-west4-a", "us-west4-b"]}`, "in 2 zones (us-west4-a, us-west4-b), and a slice is in one"},
		"a cluster":        {google, "google_container_cluster", `{"id": "` + in + `v5e-0"}`, "google_container_cluster"},
		"another provider": {"registry.terraform.io/else/google", nodePool, `{"id": "` + in + `v5e-0"}`, "registry.terraform.io/else/google"},
		"a similar name":   {"registry.terraform.io/nothashicorp/google", nodePool, `{"id": "` + in + `v5e-0"}`, "registry.terraform.io/nothashicorp/google"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := s.MoveResourceState(t.Context(), &tfprotov6.MoveResourceStateRequest{
				SourceProviderAddress: tt.provider, SourceTypeName: tt.typ, TargetTypeName: "tpu_slice_pool", SourceState: &tfprotov6.RawState{JSON: []byte(tt.state)},
			})
			if err != nil || len(resp.Diagnostics) != 1 || !strings.Contains(resp.Diagnostics[0].Detail, tt.want) {
				t.Errorf("got %v, %v, want %q", resp.Diagnostics, err, tt.want)
			}
		})
	}
	if calls := g.Calls(); len(calls) != 0 {
		t.Errorf("GKE was asked: %v", calls)
	}
}

// A slice of one host carries no topology; moved, it is read as what its
// machine type says. A state may name its one zone.
func TestMoveOfASingleHost(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("", `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}

resource "tpu_slice_pool" "one" {
  cluster     = tpu_training_cluster.main.id
  name        = "one"
  accelerator = "v5litepod-8"
}
`)
	resource.UnitTest(t, resource.TestCase{ProtoV6ProviderFactories: g.Factories(), Steps: []resource.TestStep{{Config: config, Check: func(*terraform.State) error {
		s := serve(t, g)
		moved, err := s.MoveResourceState(t.Context(), &tfprotov6.MoveResourceStateRequest{
			SourceProviderAddress: googleBeta, SourceTypeName: nodePool, TargetTypeName: "tpu_slice_pool",
			SourceState: &tfprotov6.RawState{JSON: fmt.Appendf(nil, `{"id": "projects/%s/locations/%s/clusters/main/nodePools/one-0", "node_locations": [%q]}`, g.Project, g.Zone, g.Zone)},
		})
		noErrors(t, err, moved.Diagnostics)
		if t.Failed() {
			return nil
		}
		refreshed, err := s.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
			TypeName: "tpu_slice_pool", CurrentState: moved.TargetState, CurrentIdentity: moved.TargetIdentity, Private: moved.TargetPrivate,
		})
		noErrors(t, err, refreshed.Diagnostics)
		state := read(t, refreshed.NewState, s.types["tpu_slice_pool"])
		for attr, want := range map[string]string{"name": "one", "accelerator": "v5litepod-8", "topology": "2x4", "status": "READY", "zone": g.Zone} {
			if got := text(t, state[attr]); got != want {
				t.Errorf("%s is %s, want %s", attr, got, want)
			}
		}
		return nil
	}}}})
}
