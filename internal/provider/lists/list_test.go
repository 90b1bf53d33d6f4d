package lists_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"golang.org/x/oauth2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// server is the provider as `terraform query` talks to it.
type server struct {
	tfprotov6.ProviderServer
	schemas    *tfprotov6.GetProviderSchemaResponse
	identities map[string]tftypes.Type
}

func serve(t *testing.T, g *acctest.GKE, project string) server {
	t.Helper()
	s, err := g.Factories()["tpu"]()
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := s.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	config := object(t, schemas.Provider.ValueType(), map[string]string{"project": project, "location": g.Zone, "gke_endpoint": g.Endpoint, "access_token": acctest.Token})
	resp, err := s.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.14.0", Config: config})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatal(err, resp.Diagnostics)
	}
	ids, err := s.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	out := server{s, schemas, map[string]tftypes.Type{}}
	for name, id := range ids.IdentitySchemas {
		out.identities[name] = id.ValueType()
	}
	return out
}

// object is a configuration; what is empty or not given is null.
func object(t *testing.T, typ tftypes.Type, known map[string]string) *tfprotov6.DynamicValue {
	t.Helper()
	values := map[string]tftypes.Value{}
	for name, at := range typ.(tftypes.Object).AttributeTypes {
		values[name] = tftypes.NewValue(at, nil)
		if v := known[name]; v != "" {
			values[name] = tftypes.NewValue(at, v)
		}
	}
	v, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, values))
	if err != nil {
		t.Fatal(err)
	}
	return &v
}

// strings of an object, those that are known strings.
func texts(t *testing.T, v *tfprotov6.DynamicValue, typ tftypes.Type) map[string]string {
	t.Helper()
	value, err := v.Unmarshal(typ)
	if err != nil {
		t.Fatal(err)
	}
	attrs := map[string]tftypes.Value{}
	if err := value.As(&attrs); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, a := range attrs {
		var s string
		if a.Type().Is(tftypes.String) && !a.IsNull() && a.As(&s) == nil {
			out[name] = s
		}
	}
	return out
}

// query runs one list block.
func (s server) query(t *testing.T, typ string, config map[string]string, include bool, limit int64) (names []string, results []tfprotov6.ListResourceResult) {
	t.Helper()
	lister, ok := s.ProviderServer.(tfprotov6.ListResourceServer)
	if !ok {
		t.Fatal("the server lists nothing")
	}
	stream, err := lister.ListResource(t.Context(), &tfprotov6.ListResourceRequest{
		TypeName: typ, Config: object(t, s.schemas.ListResourceSchemas[typ].ValueType(), config), IncludeResource: include, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	for r := range stream.Results {
		names, results = append(names, r.DisplayName), append(results, r)
	}
	return names, results
}

const (
	clusters = "tpu_training_cluster"
	pools    = "tpu_slice_pool"
)

// Two clusters in two zones, one of them with slice pools.
func config(g *acctest.GKE) string {
	return g.Config("infra", `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}

resource "tpu_training_cluster" "other" {
  name                = "other"
  location            = "us-central1-a"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}

resource "tpu_slice_pool" "small" {
  cluster     = tpu_training_cluster.main.id
  name        = "small"
  accelerator = "v5litepod-16"
}

resource "tpu_slice_pool" "large" {
  cluster     = tpu_training_cluster.main.id
  name        = "large"
  accelerator = "v5litepod-16"
  slice_count = 2
}
`)
}

// A list finds what there is, by project, location and cluster; each result
// has the identity to import it by and, when asked, what an import reads.
func TestLists(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	path := "projects/" + g.Project + "/locations/" + g.Zone + "/clusters/main"
	resource.UnitTest(t, resource.TestCase{ProtoV6ProviderFactories: g.Factories(), Steps: []resource.TestStep{{Config: config(g), Check: func(*terraform.State) error {
		s := serve(t, g, "")
		in := func(m map[string]string) map[string]string {
			out := map[string]string{"project": g.Project}
			for k, v := range m {
				out[k] = v
			}
			return out
		}
		const large, small = "main/large (2 x v5litepod-16 in us-west4-a)", "main/small (1 x v5litepod-16 in us-west4-a)"
		for _, c := range []struct {
			name, typ string
			config    map[string]string
			limit     int64
			want      []string
		}{
			{"every cluster", clusters, in(nil), 0, []string{"main (us-west4-a)", "other (us-central1-a)"}},
			{"of a location", clusters, in(map[string]string{"location": "us-central1-a"}), 0, []string{"other (us-central1-a)"}},
			{"of a location without any", clusters, in(map[string]string{"location": "europe-west4-a"}), 0, nil},
			{"no more than asked for", clusters, in(nil), 1, []string{"main (us-west4-a)"}},
			{"every pool", pools, in(nil), 0, []string{large, small}},
			{"of a location's clusters", pools, in(map[string]string{"location": "us-central1-a"}), 0, nil},
			{"of a cluster", pools, map[string]string{"cluster": path}, 0, []string{large, small}},
			{"one pool", pools, in(nil), 1, []string{large}},
		} {
			got, results := s.query(t, c.typ, c.config, false, c.limit)
			slices.Sort(got) // GKE promises no order
			if c.limit > 0 && len(got) == 1 {
				got = c.want // any of them
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, d)
			}
			for _, r := range results {
				if len(r.Diagnostics) > 0 {
					t.Errorf("%s: %s: %v", c.name, r.DisplayName, r.Diagnostics[0])
				}
			}
		}

		_, results := s.query(t, pools, map[string]string{"cluster": path}, true, 1)
		if len(results) != 1 || results[0].Resource == nil {
			t.Fatalf("got %+v", results)
		}
		want := map[string]string{"project": g.Project, "location": g.Zone, "cluster": "main", "name": "large"}
		if d := cmp.Diff(want, texts(t, results[0].Identity.IdentityData, s.identities[pools])); d != "" {
			t.Errorf("identity (-want +got):\n%s", d)
		}
		full := texts(t, results[0].Resource, s.schemas.ResourceSchemas[pools].ValueType())
		for name, value := range map[string]string{"id": path + "/nodePools/large", "cluster": path, "accelerator": "v5litepod-16", "topology": "4x4", "status": "READY", "zone": g.Zone} {
			if full[name] != value {
				t.Errorf("%s of the listed pool is %q, want %q", name, full[name], value)
			}
		}
		_, results = s.query(t, clusters, in(map[string]string{"location": g.Zone}), true, 0)
		if len(results) != 1 || texts(t, results[0].Resource, s.schemas.ResourceSchemas[clusters].ValueType())["status"] != "RUNNING" {
			t.Errorf("the listed cluster: %+v", results)
		}
		return nil
	}}}})
}

// A zone that does not answer is named; what the others have is listed.
func TestListsThatAreNotComplete(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	g.SetMissingZones("us-east1-d", "us-west4-b")
	s := serve(t, g, g.Project)
	for _, typ := range []string{clusters, pools} {
		names, results := s.query(t, typ, nil, false, 1)
		if len(results) != 1 || names[0] != "" || len(results[0].Diagnostics) != 1 || results[0].Identity != nil && results[0].Identity.IdentityData != nil {
			t.Fatalf("%s: got %+v", typ, results)
		}
		if d := results[0].Diagnostics[0]; d.Severity != tfprotov6.DiagnosticSeverityWarning || !strings.Contains(d.Detail, "no answer from us-east1-d, us-west4-b") {
			t.Errorf("%s: got %v", typ, d)
		}
	}
}

// An Autopilot cluster cannot be managed: no list has it, and an import says so.
func TestAutopilotClustersAreLeftOut(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	api, err := gke.New(gke.Config{Endpoint: g.Endpoint, Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: acctest.Token}), PollInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	n := gke.ClusterName{Project: g.Project, Location: "us-west4", Cluster: "auto"}
	if err := api.CreateCluster(t.Context(), n, &containerpb.Cluster{Name: n.Cluster, Autopilot: &containerpb.Autopilot{Enabled: true}}, nil); err != nil {
		t.Fatal(err)
	}
	s := serve(t, g, g.Project)
	for _, typ := range []string{clusters, pools} {
		if names, results := s.query(t, typ, nil, true, 0); len(results) != 0 {
			t.Errorf("%s lists %v", typ, names)
		}
	}
	imported, err := s.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: clusters, ID: n.String()})
	if err != nil || len(imported.ImportedResources) != 1 {
		t.Fatal(err, imported)
	}
	object := imported.ImportedResources[0]
	read, err := s.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: clusters, CurrentState: object.State, CurrentIdentity: object.Identity, Private: object.Private})
	if err != nil || len(read.Diagnostics) != 1 || !strings.Contains(read.Diagnostics[0].Detail, "clusters/auto is an Autopilot cluster") {
		t.Errorf("got %v, %v", read, err)
	}
}

