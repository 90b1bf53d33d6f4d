package slicepool

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	tpuattr "github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
)

type autoscaling struct {
	MinHosts       types.Int64  `tfsdk:"min_hosts"`
	MaxHosts       types.Int64  `tfsdk:"max_hosts"`
	LocationPolicy types.String `tfsdk:"location_policy"`
}

type management struct {
	AutoRepair  types.Bool `tfsdk:"auto_repair"`
	AutoUpgrade types.Bool `tfsdk:"auto_upgrade"`
}

type upgrade struct {
	Strategy       types.String `tfsdk:"strategy"`
	MaxSurge       types.Int64  `tfsdk:"max_surge"`
	MaxUnavailable types.Int64  `tfsdk:"max_unavailable"`
}

// unlimited: GKE decides how many hosts at a time.
func (u upgrade) unlimited() bool { return u.MaxSurge.IsNull() && u.MaxUnavailable.IsNull() }

type taint struct {
	Key    types.String `tfsdk:"key"`
	Value  types.String `tfsdk:"value"`
	Effect types.String `tfsdk:"effect"`
}

var (
	autoscalingType = map[string]attr.Type{"min_hosts": types.Int64Type, "max_hosts": types.Int64Type, "location_policy": types.StringType}
	managementType  = map[string]attr.Type{"auto_repair": types.BoolType, "auto_upgrade": types.BoolType}
	upgradeType     = map[string]attr.Type{"strategy": types.StringType, "max_surge": types.Int64Type, "max_unavailable": types.Int64Type}
	taintType       = types.ObjectType{AttrTypes: map[string]attr.Type{"key": types.StringType, "value": types.StringType, "effect": types.StringType}}
)

// settingsAttributes are those of a whole pool, besides what it consists of.
func settingsAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"autoscaling": schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: "Lets GKE scale each slice between none and all of its hosts, by what jobs ask for. A slice without hosts is `RUNNING` all the same. " +
				"`flex_start` and `queued` slices are always autoscaled, `{}` included. Changed in place.",
			Attributes: map[string]schema.Attribute{
				"min_hosts":       schema.Int64Attribute{Optional: true, MarkdownDescription: "0 (the default), or the slice's hosts.", Validators: []validator.Int64{int64validator.AtLeast(0)}},
				"max_hosts":       schema.Int64Attribute{Optional: true, MarkdownDescription: "The slice's hosts, which is the default; nothing else is possible.", Validators: []validator.Int64{int64validator.AtLeast(1)}},
				"location_policy": schema.StringAttribute{Optional: true, MarkdownDescription: "`ANY` (the default) or `BALANCED`.", Validators: []validator.String{stringvalidator.OneOf("ANY", "BALANCED")}},
			},
		},
		"version": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "The oldest GKE version that the nodes may have, in full (`1.34.1-gke.2201000`) when it is to be upgraded to; nodes that GKE upgraded further stay. " +
				"By default nodes get the cluster's version and GKE upgrades them. Changed slice by slice.",
			Validators: []validator.String{tpuattr.Check("Invalid version", "a GKE version", gke.CheckNodeVersion)},
		},
		"management": schema.SingleNestedAttribute{
			Optional:            true,
			MarkdownDescription: "What GKE does to nodes by itself. What is taken out goes back to its default. Changed in place.",
			Attributes: map[string]schema.Attribute{
				"auto_repair":  schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether GKE repairs nodes. The default is true, except for `flex_start`, which excludes it."},
				"auto_upgrade": schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether GKE upgrades nodes, true by default. Clusters on a release channel need it."},
			},
		},
		"upgrade": schema.SingleNestedAttribute{
			Optional:            true,
			MarkdownDescription: "How GKE upgrades nodes; by default `surge` with `max_surge = 1`. Changed in place.",
			Attributes: map[string]schema.Attribute{
				"strategy":        schema.StringAttribute{Required: true, MarkdownDescription: "`surge`, or `blue_green`, which compactly placed slices cannot have.", Validators: []validator.String{stringvalidator.OneOf("surge", "blue_green")}},
				"max_surge":       schema.Int64Attribute{Optional: true, MarkdownDescription: "How many hosts more than usual an upgrade may use: 1 when `max_unavailable` is left out too, otherwise 0 by default.", Validators: []validator.Int64{int64validator.AtLeast(0)}},
				"max_unavailable": schema.Int64Attribute{Optional: true, MarkdownDescription: "How many hosts an upgrade may take down at a time, 0 by default.", Validators: []validator.Int64{int64validator.AtLeast(0)}},
			},
		},
		"max_unavailable_slices": schema.Int64Attribute{
			Optional: true, Computed: true, Default: int64default.StaticInt64(1),
			MarkdownDescription: "How many slices may be down at a time while a change gives them new nodes; those that are down anyway count. The default is 1. " +
				"Idle slices are changed first. One that runs a job is left as it is, with a warning and status `OUTDATED`, unless `force` is set, and then it is last.",
			Validators: []validator.Int64{int64validator.AtLeast(1)},
		},
		"node_pool_overrides": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "JSON that is merged into the request for each node pool, for what has no attribute here: `jsonencode({ config = { linuxNodeConfig = { sysctls = { \"net.core.somaxconn\" = \"4096\" } } } })`. " +
				"Fields are those of GKE's `NodePool`; what has an attribute is refused here. Changed slice by slice.",
		},
	}
}

