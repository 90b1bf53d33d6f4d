package identity_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// server is the provider as Terraform talks to it, configured for g.
type server struct {
	tfprotov6.ProviderServer
	types map[string]tftypes.Type // of each resource's state
}

func serve(t *testing.T, g *acctest.GKE) server {
	t.Helper()
	s, err := g.Factories()["tpu"]()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := s.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	configType := schema.Provider.ValueType().(tftypes.Object)
	values := map[string]tftypes.Value{}
	for name, typ := range configType.AttributeTypes {
		values[name] = tftypes.NewValue(typ, nil)
	}
	for name, v := range map[string]string{"project": g.Project, "location": g.Zone, "gke_endpoint": g.Endpoint, "access_token": acctest.Token} {
		values[name] = tftypes.NewValue(tftypes.String, v)
	}
	resp, err := s.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.14.0", Config: dynamic(t, configType, values)})
	noErrors(t, err, resp.Diagnostics)
	out := server{s, map[string]tftypes.Type{}}
	for name, r := range schema.ResourceSchemas {
		out.types[name] = r.ValueType()
	}
	return out
}

func dynamic(t *testing.T, typ tftypes.Type, values map[string]tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	v, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, values))
	if err != nil {
		t.Fatal(err)
	}
	return &v
}

func noErrors(t *testing.T, err error, diags []*tfprotov6.Diagnostic) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range diags {
		t.Errorf("%s: %s", d.Summary, d.Detail)
	}
}

// identityType is the type of an identity with these keys.
func identityType(keys []string) tftypes.Object {
	attrs := map[string]tftypes.Type{}
	for _, k := range keys {
		attrs[k] = tftypes.String
	}
	return tftypes.Object{AttributeTypes: attrs}
}

// identityOf writes an identity; keys that are not given are null.
func identityOf(t *testing.T, keys []string, values map[string]string) *tfprotov6.ResourceIdentityData {
	t.Helper()
	out := map[string]tftypes.Value{}
	for _, k := range keys {
		out[k] = tftypes.NewValue(tftypes.String, nil)
		if v, ok := values[k]; ok {
			out[k] = tftypes.NewValue(tftypes.String, v)
		}
	}
	return &tfprotov6.ResourceIdentityData{IdentityData: dynamic(t, identityType(keys), out)}
}

