package cluster

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// What becomes of node pools that somebody else made is said at plan.
func TestWhatThePlanSaysOfForeignPools(t *testing.T) {
	with := func(names ...string) (m model) {
		pools := map[string]attr.Value{}
		for _, n := range names {
			pools[n] = types.ObjectNull(cpuPoolType.AttrTypes)
		}
		m.Project, m.Location, m.Name = types.StringValue("p"), types.StringValue("us-west4-a"), types.StringValue("main")
		m.CPUPools = types.MapValueMust(cpuPoolType, pools)
		return m
	}
	unknown := with()
	unknown.CPUPools = types.MapUnknown(cpuPoolType)
	for name, c := range map[string]struct {
		state, plan model
		warns, errs []string
	}{
		"nothing changes":            {state: with("system", "theirs"), plan: with("system", "theirs")},
		"ours goes":                  {state: with("system", "old"), plan: with("system")},
		"theirs is taken out":        {state: with("system", "theirs"), plan: with("system"), warns: []string{"does not name theirs,", "node-pools delete NAME --cluster main --location us-west4-a --project p"}},
		"both of theirs":             {state: with("theirs", "too"), plan: with("system"), warns: []string{"theirs, too"}},
		"theirs is asked for":        {state: with("system"), plan: with("system", "theirs"), errs: []string{`cpu_pools["theirs"]`, "hand the node pool over"}},
		"it is not known what stays": {state: with("system", "theirs"), plan: unknown},
	} {
		var diags diag.Diagnostics
		changesOfPools(c.state, c.plan, []string{"theirs", "too"}, &diags)
		check := func(got diag.Diagnostics, want []string) {
			if (len(got) > 0) != (len(want) > 0) {
				t.Errorf("%s: %v", name, diags)
				return
			}
			for _, w := range want {
				if !strings.Contains(got[0].Detail(), w) {
					t.Errorf("%s: %q does not say %q", name, got[0].Detail(), w)
				}
			}
		}
		check(diags.Warnings(), c.warns)
		check(diags.Errors(), c.errs)
	}
}