// nodeAttributes are further settings of nodes.
func nodeAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"tags": schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: "Network tags of the machines, each once. Changed in place.",
			Validators: []validator.List{tpuattr.CheckStrings("Invalid network tags", "network tags, each once", gke.CheckNetworkTags)}},
		"taints": schema.ListNestedAttribute{
			Optional:            true,
			MarkdownDescription: "Taints of the nodes, besides the one that GKE puts on TPU nodes. Changed in place.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key":    schema.StringAttribute{Required: true, MarkdownDescription: "The taint's key."},
				"value":  schema.StringAttribute{Required: true, MarkdownDescription: "The taint's value."},
				"effect": schema.StringAttribute{Required: true, MarkdownDescription: "`NoSchedule`, `PreferNoSchedule` or `NoExecute`.", Validators: []validator.String{stringvalidator.OneOf("NoSchedule", "PreferNoSchedule", "NoExecute")}},
			}},
		},
		"image_type": schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "The nodes' operating system: `COS_CONTAINERD`, which is GKE's default, or `UBUNTU_CONTAINERD`. Taken out, it stays as it is. Changed slice by slice.",
			Validators: []validator.String{tpuattr.Check("Invalid image type", "an image type of GKE", gke.CheckImageType)}},
		"image_streaming": schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether containers start before their image is there in full. The default is false. Changed slice by slice."},
		"private":         schema.BoolAttribute{Optional: true, Computed: true, MarkdownDescription: "Whether the nodes have internal addresses only; by default as the cluster says. Taken out, it stays as it is. Changed slice by slice."},
		"network_profile": schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "The accelerator network profile: `auto` lets GKE make the networks that multi-host v6e slices use best. Taken out, it stays as it is. Changed slice by slice.",
			Validators: []validator.String{stringvalidator.OneOf(gke.NetworkProfiles...)}},
		"max_pods": schema.Int64Attribute{Optional: true, MarkdownDescription: "The most pods of one node; each takes two addresses. The default is 15. A plan refuses what the range of the pods cannot hold, and says how many slices fit. Changed slice by slice."},
		"secondary_boot_disks": schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: "Disk images with container images, `projects/P/global/images/I`: containers start from them without a download. None by default. Changed slice by slice.",
			Validators: []validator.List{tpuattr.CheckStrings("Invalid disk images", "disk images, each once", gke.CheckDiskImages)}},
	}
}

var nodeSettingTypes = map[string]attr.Type{
	"tags": types.ListType{ElemType: types.StringType}, "taints": types.ListType{ElemType: taintType}, "image_type": types.StringType,
	"image_streaming": types.BoolType, "private": types.BoolType, "network_profile": types.StringType, "max_pods": types.Int64Type,
	"secondary_boot_disks": types.ListType{ElemType: types.StringType},
}

