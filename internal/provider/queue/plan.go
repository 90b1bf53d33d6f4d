package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	kq "github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// follows plans what a flavor leaves out to be what its slice pool has: the
// configuration says whether it was left out, the plan alone does not.
type follows struct{ of string }

func (f follows) Description(context.Context) string {
	return "taken from " + f.of + " of slice_pool where it is not given"
}

func (f follows) MarkdownDescription(ctx context.Context) string { return f.Description(ctx) }

func (f follows) source(at path.Path) path.Path {
	return at.ParentPath().AtName("slice_pool").AtName(f.of)
}

type followedString struct{ follows }

func followsString(of string) []planmodifier.String {
	return []planmodifier.String{followedString{follows{of}}}
}

// PlanModifyString implements planmodifier.String.
func (f followedString) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if !req.ConfigValue.IsNull() {
		return
	}
	var v types.String
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, f.source(req.Path), &v)...)
	resp.PlanValue = v
}

type followedInt64 struct{ follows }

func followsInt64(of string) []planmodifier.Int64 {
	return []planmodifier.Int64{followedInt64{follows{of}}}
}

// PlanModifyInt64 implements planmodifier.Int64.
func (f followedInt64) PlanModifyInt64(ctx context.Context, req planmodifier.Int64Request, resp *planmodifier.Int64Response) {
	if !req.ConfigValue.IsNull() {
		return
	}
	var v types.Int64
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, f.source(req.Path), &v)...)
	resp.PlanValue = v
}

// planShares warns where the queues of this run take more of a slice pool than
// it has.
func (m *model) planShares(ctx context.Context, spec kq.Queue, p *kubeobject.Planning[model]) {
	if p.Data == nil || m.Flavors.IsNull() || p.Diags.HasError() {
		return
	}
	var flavors []flavor
	p.Diags.Append(m.Flavors.ElementsAs(ctx, &flavors, false)...)
	takes, has := map[string]int64{}, map[string]int64{}
	for i, quota := range spec.Quotas {
		if quota.Pool == "" {
			continue
		}
		takes[quota.Pool] += quota.Slices
		if count, ok := flavors[i].SlicePool.Attributes()["slice_count"].(types.Int64); ok {
			has[quota.Pool] = count.ValueInt64()
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(takes)) {
		total, queues := p.Data.Shares.Take(pool, m.Name.ValueString(), takes[pool])
		if total <= has[pool] {
			continue
		}
		p.Diags.AddWarning("Slices are handed out twice", fmt.Sprintf("Queues %s hand out %d slices of %s, which has %d. "+
			"Kueue admits jobs up to the quotas, and those that find no slice hold quota while they wait for one.\n\n"+
			"Give each queue a share of the pool (slices), and let them lend each other what is idle (cohort).",
			strings.Join(queues, ", "), total, pool, has[pool]))
	}
}
