package slicepools_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	corev1 "k8s.io/api/core/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

func TestMain(m *testing.M) { acctest.Main(m) }

const address = "data.tpu_slice_pools.all"

func config(g *acctest.GKE, body string) string {
	return g.Config("team-a", `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}

resource "tpu_slice_pool" "v5e" {
  cluster      = tpu_training_cluster.main.id
  name         = "v5e"
  accelerator  = "v5litepod-16"
  slice_count  = 2
  provisioning = { model = "spot" }
}

data "tpu_slice_pools" "all" {
  cluster = tpu_slice_pool.v5e.cluster
  `+body+`
}
`)
}

func is(path tfjsonpath.Path, want knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, path, want)
}

func pools() tfjsonpath.Path { return tfjsonpath.New("pools") }

func job(name string) knownvalue.Check {
	return knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectExact(map[string]knownvalue.Check{
		"namespace": knownvalue.StringExact("default"), "name": knownvalue.StringExact(name),
		"slice": knownvalue.Int64Exact(0), "hosts": knownvalue.Int64Exact(1),
	})})
}

// It waits for a cluster that the same apply makes, and tells live who runs
// where; what changes there changes no resource.
func TestSlicePools(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	slice := func(i string) tfjsonpath.Path { return pools().AtSliceIndex(0).AtMapKey("slices").AtMapKey(i) }
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config(g, ""),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectUnknownValue(address, pools()),
				}},
				ConfigStateChecks: []statecheck.StateCheck{
					is(pools(), knownvalue.ListSizeExact(1)),
					is(pools().AtSliceIndex(0), knownvalue.ObjectPartial(map[string]knownvalue.Check{
						"name": knownvalue.StringExact("v5e"), "owner": knownvalue.StringExact("team-a"), "managed": knownvalue.Bool(true),
						"accelerator": knownvalue.StringExact("v5litepod-16"), "topology": knownvalue.StringExact("4x4"),
						"zone": knownvalue.StringExact(g.Zone), "spot": knownvalue.Bool(true),
						"chips_per_slice": knownvalue.Int64Exact(16), "chips": knownvalue.Int64Exact(32), "hosts_per_slice": knownvalue.Int64Exact(4),
						"ready_slices": knownvalue.Int64Exact(2), "busy_slices": knownvalue.Int64Exact(0), "slices": knownvalue.MapSizeExact(2),
					})),
					is(slice("0"), knownvalue.ObjectPartial(map[string]knownvalue.Check{
						"node_pool": knownvalue.StringExact("v5e-0"), "status": knownvalue.StringExact("RUNNING"), "message": knownvalue.StringExact(""),
						"hosts": knownvalue.Int64Exact(4), "jobs": knownvalue.ListSizeExact(0),
					})),
				},
			},
			{
				PreConfig:        func() { g.Cluster.Run("train", "v5e-1") },
				Config:           config(g, ""),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				ConfigStateChecks: []statecheck.StateCheck{
					is(pools().AtSliceIndex(0).AtMapKey("busy_slices"), knownvalue.Int64Exact(1)),
					is(slice("0").AtMapKey("jobs"), knownvalue.ListSizeExact(0)),
					is(slice("1").AtMapKey("jobs"), job("train")),
				},
			},
			{Config: config(g, `name = "v5e"`), ConfigStateChecks: []statecheck.StateCheck{is(pools(), knownvalue.ListSizeExact(1))}},
			{Config: config(g, `name = "v6e"`), ConfigStateChecks: []statecheck.StateCheck{is(pools(), knownvalue.ListSizeExact(0))}},
		},
	})
}

// deaf are control planes that nobody reaches.
type deaf struct{ fakegke.Endpoint }

func newDeaf() deaf {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return deaf{fakegke.Endpoint{
		Host: strings.TrimPrefix(s.URL, "https://"), CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	}}
}

func (d deaf) Start(context.Context, string) (fakegke.Endpoint, error)      { return d.Endpoint, nil }
func (deaf) Stop(context.Context, string) error                             { return nil }
func (deaf) SetNodes(context.Context, string, string, []*corev1.Node) error { return nil }

// "Nobody runs there" and "nobody could be asked" must not look alike.
func TestUnreachableClusterIsAnError(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t, fakegke.WithControlPlanes(newDeaf()))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{{
			// The clean-up could not find out either what runs there: force.
			Config:      strings.Replace(config(g, ""), "deletion_protection = false", "deletion_protection = false\n  force = true", 1),
			ExpectError: regexp.MustCompile(`(?s)Could not read what runs on the slices of.*clusters/main.*does\s+not\s+answer`),
		}},
	})
}

// A cluster that does not exist is named, with what to do.
func TestMissingClusterIsAnError(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{{
			Config:      g.Config("", "data \"tpu_slice_pools\" \"all\" {\n  cluster = \"projects/p/locations/us-west4-a/clusters/lost\"\n}\n"),
			ExpectError: regexp.MustCompile(`(?s)There is no such cluster.*clusters/lost.*tpu_training_cluster`),
		}},
	})
}
