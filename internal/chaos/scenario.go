package chaos

import (
	"fmt"
	"slices"
)

// systemPool is the CPU pool that every cluster here has.
const systemPool = "system"

const clusterHCL = `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { %s = { machine_type = "e2-standard-8" } }
}
`

// pool is a slice pool of a configuration.
type pool struct {
	accelerator, machine string
	count                int
	more                 string // further lines of HCL
	diskGB               int32
	policies             int
}

func (p pool) hcl() string {
	return fmt.Sprintf(clusterHCL, systemPool) + fmt.Sprintf(`
resource "tpu_slice_pool" "slices" {
  cluster     = tpu_training_cluster.main.id
  name        = "slices"
  accelerator = %q
  slice_count = %d
  %s
}
`, p.accelerator, p.count, p.more)
}

func (p pool) nodePools() []string {
	var out []string
	for i := range p.count {
		out = append(out, fmt.Sprintf("slices-%d", i))
	}
	return out
}

// scenario is one apply: from what there is to what there shall be. nil is
// nothing.
type scenario struct {
	name          string
	before, after *pool
	// remade slices are deleted and created again by this change.
	remade bool
	// rounds is how often that may happen: more than once when several applies
	// run without a lock, each of which makes anew what it finds.
	rounds int
}

var (
	four  = pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 4}
	six   = pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 6}
	two   = pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 2}
	disks = pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 4, diskGB: 200,
		more: "node = { boot_disk = { size_gb = 200 } }"}
	other  = pool{accelerator: "v5litepod-32", machine: "ct5lp-hightpu-4t", count: 4}
	placed = pool{accelerator: "tpu7x-64", count: 2, policies: 1}
)

// scenarios are what the matrices go over.
var scenarios = []scenario{
	{name: "create", after: &four},
	{name: "grow", before: &four, after: &six},
	{name: "shrink", before: &four, after: &two},
	{name: "slice by slice", before: &four, after: &disks},
	{name: "replacement", before: &four, after: &other, remade: true},
	{name: "destroy", before: &four},
	{name: "create with a workload policy", after: &placed},
	{name: "destroy with a workload policy", before: &placed},
}

// model is what the scenario must come to.
func (s scenario) model() model {
	var m model
	var had, has []string
	if s.before != nil {
		had = append(s.before.nodePools(), "main")
	}
	if s.after != nil {
		has = append(s.after.nodePools(), "main")
		m = model{
			cluster: "main", pools: append(s.after.nodePools(), systemPool),
			machine: s.after.machine, diskGB: s.after.diskGB, policies: s.after.policies,
		}
	}
	m.rounds = s.rounds
	for _, n := range has {
		if !slices.Contains(had, n) || s.remade && n != "main" {
			m.made = append(m.made, n)
		}
	}
	for _, n := range had {
		if !slices.Contains(has, n) || s.remade && n != "main" {
			m.removed = append(m.removed, n)
		}
	}
	return m
}

// hcl is a configuration; that of nothing is the provider alone.
func hcl(p *pool) string {
	if p == nil {
		return ""
	}
	return p.hcl()
}
