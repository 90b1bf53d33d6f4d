// Package jobcontrollers is the resource tpu_job_controllers: the JobSet and
// Kueue releases on one cluster. It translates between Terraform and
// internal/controllers and decides nothing.
package jobcontrollers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// suffix of a cluster's path makes the id.
const suffix = "/jobControllers"

// defaultTimeout of create, update and delete: a first install waits for the
// CPU nodes and their image pulls.
const defaultTimeout = 20 * time.Minute

// Resource is tpu_job_controllers.
type Resource struct{ data *conn.Data }

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

// NewResource returns the resource for the provider's list.
func NewResource() resource.Resource { return &Resource{} }

// Metadata names the type.
func (r *Resource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_job_controllers"
}

// Configure takes the provider's clients.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = conn.From(req.ProviderData, &resp.Diagnostics)
}

// ValidateConfig checks what is known of a configuration.
func (r *Resource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	c, diags := m.config(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := c.Validate(); err != nil {
		resp.Diagnostics.AddError("Invalid job controllers", err.Error())
	}
}

// ModifyPlan plans an update when the last refresh found something missing.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.State.Raw.IsNull() || req.Plan.Raw.IsNull() {
		return // created or destroyed
	}
	var before, planned model
	resp.Diagnostics.Append(req.State.Get(ctx, &before)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &planned)...)
	if resp.Diagnostics.HasError() || before.Status.ValueString() != controllers.Incomplete && req.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	c, diags := planned.config(ctx)
	resp.Diagnostics.Append(diags...)
	if planned.Cluster.Equal(before.Cluster) { // another cluster has releases of its own
		// Told while planning: an apply would refuse it.
		if err := c.CheckUpgrade(before.JobSetVersion.ValueString(), before.KueueVersion.ValueString()); err != nil {
			resp.Diagnostics.AddError("Cannot change the job controllers", err.Error())
		}
	}
	planned.repaired(&before, c)
	for name, value := range map[string]attr.Value{
		"status": planned.Status, "to_repair": planned.ToRepair, "jobset_version": planned.JobSetVersion, "kueue_version": planned.KueueVersion,
	} {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root(name), value)...)
	}
}

// Create installs.
func (r *Resource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := m.Timeouts.Create(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	r.install(ctx, &m, timeout, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// Update installs again: what is there already does not change.
func (r *Resource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := m.Timeouts.Update(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	r.install(ctx, &m, timeout, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

func (r *Resource) install(ctx context.Context, m *model, timeout time.Duration, diags *diag.Diagnostics) {
	c, more := m.config(ctx)
	diags.Append(more...)
	if diags.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cl, err := r.data.Cluster(ctx, m.Cluster.ValueString())
	if err != nil {
		conn.AddError(diags, "Cannot reach the cluster", err)
		return
	}
	status, err := controllers.Install(ctx, cl, c, controllers.Options{
		Adopt:    m.Adopt.ValueBool(),
		Progress: progress(ctx),
	})
	if apierrors.IsConflict(err) {
		err = fmt.Errorf("%w (adopt = true)", err)
	}
	if err != nil {
		conn.AddError(diags, "Cannot install the job controllers", err)
		return
	}
	m.ID = types.StringValue(m.Cluster.ValueString() + suffix)
	m.observed(status)
	m.ToRepair = types.ListValueMust(types.StringType, nil) // as planned; what was broken since is for the next plan
}

// Read compares the cluster with the state. It never waits.
func (r *Resource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	cluster := m.Cluster.ValueString()
	gone, err := r.read(ctx, &m, &resp.Diagnostics)
	switch {
	case gone, r.data.Gone(ctx, cluster, err):
		resp.State.RemoveResource(ctx)
	case err != nil:
		conn.AddError(&resp.Diagnostics, "Cannot read the job controllers", err)
	case !resp.Diagnostics.HasError():
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

func (r *Resource) read(ctx context.Context, m *model, diags *diag.Diagnostics) (gone bool, err error) {
	cl, err := r.data.Cluster(ctx, m.Cluster.ValueString())
	if err != nil {
		return false, err
	}
	if m.WebhookPort.IsNull() { // imported: the configuration is on the cluster
		c, err := controllers.Installed(ctx, cl)
		if err != nil {
			return false, err
		}
		if c == nil {
			c = &controllers.Config{}
		}
		diags.Append(m.imported(ctx, *c)...)
	}
	c, more := m.config(ctx)
	diags.Append(more...)
	if diags.HasError() {
		return false, nil
	}
	status, err := controllers.Observe(ctx, cl, c)
	if err != nil {
		return false, err
	}
	for _, missing := range status.Missing {
		tflog.Info(ctx, "job controllers: "+missing)
	}
	m.observed(status)
	return status.State == controllers.Absent, nil
}

// Delete uninstalls.
func (r *Resource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := m.Timeouts.Delete(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	c, diags := m.config(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cluster := m.Cluster.ValueString()
	cl, err := r.data.Cluster(ctx, cluster)
	if err == nil {
		err = controllers.Uninstall(ctx, cl, c, controllers.UninstallOptions{Force: m.ForceUninstall.ValueBool(), Progress: progress(ctx)})
	}
	if err != nil && !r.data.Gone(ctx, cluster, err) {
		conn.AddError(&resp.Diagnostics, "Cannot remove the job controllers", err)
	}
}

// ImportState takes CLUSTER/jobControllers.
func (r *Resource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	cluster, ok := strings.CutSuffix(req.ID, suffix)
	if _, err := gke.ParseClusterName(cluster); !ok || err != nil {
		resp.Diagnostics.AddError("Invalid import id",
			fmt.Sprintf("%q does not name the job controllers of a cluster: want projects/PROJECT/locations/LOCATION/clusters/CLUSTER%s.", req.ID, suffix))
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), req.ID)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("cluster"), cluster)...)
}

func progress(ctx context.Context) func(string, ...any) {
	return func(format string, args ...any) { tflog.Info(ctx, fmt.Sprintf(format, args...)) }
}
