package queue

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
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