// A list that cannot be made is one error that says why.
func TestListsThatFail(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	s := serve(t, g, "")
	for _, c := range []struct {
		typ    string
		config map[string]string
		want   string
	}{
		{clusters, nil, "Neither the list's config nor the provider's configuration names a project"},
		{pools, nil, "Neither the list's config nor the provider's configuration names a project"},
		{pools, map[string]string{"cluster": "projects/p/locations/us-west4-a/clusters/missing"}, "not found"},
	} {
		_, results := s.query(t, c.typ, c.config, false, 0)
		if len(results) != 1 || len(results[0].Diagnostics) != 1 || !strings.Contains(strings.ToLower(results[0].Diagnostics[0].Detail), strings.ToLower(c.want)) {
			t.Errorf("%s %v: got %+v, want %q", c.typ, c.config, results, c.want)
		}
	}
	check, err := s.ProviderServer.(tfprotov6.ListResourceServer).ValidateListResourceConfig(t.Context(), &tfprotov6.ValidateListResourceConfigRequest{TypeName: pools,
		Config: object(t, s.schemas.ListResourceSchemas[pools].ValueType(), map[string]string{"cluster": "missing"})})
	if err != nil || len(check.Diagnostics) != 1 || !strings.Contains(check.Diagnostics[0].Detail, "is not a cluster path") {
		t.Errorf("got %v, %v", check, err)
	}
}

// The command line at hand knows no list resources, so their pages are written
// by hand: each filter has its line there, word for word.
func TestListPagesSayWhatTheSchemasSay(t *testing.T) {
	t.Parallel()
	s := serve(t, acctest.NewGKE(t), "")
	if len(s.schemas.ListResourceSchemas) == 0 {
		t.Fatal("no list resources")
	}
	for name, schema := range s.schemas.ListResourceSchemas {
		file := filepath.Join("../../..", "templates", "list-resources", strings.TrimPrefix(name, "tpu_")+".md.tmpl")
		page, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		want := []string{schema.Block.Description}
		for _, a := range schema.Block.Attributes {
			want = append(want, "- `"+a.Name+"` (String) "+a.Description)
		}
		for _, line := range want {
			if !strings.Contains(string(page), line+"\n") {
				t.Errorf("%s lacks the line\n%s", file, line)
			}
		}
	}
}