// provisioningAttributes are further settings of a model.
func provisioningAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"model": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "`on_demand` (the default); `spot`: cheaper machines that Google may take back at any time; `flex_start`: machines for up to 7 days that come when there is capacity; " +
				"`queued`: machines by a ProvisioningRequest, all of a slice at once; `reservation`: machines of a reservation.",
			Validators: []validator.String{stringvalidator.OneOf(string(gke.OnDemand), string(gke.Spot), string(gke.FlexStart), string(gke.Queued), string(gke.FromReservation))},
		},
		"reservation": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "The reservation: its name, or `projects/PROJECT/reservations/NAME` for one that another project shares; either may go on with `/reservationBlocks/BLOCK` and `/reservationSubBlocks/SUBBLOCK`. " +
				"Without it the model `reservation` takes machines of any reservation that fits.",
			Validators: []validator.String{tpuattr.Check("Invalid reservation", "a reservation", notEmpty)},
		},
		"max_run_duration": schema.StringAttribute{
			Optional: true, Validators: []validator.String{tpuattr.PositiveDuration()},
			MarkdownDescription: "How long `flex_start` (at most `168h`) and `queued` machines may run, such as `24h`.",
		},
	}
}

// settings adds what the configuration says besides the slices themselves.
func (m *model) settings(ctx context.Context, p *gke.SlicePool, diags *diag.Diagnostics) {
	prov := m.provisioning(ctx, diags)
	p.Provisioning = gke.Provisioning{Model: gke.ProvisioningModel(prov.Model.ValueString()), Reservation: prov.Reservation.ValueString()}
	p.Provisioning.MaxRunDuration, _ = time.ParseDuration(prov.MaxRunDuration.ValueString()) // validated
	if !m.Autoscaling.IsNull() && !m.Autoscaling.IsUnknown() {
		var a autoscaling
		diags.Append(m.Autoscaling.As(ctx, &a, basetypes.ObjectAsOptions{})...)
		p.Autoscaling = &gke.Autoscaling{Min: int(a.MinHosts.ValueInt64()), Max: int(a.MaxHosts.ValueInt64()), LocationPolicy: a.LocationPolicy.ValueString()}
	}
	if !m.Management.IsNull() && !m.Management.IsUnknown() {
		var a management
		diags.Append(m.Management.As(ctx, &a, basetypes.ObjectAsOptions{})...)
		p.AutoRepair, p.AutoUpgrade = a.AutoRepair.ValueBoolPointer(), a.AutoUpgrade.ValueBoolPointer()
	}
	if !m.Upgrade.IsNull() && !m.Upgrade.IsUnknown() {
		var a upgrade
		diags.Append(m.Upgrade.As(ctx, &a, basetypes.ObjectAsOptions{})...)
		p.Upgrade = &gke.Upgrade{Strategy: a.Strategy.ValueString(), MaxSurge: int(a.MaxSurge.ValueInt64()), MaxUnavailable: int(a.MaxUnavailable.ValueInt64())}
		if a.unlimited() && p.Upgrade.Strategy == gke.DefaultUpgrade.Strategy {
			*p.Upgrade = gke.DefaultUpgrade
		}
	}
	p.Version, p.MaxUnavailable, p.Overrides = m.Version.ValueString(), int(m.MaxUnavailable.ValueInt64()), m.Overrides.ValueString()
	n := m.node(ctx, diags)
	p.ImageType, p.NetworkProfile, p.MaxPods = n.ImageType.ValueString(), n.NetworkProfile.ValueString(), int(n.MaxPods.ValueInt64())
	p.ImageStreaming, p.Private = n.ImageStreaming.ValueBoolPointer(), n.Private.ValueBoolPointer()
	p.Tags, p.SecondaryDisks = goList[string](ctx, n.Tags, diags), goList[string](ctx, n.SecondaryBootDisks, diags)
	if !n.Taints.IsNull() && !n.Taints.IsUnknown() {
		p.Taints = []gke.Taint{}
		for _, t := range goList[taint](ctx, n.Taints, diags) {
			p.Taints = append(p.Taints, gke.Taint{Key: t.Key.ValueString(), Value: t.Value.ValueString(), Effect: t.Effect.ValueString()})
		}
	}
}

// goList is nil for a null list: not managed here.
func goList[T any](ctx context.Context, l types.List, diags *diag.Diagnostics) []T {
	if l.IsNull() || l.IsUnknown() {
		return nil
	}
	out := []T{}
	diags.Append(l.ElementsAs(ctx, &out, false)...)
	return out
}

// notEmpty: "" would mean any reservation to GKE, and none to who reads it.
func notEmpty(s string) error {
	if s != "" {
		return nil
	}
	return errors.New("an empty string names no reservation: write its name, or leave it out for any reservation that fits")
}
