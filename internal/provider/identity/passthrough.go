package identity

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// What a resource may implement beyond Importable. A wrapped one that does not
// is answered for as the framework would by itself.

// ModifyPlan implements resource.ResourceWithModifyPlan.
func (r *identified) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if inner, ok := r.Importable.(resource.ResourceWithModifyPlan); ok {
		inner.ModifyPlan(ctx, req, resp)
	}
}

// ValidateConfig implements resource.ResourceWithValidateConfig.
func (r *identified) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	if inner, ok := r.Importable.(resource.ResourceWithValidateConfig); ok {
		inner.ValidateConfig(ctx, req, resp)
	}
}

// ConfigValidators implements resource.ResourceWithConfigValidators.
func (r *identified) ConfigValidators(ctx context.Context) []resource.ConfigValidator {
	if inner, ok := r.Importable.(resource.ResourceWithConfigValidators); ok {
		return inner.ConfigValidators(ctx)
	}
	return nil
}

// UpgradeState implements resource.ResourceWithUpgradeState.
func (r *identified) UpgradeState(ctx context.Context) map[int64]resource.StateUpgrader {
	if inner, ok := r.Importable.(resource.ResourceWithUpgradeState); ok {
		return inner.UpgradeState(ctx)
	}
	return nil
}

// MoveState implements resource.ResourceWithMoveState. What was moved here has
// an identity too.
func (r *identified) MoveState(ctx context.Context) []resource.StateMover {
	inner, ok := r.Importable.(resource.ResourceWithMoveState)
	if !ok {
		return nil
	}
	movers := inner.MoveState(ctx)
	for i, mover := range movers {
		movers[i].StateMover = func(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
			mover.StateMover(ctx, req, resp)
			r.set(ctx, resp.TargetState, resp.TargetIdentity, &resp.Diagnostics)
		}
	}
	return movers
}