func read(t *testing.T, v *tfprotov6.DynamicValue, typ tftypes.Type) map[string]tftypes.Value {
	t.Helper()
	value, err := v.Unmarshal(typ)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]tftypes.Value{}
	if err := value.As(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(t *testing.T, v tftypes.Value) string {
	t.Helper()
	var s string
	if err := v.As(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// What every resource's identity consists of, and the id it stands for.
var identities = map[string]struct {
	values map[string]string
	id     string
}{
	"tpu_training_cluster":      {map[string]string{"name": "c"}, ""},
	"tpu_slice_pool":            {map[string]string{"cluster": "c", "name": "v5e"}, "/nodePools/v5e"},
	"tpu_job_controllers":       {map[string]string{"cluster": "c"}, "/jobControllers"},
	"tpu_training_namespace":    {map[string]string{"cluster": "c", "name": "research"}, "/namespaces/research"},
	"tpu_kueue_flavor":          {map[string]string{"cluster": "c", "name": "v5e"}, "/resourceFlavors/v5e"},
	"tpu_kueue_cohort":          {map[string]string{"cluster": "c", "name": "all"}, "/cohorts/all"},
	"tpu_kueue_priority":        {map[string]string{"cluster": "c", "name": "p"}, "/workloadPriorityClasses/p"},
	"tpu_kueue_admission_check": {map[string]string{"cluster": "c", "name": "dws"}, "/admissionChecks/dws"},
	"tpu_kueue_queue":           {map[string]string{"cluster": "c", "name": "research"}, "/clusterQueues/research"},
	"tpu_training_jobset":       {map[string]string{"cluster": "c", "namespace": "research", "name": "train"}, "/namespaces/research/jobsets/train"},
}

// Import by identity, with project and location from the provider, is import
// by id; and what turns out not to exist is "gone", not an error about a
// missing identity.
func TestImportByIdentity(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	s := serve(t, g)
	schemas, err := s.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	noErrors(t, err, schemas.Diagnostics)
	for name, tt := range identities {
		t.Run(name, func(t *testing.T) {
			keys := append(slices.Sorted(maps.Keys(tt.values)), "location", "project")
			slices.Sort(keys)
			var has []string
			for _, a := range schemas.IdentitySchemas[name].IdentityAttributes {
				has = append(has, a.Name)
				if optional := a.Name == "project" || a.Name == "location"; a.OptionalForImport != optional || a.RequiredForImport == optional {
					t.Errorf("%s: optional %t, required %t", a.Name, a.OptionalForImport, a.RequiredForImport)
				}
			}
			slices.Sort(has)
			if diff := cmp.Diff(keys, has); diff != "" {
				t.Fatalf("identity (-want +got):\n%s", diff)
			}
			want := maps.Clone(tt.values)
			want["project"], want["location"] = g.Project, g.Zone
			id := "projects/" + g.Project + "/locations/" + g.Zone + "/clusters/c" + tt.id

			for form, req := range map[string]*tfprotov6.ImportResourceStateRequest{
				"identity": {TypeName: name, Identity: identityOf(t, keys, tt.values)},
				"id":       {TypeName: name, ID: id},
			} {
				resp, err := s.ImportResourceState(t.Context(), req)
				noErrors(t, err, resp.Diagnostics)
				if t.Failed() {
					t.FailNow()
				}
				one := resp.ImportedResources[0]
				if got := text(t, read(t, one.State, s.types[name])["id"]); got != id {
					t.Errorf("by %s: id %s, want %s", form, got, id)
				}
				got := map[string]string{}
				for k, v := range read(t, one.Identity.IdentityData, identityType(keys)) {
					got[k] = text(t, v)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("by %s: identity (-want +got):\n%s", form, diff)
				}
				// As Terraform before 1.12 asks: without the identity.
				gone, err := s.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: name, CurrentState: one.State, Private: one.Private})
				if err == nil && len(gone.Diagnostics) == 1 && strings.Contains(gone.Diagnostics[0].Summary, "to import") {
					continue // refused in words of its own
				}
				noErrors(t, err, gone.Diagnostics)
				if v, err := gone.NewState.Unmarshal(s.types[name]); err != nil || !v.IsNull() {
					t.Errorf("by %s: what does not exist was read as %v (%v)", form, v, err)
				}
			}
		})
	}
	t.Run("a path where a name belongs would name another object", func(t *testing.T) {
		resp, err := s.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
			TypeName: "tpu_slice_pool",
			Identity: identityOf(t, []string{"cluster", "location", "name", "project"}, map[string]string{"cluster": "projects/p/locations/l/clusters/c", "name": "v5e"}),
		})
		if err != nil || len(resp.Diagnostics) != 1 || !strings.Contains(resp.Diagnostics[0].Detail, "want a name, not a path") {
			t.Errorf("got %+v, %v", resp, err)
		}
	})
	if len(identities) != len(s.types) {
		t.Errorf("%d resources, %d of them with an identity here", len(s.types), len(identities))
	}
}

