package jobcontrollers

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
)

// model is the resource's state.
type model struct {
	ID              types.String   `tfsdk:"id"`
	Cluster         types.String   `tfsdk:"cluster"`
	JobSet          types.Object   `tfsdk:"jobset"`
	Kueue           types.Object   `tfsdk:"kueue"`
	ImageRepository types.String   `tfsdk:"image_repository"`
	WebhookPort     types.Int64    `tfsdk:"webhook_port"`
	MaxHosts        types.Int64    `tfsdk:"max_hosts"`
	NodeSelector    types.Map      `tfsdk:"node_selector"`
	Tolerations     types.List     `tfsdk:"tolerations"`
	Priorities      types.Bool     `tfsdk:"priorities"`
	Adopt           types.Bool     `tfsdk:"adopt"`
	ForceUninstall  types.Bool     `tfsdk:"force_uninstall"`
	JobSetVersion   types.String   `tfsdk:"jobset_version"`
	KueueVersion    types.String   `tfsdk:"kueue_version"`
	Status          types.String   `tfsdk:"status"`
	ToRepair        types.List     `tfsdk:"to_repair"`
	Timeouts        timeouts.Value `tfsdk:"timeouts"`
}

// config translates; what is null or unknown becomes the default.
func (m *model) config(ctx context.Context) (controllers.Config, diag.Diagnostics) {
	var diags diag.Diagnostics
	c := controllers.Config{
		ImageRepository: m.ImageRepository.ValueString(),
		WebhookPort:     int(m.WebhookPort.ValueInt64()),
		MaxHosts:        int(m.MaxHosts.ValueInt64()),
		NodeSelector:    stringMap(ctx, m.NodeSelector, &diags),
		Tolerations:     tolerations(ctx, m.Tolerations, &diags),
		NoPriorities:    !boolOr(m.Priorities, true),
	}
	var js jobSetModel
	if !m.JobSet.IsNull() && !m.JobSet.IsUnknown() {
		diags.Append(m.JobSet.As(ctx, &js, unknownIsEmpty)...)
	}
	c.JobSet = js.config(ctx, &diags)
	var kq kueueModel
	if !m.Kueue.IsNull() && !m.Kueue.IsUnknown() {
		diags.Append(m.Kueue.As(ctx, &kq, unknownIsEmpty)...)
	}
	c.Kueue = kq.config(ctx, &diags)
	return c.WithDefaults(), diags
}

// imported fills the configuration from what was found on a cluster.
func (m *model) imported(ctx context.Context, c controllers.Config) (diags diag.Diagnostics) {
	c = c.WithDefaults()
	m.ImageRepository = types.StringValue(c.ImageRepository)
	m.WebhookPort = types.Int64Value(int64(c.WebhookPort))
	m.MaxHosts = whole(c.MaxHosts)
	m.NodeSelector = mapValue(ctx, c.NodeSelector, &diags)
	m.Tolerations = tolerationsOf(ctx, c.Tolerations, &diags)
	m.Priorities = types.BoolValue(!c.NoPriorities)
	m.Adopt = types.BoolValue(false)
	m.ForceUninstall = types.BoolValue(false)
	var more diag.Diagnostics
	m.JobSet, more = types.ObjectValueFrom(ctx, jobSetTypes, jobSetOf(ctx, c.JobSet, &diags))
	diags.Append(more...)
	m.Kueue, more = types.ObjectValueFrom(ctx, kueueTypes, kueueOf(ctx, c.Kueue, &diags))
	diags.Append(more...)
	return diags
}

// observed fills the computed attributes.
func (m *model) observed(s controllers.Status) {
	m.Status = types.StringValue(s.State)
	var missing []attr.Value
	for _, line := range s.Missing {
		missing = append(missing, types.StringValue(line))
	}
	m.ToRepair = types.ListValueMust(types.StringType, missing)
	m.JobSetVersion = types.StringValue(s.JobSet.Version)
	m.KueueVersion = types.StringValue(s.Kueue.Version)
}

// repaired fills the computed attributes of a plan that installs c: versions
// that stay are known.
func (m *model) repaired(before *model, c controllers.Config) {
	m.Status = types.StringUnknown()
	m.ToRepair = types.ListValueMust(types.StringType, nil)
	m.JobSetVersion, m.KueueVersion = types.StringUnknown(), types.StringUnknown()
	if version := c.JobSet.Version; known(m.JobSet) && known(m.JobSet.Attributes()["version"]) && before.JobSetVersion.ValueString() == version {
		m.JobSetVersion = before.JobSetVersion
	}
	if version := c.Kueue.Version; known(m.Kueue) && known(m.Kueue.Attributes()["version"]) && before.KueueVersion.ValueString() == version {
		m.KueueVersion = before.KueueVersion
	}
}
