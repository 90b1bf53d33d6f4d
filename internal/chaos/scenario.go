package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// systemPool is the CPU pool that every cluster here has.
const systemPool = "system"

const clusterHCL = `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { %s }
  %s
}
`

// cpuPools are the CPU pools of a cluster beside systemPool, and what of that
// GKE cannot change.
type cpuPools struct {
	system string // HCL
	others []string
}

func (c cpuPools) hcl() string {
	all := []string{fmt.Sprintf(`%s = { machine_type = "e2-standard-8", %s }`, systemPool, c.system)}
	for _, name := range c.others {
		all = append(all, name+` = { machine_type = "n2-standard-64" }`)
	}
	return strings.Join(all, ", ")
}

// changes are the CPU pools that a change makes and removes: one that is made
// anew has another one stand in for it meanwhile.
func (c cpuPools) changes(to cpuPools) (made, removed []string) {
	if c.system != to.system {
		both := []string{systemPool, systemPool + "-stand-in"}
		made, removed = both, slices.Clone(both)
	}
	for _, name := range to.others {
		if !slices.Contains(c.others, name) {
			made = append(made, name)
		}
	}
	for _, name := range c.others {
		if !slices.Contains(to.others, name) {
			removed = append(removed, name)
		}
	}
	return made, removed
}

// pool is a slice pool of a configuration.
type pool struct {
	accelerator, machine string
	count                int
	more, clusterMore    string // further lines of HCL
	diskGB               int32
	policies             int
	cpu                  cpuPools
}

func (p pool) hcl() string {
	return fmt.Sprintf(clusterHCL, p.cpu.hcl(), p.clusterMore) + fmt.Sprintf(`
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
	args   []string // of the apply, besides
}

var (
	four  = pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 4}
	six   = pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 6}
	two   = pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 2}
	disks = pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 4, diskGB: 200,
		more: "node = { boot_disk = { size_gb = 200 } }"}
	other  = pool{accelerator: "v5litepod-32", machine: "ct5lp-hightpu-4t", count: 4}
	kept   = pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 4, more: "lifecycle { create_before_destroy = true }"}
	held   = pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 2, clusterMore: "lifecycle { create_before_destroy = true }"}
	placed = pool{accelerator: "tpu7x-64", count: 2, policies: 1}
	// A cluster whose CPU pools change: one comes, one goes, one is made anew.
	one      = pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 1, cpu: cpuPools{others: []string{"old"}}}
	oneLater = pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 1, cpu: cpuPools{system: "spot = true", others: []string{"heads"}}}
)

// scenarios are what the matrices go over.
var scenarios = []scenario{
	{name: "create", after: &four},
	{name: "grow", before: &four, after: &six},
	{name: "shrink", before: &four, after: &two},
	{name: "slice by slice", before: &four, after: &disks},
	{name: "replacement", before: &four, after: &other, remade: true},
	{name: "taken over by a new object", before: &kept, after: &kept, args: []string{"-replace=tpu_slice_pool.slices"}},
	{name: "cluster taken over by a new object", before: &held, after: &held, args: []string{"-replace=tpu_training_cluster.main"}},
	{name: "destroy", before: &four},
	{name: "create with a workload policy", after: &placed},
	{name: "destroy with a workload policy", before: &placed},
	{name: "CPU pools changed", before: &one, after: &oneLater},
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
		cpu := append([]string{systemPool}, s.after.cpu.others...)
		m = model{
			cluster: "main", pools: append(s.after.nodePools(), cpu...), cpu: cpu,
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
	if s.before != nil && s.after != nil {
		made, removed := s.before.cpu.changes(s.after.cpu)
		m.made, m.removed = append(m.made, made...), append(m.removed, removed...)
	}
	return m
}

// renews tells whether the change deletes something and makes it again.
func (s scenario) renews() bool {
	return s.remade || s.before != nil && s.after != nil && s.before.cpu.system != s.after.cpu.system
}

// hcl is a configuration; that of nothing is the provider alone.
func hcl(p *pool) string {
	if p == nil {
		return ""
	}
	return p.hcl()
}