// The command line that there is: identities do not disturb it, and short ids
// import clusters and slice pools as they are.
func TestShortIDs(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("", `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}

resource "tpu_slice_pool" "v5e" {
  cluster     = tpu_training_cluster.main.id
  name        = "v5e"
  accelerator = "v5litepod-16"
}
`)
	steps := []resource.TestStep{{Config: config}}
	for _, id := range []string{"main/v5e", g.Zone + "/main/v5e", g.Project + "/" + g.Zone + "/main/v5e"} {
		steps = append(steps, resource.TestStep{Config: config, ResourceName: "tpu_slice_pool.v5e", ImportState: true, ImportStateId: id, ImportStateVerify: true})
	}
	for _, id := range []string{"main", g.Zone + "/main"} {
		steps = append(steps, resource.TestStep{Config: config, ResourceName: "tpu_training_cluster.main", ImportState: true, ImportStateId: id,
			ImportStateVerify: true, ImportStateVerifyIgnore: []string{"deletion_protection", "release_channel"}})
	}
	resource.UnitTest(t, resource.TestCase{ProtoV6ProviderFactories: g.Factories(), Steps: steps})
}

// A slice that hashicorp/google manages becomes a slice pool of this slice
// alone; what cannot be one is refused with the reason.
func TestMoveFromNodePool(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	in := "projects/" + g.Project + "/locations/" + g.Zone + "/clusters/main"
	config := g.Config("somebody-else", `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}

resource "tpu_slice_pool" "v5e" {
  cluster     = tpu_training_cluster.main.id
  name        = "v5e"
  accelerator = "v5litepod-16"
  slice_count = 3
}
`)
	move := func(s server, provider, typ, id string) *tfprotov6.MoveResourceStateResponse {
		resp, err := s.MoveResourceState(t.Context(), &tfprotov6.MoveResourceStateRequest{
			SourceProviderAddress: provider, SourceTypeName: typ, TargetTypeName: "tpu_slice_pool",
			SourceState: &tfprotov6.RawState{JSON: []byte(`{"id": "` + id + `", "node_count": 4}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	const google = "registry.terraform.io/hashicorp/google"
	resource.UnitTest(t, resource.TestCase{ProtoV6ProviderFactories: g.Factories(), Steps: []resource.TestStep{{Config: config, Check: func(*terraform.State) error {
		s := serve(t, g)
		moved := move(s, google, "google_container_node_pool", in+"/nodePools/v5e-2")
		noErrors(t, nil, moved.Diagnostics)
		if t.Failed() {
			return nil
		}
		identity := read(t, moved.TargetIdentity.IdentityData, identityType([]string{"cluster", "location", "name", "project"}))
		if got := text(t, identity["name"]); got != "v5e" {
			t.Errorf("identity: name %s", got)
		}
		refreshed, err := s.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
			TypeName: "tpu_slice_pool", CurrentState: moved.TargetState, CurrentIdentity: moved.TargetIdentity, Private: moved.TargetPrivate,
		})
		noErrors(t, err, refreshed.Diagnostics)
		state := read(t, refreshed.NewState, s.types["tpu_slice_pool"])
		for attr, want := range map[string]string{"id": in + "/nodePools/v5e", "name": "v5e", "accelerator": "v5litepod-16", "status": "READY", "zone": g.Zone} {
			if got := text(t, state[attr]); got != want {
				t.Errorf("%s is %s, want %s", attr, got, want)
			}
		}
		pools := map[string]tftypes.Value{}
		if err := state["slices"].As(&pools); err != nil || len(pools) != 1 || pools["2"].IsNull() {
			t.Errorf("slices: %v (%v)", pools, err)
		}

		for id, want := range map[string]string{in + "/nodePools/training": "NAME-INDEX", "v5e-0": "is not a node pool path", in + "/nodePools/v5e-99999": "at most 9999"} {
			if d := move(s, google, "google_container_node_pool", id).Diagnostics; len(d) != 1 || !strings.Contains(d[0].Detail, want) {
				t.Errorf("%s: got %v, want %q", id, d, want)
			}
		}
		for _, other := range [][2]string{{google, "google_container_cluster"}, {"registry.terraform.io/else/google", "google_container_node_pool"}} {
			if d := move(s, other[0], other[1], in+"/nodePools/v5e-2").Diagnostics; len(d) != 1 {
				t.Errorf("a move from %v: %v", other, d)
			}
		}
		return nil
	}}}})
}
