package slicepool_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// Whatever GKE would refuse, or accept and never fulfil, is refused at plan,
// with the nearest valid choice. One plan finds all of it, and changes nothing.
func TestEveryRefusalAtPlan(t *testing.T) {
	t.Parallel()
	const v5e = "accelerator = \"v5litepod-16\"\nslice_count = 1\n"
	model := func(model, more string) string {
		return v5e + "provisioning = { model = \"" + model + "\" }\n" + more
	}
	refused := map[string]struct{ body, want string }{
		"zone":                 {v5e + `zone = "us-east1-c"`, "not in the cluster's region us-west4"},
		"flex-repair":          {model("flex_start", "management = { auto_repair = true }"), "set management.auto_repair = false"},
		"flex-static":          {model("flex_start", "autoscaling = { min_hosts = 4 }"), "set autoscaling.min_hosts = 0"},
		"flex-reservation":     {v5e + `provisioning = { model = "flex_start", reservation = "r" }`, `"flex_start" takes no reservation`},
		"flex-long":            {v5e + `provisioning = { model = "flex_start", max_run_duration = "169h" }`, "set 168h or less"},
		"flex-v4":              {"accelerator = \"v4-16\"\nslice_count = 1\nprovisioning = { model = \"flex_start\" }", "use on_demand, spot or reservation"},
		"spot-reservation":     {v5e + `provisioning = { model = "spot", reservation = "r" }`, `"spot" takes no reservation`},
		"queued-reservation":   {v5e + `provisioning = { model = "queued", reservation = "r" }`, `"queued" takes no reservation`},
		"queued-minimum":       {model("queued", "autoscaling = { min_hosts = 4 }"), "set autoscaling.min_hosts = 0"},
		"reservations":         {v5e + `provisioning = { model = "reservation", reservation = "a,b" }`, "make a slice pool for each"},
		"blue-green":           {v5e + `upgrade = { strategy = "blue_green" }`, `set upgrade.strategy = "surge"`},
		"maximum":              {v5e + `autoscaling = { max_hosts = 8 }`, "set 4, or leave it out"},
		"disk-v6e":             {"accelerator = \"v6e-16\"\nslice_count = 1\nnode = { boot_disk = { type = \"pd-balanced\" } }", "set node.boot_disk.type to hyperdisk-balanced"},
		"disk-tpu7x":           {"accelerator = \"tpu7x-16\"\nslice_count = 1\nnode = { boot_disk = { type = \"pd-ssd\" } }", "set node.boot_disk.type to hyperdisk-balanced"},
		"single-host-topology": {"accelerator = \"v5litepod-1\"\nslice_count = 1\nnode_pool_overrides = jsonencode({ placementPolicy = { tpuTopology = \"1x1\" } })", "follows from accelerator"},
		"policy-name":          {v5e + `placement_policy = "p"`, "takes none"},
		"max-pods":             {v5e + "node = { max_pods = 300 }", "want 8 to 256"},
		"label":                {v5e + `node = { labels = { "cloud.google.com/compute-class" = "a" } }`, "reserved for GKE and Kubernetes: use a domain of your own"},
		"label-value":          {v5e + `node = { labels = { "a" = "b c" } }`, "is not a label value"},
		"taint":                {v5e + `node = { taints = [{ key = "google.com/tpu", value = "present", effect = "NoSchedule" }] }`, "leave it out"},
		"taint-kubernetes":     {v5e + `node = { taints = [{ key = "node.kubernetes.io/not-ready", value = "", effect = "NoSchedule" }] }`, "use a domain of your own"},
		"pod-range":            {"accelerator = \"v5litepod-16\"\nslice_count = 3000", "at most 2048 slices fit"},
		"own-range":            {v5e + `node_pool_overrides = jsonencode({ networkConfig = { createPodRange = true, podIpv4CidrBlock = "10.9.0.0/26" } })`, "at most 0 slices fit; with node.max_pods = 8 all of them do"},
		"surge":                {v5e + `upgrade = { strategy = "surge", max_surge = 30, max_unavailable = 30 }`, "60 together; GKE allows at most 20"},
		"channel":              {v5e + `management = { auto_upgrade = false }`, "the cluster is on release channel"},
		"newer":                {v5e + `version = "1.99"`, "nodes are never newer than it"},
		"nodes":                {"accelerator = \"v5litepod-256\"\nslice_count = 1016", "at most 1015 slices fit"},
	}
	// These are refused before there is a plan, by validate.
	invalid := map[string]struct{ body, want string }{
		"name":            {v5e, "the most is 35"}, // its own name below
		"resource-label":  {v5e + `resource_labels = { "goog-x" = "y" }`, "Google's own: choose another key"},
		"version":         {v5e + `version = "latest"`, `"latest" is not a GKE version`},
		"min-hosts":       {v5e + `autoscaling = { min_hosts = -1 }`, "at least 0, got: -1"},
		"max-hosts":       {v5e + `autoscaling = { max_hosts = 0 }`, "at least 1, got: 0"},
		"timeout":         {v5e + `timeouts = { create = "0s" }`, `"0s" is no time at all`},
		"timeout-past":    {v5e + `timeouts = { delete = "-5m" }`, `"-5m" is no time at all`},
		"account":         {v5e + `node = { service_account = "foo" }`, `"foo" is not a service account`},
		"image-type":      {v5e + `node = { image_type = "ubuntoo" }`, "want COS_CONTAINERD or UBUNTU_CONTAINERD"},
		"disk-image":      {v5e + `node = { secondary_boot_disks = ["foo", "foo"] }`, "want projects/PROJECT/global/images/IMAGE"},
		"tag-twice":       {v5e + `node = { tags = ["a", "a"] }`, `"a" is there twice`},
		"tag":             {v5e + `node = { tags = ["A_b"] }`, `"A_b" is not a network tag`},
		"network-profile": {v5e + `node = { network_profile = "foo" }`, `must be one of: ["auto"]`},
		"no-reservation":  {v5e + `provisioning = { model = "reservation", reservation = "" }`, "names no reservation"},
		"flex-no-time":    {v5e + `provisioning = { model = "flex_start", max_run_duration = "0s" }`, `"0s" is no time at all`},
		"own-label":       {v5e + `resource_labels = { "tpu-provider-owner" = "y" }`, "written by the provider only"},
	}
	g := acctest.NewGKE(t)
	config := func(all map[string]struct{ body, want string }) string {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(all)) {
			pool := name
			if name == "name" {
				pool = strings.Repeat("x", 36)
			}
			fmt.Fprintf(&b, "resource \"tpu_slice_pool\" %q {\n  cluster = tpu_training_cluster.main.id\n  name    = %q\n%s\n}\n", name, pool, all[name].body)
		}
		return g.Config("refused", clusterHCL+b.String())
	}
	for _, all := range []map[string]struct{ body, want string }{refused, invalid} {
		resource.UnitTest(t, resource.TestCase{
			ProtoV6ProviderFactories: g.Factories(),
			ErrorCheck: func(err error) error {
				var wrong []error
				for name, c := range all {
					if !told(err, name, c.want) {
						wrong = append(wrong, fmt.Errorf("%s is not told %q", name, c.want))
					}
				}
				if len(wrong) > 0 {
					wrong = append(wrong, err)
				}
				return errors.Join(wrong...)
			},
			Steps: []resource.TestStep{
				{Config: g.Config("refused", clusterHCL)},
				{Config: config(all)},
				{Config: g.Config("refused", clusterHCL)}, // for the destroy at the end
			},
		})
	}
	if n := g.Calls()["CreateNodePool"]; n != 0 {
		t.Errorf("%d node pools were asked for", n)
	}
}

// told looks for a diagnostic about tpu_slice_pool.NAME that says want.
func told(err error, name, want string) bool {
	for _, d := range strings.Split(err.Error(), "Error: ") {
		if strings.Contains(d, "with tpu_slice_pool."+name+",") && words(regexp.QuoteMeta(want)).MatchString(d) {
			return true
		}
	}
	return false
}

// A zone that is in no documentation is no error: Google adds them without
// notice.
func TestUndocumentedZoneIsNoError(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps:                    []resource.TestStep{{Config: g.Config("zone", poolHCL("accelerator = \"v5p-16\"\nslice_count = 1"))}},
	})
}
