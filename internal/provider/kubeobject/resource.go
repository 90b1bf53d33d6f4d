// Package kubeobject is what the resources share that are objects in a cluster:
// the attributes id, cluster, name and timeouts, import, and the frame of
// create, read, update and delete. What an object looks like is its model's,
// which translates; this package knows no kind of object.
package kubeobject

import (
	"context"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// Object is embedded by models: the attributes that every one has.
type Object struct {
	ID       types.String   `tfsdk:"id"`
	Cluster  types.String   `tfsdk:"cluster"`
	Name     types.String   `tfsdk:"name"`
	Timeouts timeouts.Value `tfsdk:"timeouts"`
}

// Base returns the attributes that every model has.
func (o *Object) Base() *Object { return o }

// Model is a pointer to the attributes M of one kind of object, which embed
// Object.
type Model[M any] interface {
	*M
	Base() *Object
	// Check refuses what the cluster would refuse. Values may be unknown: what
	// depends on them is left for when they are known.
	Check(ctx context.Context, diags *diag.Diagnostics)
	// Write makes the cluster have what the model says, and fills in what is
	// computed.
	Write(ctx context.Context, w *Writer[M]) error
	// Read fills in what the cluster has. found is false when the object does
	// not exist, or is being deleted.
	Read(ctx context.Context, k *kube.Client, diags *diag.Diagnostics) (found bool, err error)
	// Remove deletes the object, and waits until it is gone.
	Remove(ctx context.Context, k *kube.Client, diags *diag.Diagnostics) error
}

// planner is implemented by models that show something in the plan. The model
// is the planned one; whatever it changes in itself is planned.
type planner[M any] interface {
	Plan(ctx context.Context, p *Planning[M])
}

// Planning is one plan of an object that is not to be deleted.
type Planning[M any] struct {
	Before  *M // what state has; nil in a creation
	Data    *conn.Data
	Diags   *diag.Diagnostics
	Replace path.Paths // attributes whose change needs a new object
}

// Kind is one type of resource.
type Kind struct {
	Type        string // such as tpu_kueue_flavor
	Noun        string // how messages call it, such as flavor
	Collection  string // where its ids have it: projects/P/locations/L/clusters/C/COLLECTION/NAME
	Description string
	Name        schema.StringAttribute // see Name
	Listing     Listing
	// Shared says that others write into these objects as well, fields that the
	// configuration does not know: those are left alone.
	Shared bool
	// Attributes are those of the schema that are not every kind's.
	Attributes map[string]schema.Attribute
	// Wait is how long writing may take, and WaitDelete deleting, where the
	// configuration does not say. DeleteDescription documents what is waited for.
	Wait, WaitDelete  time.Duration
	DeleteDescription string
}

const (
	defaultWait       = 5 * time.Minute
	defaultWaitDelete = 10 * time.Minute
)

// Name is the required name of an object, which cannot change.
func Name(description string, check func(string) error) schema.StringAttribute {
	return schema.StringAttribute{
		Required:            true,
		MarkdownDescription: description + " Changing it makes a new object.",
		Validators:          []validator.String{attr.Check("Invalid name", "a DNS name", check)},
		PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
	}
}

// New makes the resource of a kind whose model is M.
func New[M any, P Model[M]](kind Kind) resource.Resource {
	if kind.Wait == 0 {
		kind.Wait = defaultWait
	}
	if kind.WaitDelete == 0 {
		kind.WaitDelete = defaultWaitDelete
	}
	return &object[M, P]{kind: kind}
}

type object[M any, P Model[M]] struct {
	conn.Child
	kind Kind
}

// Metadata implements resource.Resource.
func (r *object[M, P]) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = r.kind.Type
}

// Schema implements resource.Resource.
func (r *object[M, P]) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attrs := map[string]schema.Attribute{
		"id":      attr.ID("projects/P/locations/L/clusters/C/" + r.kind.Collection + "/NAME"),
		"cluster": attr.Cluster(),
		"name":    r.kind.Name,
		"timeouts": attr.Timeouts(ctx, timeouts.Opts{Create: true, Update: true, Delete: true,
			DeleteDescription: r.kind.DeleteDescription}),
	}
	maps.Copy(attrs, r.kind.Attributes)
	resp.Schema = schema.Schema{MarkdownDescription: r.kind.Description, Attributes: attrs}
}

// ValidateConfig implements resource.ResourceWithValidateConfig.
func (r *object[M, P]) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m M
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if !resp.Diagnostics.HasError() {
		P(&m).Check(ctx, &resp.Diagnostics)
	}
}

// ModifyPlan implements resource.ResourceWithModifyPlan.
func (r *object[M, P]) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var m M
	plans, ok := any(P(&m)).(planner[M])
	if !ok || req.Plan.Raw.IsNull() {
		return
	}
	p := &Planning[M]{Data: r.Data, Diags: &resp.Diagnostics}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if !req.State.Raw.IsNull() {
		p.Before = new(M)
		resp.Diagnostics.Append(req.State.Get(ctx, p.Before)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	plans.Plan(ctx, p)
	resp.RequiresReplace.Append(p.Replace...)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &m)...)
}

// ImportState implements resource.ResourceWithImportState: the id says which
// cluster and name.
func (r *object[M, P]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	cluster, names, err := conn.ParseID(req.ID, r.kind.Collection)
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Invalid import id", err)
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("cluster"), cluster)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), names[0])...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), req.ID)...)
}

// called is the object as messages name it.
func (r *object[M, P]) called(m P) string { return r.kind.Noun + " " + m.Base().Name.ValueString() }

func (r *object[M, P]) id(m P) string {
	return r.ID(m.Base().Cluster.ValueString(), m.Base().Name.ValueString())
}
