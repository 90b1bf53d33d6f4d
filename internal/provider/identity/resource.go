// Package identity gives a resource its Terraform identity and its short import
// ids, both of which follow from the form of its id. It wraps the resource and
// knows nothing else about it: no resource can forget to set its identity, which
// some versions of Terraform do not forgive.
package identity

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// Importable is what can be wrapped: a resource that has a string attribute
// `id` and can be imported by it.
type Importable interface {
	resource.ResourceWithConfigure
	resource.ResourceWithImportState
}

// identified is a resource with identity. Create, Read, Update and ImportState
// add the identity; the rest passes through.
type identified struct {
	Importable
	pattern Pattern
	data    *conn.Data
}

var (
	_ resource.ResourceWithIdentity         = (*identified)(nil)
	_ resource.ResourceWithModifyPlan       = (*identified)(nil)
	_ resource.ResourceWithConfigValidators = (*identified)(nil)
	_ resource.ResourceWithValidateConfig   = (*identified)(nil)
	_ resource.ResourceWithUpgradeState     = (*identified)(nil)
	_ resource.ResourceWithMoveState        = (*identified)(nil)
)

// New gives what makes a resource whose ids have the form of p an identity.
func New(p Pattern, makes func() resource.Resource) func() resource.Resource {
	return func() resource.Resource {
		inner, ok := makes().(Importable)
		if !ok {
			panic("a resource that is to have an identity cannot be imported: " + string(p))
		}
		return &identified{Importable: inner, pattern: p}
	}
}

// Unwrap returns the resource that was given an identity.
func (r *identified) Unwrap() resource.Resource { return r.Importable }

// IdentitySchema implements resource.ResourceWithIdentity.
func (r *identified) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	attrs := map[string]identityschema.Attribute{}
	for _, key := range r.pattern.Keys() {
		a := identityschema.StringAttribute{RequiredForImport: true, Description: "The " + key + "."}
		if key == project || key == location {
			a = identityschema.StringAttribute{OptionalForImport: true, Description: "The " + key + ". The default is that of the provider's configuration."}
		}
		attrs[key] = a
	}
	resp.IdentitySchema = identityschema.Schema{Attributes: attrs}
}

// Configure implements resource.ResourceWithConfigure.
func (r *identified) Configure(ctx context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = conn.From(req.ProviderData, &resp.Diagnostics)
	r.Importable.Configure(ctx, req, resp)
}

// Create implements resource.Resource.
func (r *identified) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.Importable.Create(ctx, req, resp)
	r.set(ctx, resp.State, resp.Identity, &resp.Diagnostics)
}

// Read implements resource.Resource. An object that is gone keeps its identity
// in the answer: Terraform before 1.12 stores none, and the framework refuses
// an answer without.
func (r *identified) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	r.Importable.Read(ctx, req, resp)
	state := resp.State
	if state.Raw.IsNull() {
		state = req.State
	}
	r.set(ctx, state, resp.Identity, &resp.Diagnostics)
}

// Update implements resource.Resource.
func (r *identified) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.Importable.Update(ctx, req, resp)
	r.set(ctx, resp.State, resp.Identity, &resp.Diagnostics)
}

// set writes the identity of the object in state, if there is one.
func (r *identified) set(ctx context.Context, state tfsdk.State, identity *tfsdk.ResourceIdentity, diags *diag.Diagnostics) {
	if identity == nil || state.Raw.IsNull() {
		return
	}
	var id types.String
	diags.Append(state.GetAttribute(ctx, path.Root("id"), &id)...)
	if id.IsNull() || id.IsUnknown() {
		return
	}
	values, ok := r.pattern.Parse(id.ValueString())
	if !ok {
		diags.AddError("Internal error", fmt.Sprintf("the id %q does not have the form %s; please report this", id.ValueString(), r.pattern))
		return
	}
	r.write(ctx, values, identity, diags)
}

func (r *identified) write(ctx context.Context, values map[string]string, identity *tfsdk.ResourceIdentity, diags *diag.Diagnostics) {
	for _, key := range r.pattern.Keys() {
		diags.Append(identity.SetAttribute(ctx, path.Root(key), values[key])...)
	}
}

// ImportState implements resource.ResourceWithImportState. The wrapped resource
// sees the whole id, however it was written.
func (r *identified) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	values, err := r.named(ctx, req, &resp.Diagnostics)
	if err != nil {
		resp.Diagnostics.AddError("Invalid import id", err.Error())
	}
	if resp.Diagnostics.HasError() {
		return
	}
	req.ID = r.pattern.ID(values)
	r.Importable.ImportState(ctx, req, resp)
	if resp.Identity != nil && !resp.Diagnostics.HasError() {
		r.write(ctx, values, resp.Identity, &resp.Diagnostics)
	}
}

// named says which object an import is about.
func (r *identified) named(ctx context.Context, req resource.ImportStateRequest, diags *diag.Diagnostics) (map[string]string, error) {
	defaults := map[string]string{}
	if r.data != nil {
		defaults = map[string]string{project: r.data.Project, location: r.data.Location}
	}
	if req.ID != "" || req.Identity == nil {
		return r.pattern.Expand(req.ID, defaults)
	}
	values := map[string]string{}
	for _, key := range r.pattern.Keys() {
		var v types.String
		diags.Append(req.Identity.GetAttribute(ctx, path.Root(key), &v)...)
		values[key] = v.ValueString()
		if strings.Contains(values[key], "/") {
			return nil, fmt.Errorf("the identity's %s is %q: want a name, not a path", key, values[key])
		}
	}
	return values, r.pattern.complete("the identity", values, defaults)
}
