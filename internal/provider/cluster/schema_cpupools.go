package cluster

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	tpuattr "github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
)

// cpuPool is one element of cpu_pools.
type cpuPool struct {
	MachineType    types.String `tfsdk:"machine_type"`
	NodeCount      types.Int64  `tfsdk:"node_count"`
	Autoscaling    types.Object `tfsdk:"autoscaling"`
	DiskType       types.String `tfsdk:"disk_type"`
	DiskSizeGB     types.Int64  `tfsdk:"disk_size_gb"`
	Labels         types.Map    `tfsdk:"labels"`
	Taints         types.List   `tfsdk:"taints"`
	Zones          types.Set    `tfsdk:"zones"`
	Spot           types.Bool   `tfsdk:"spot"`
	ServiceAccount types.String `tfsdk:"service_account"`
	Scopes         types.Set    `tfsdk:"oauth_scopes"`
	MaxPods        types.Int64  `tfsdk:"max_pods_per_node"`
	Version        types.String `tfsdk:"version"`
}

var (
	labelsType      = types.MapType{ElemType: types.StringType}
	stringsType     = types.SetType{ElemType: types.StringType}
	autoscalingType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"min_nodes": types.Int64Type, "max_nodes": types.Int64Type, "total": types.BoolType, "location_policy": types.StringType,
	}}
	taintType   = types.ObjectType{AttrTypes: map[string]attr.Type{"key": types.StringType, "value": types.StringType, "effect": types.StringType}}
	cpuPoolType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"machine_type": types.StringType, "node_count": types.Int64Type, "autoscaling": autoscalingType, "disk_type": types.StringType,
		"disk_size_gb": types.Int64Type, "labels": labelsType, "taints": types.ListType{ElemType: taintType}, "zones": stringsType,
		"spot": types.BoolType, "service_account": types.StringType, "oauth_scopes": stringsType, "max_pods_per_node": types.Int64Type,
		"version": types.StringType,
	}}
)

func cpuPoolsAttribute() schema.Attribute {
	return schema.MapNestedAttribute{
		Required: true,
		MarkdownDescription: "The node pools without TPUs, by name: at least one, for the system's and the controllers' pods. Pools are added, changed and removed one by one, new ones first. " +
			"A change of machine, disk or version replaces the pool's nodes one after the other. " +
			"A pool that is taken out is deleted if it was made here, which its labels say; one that somebody else made, such as those of an imported cluster, stays as it is and is no longer managed, and the plan warns of it. " +
			"A pool that an interrupted apply made is shown by the next plan, and one that is not up is shown without nodes; the next apply goes on with it.",
		Validators:   []validator.Map{mapvalidator.SizeAtLeast(1), mapvalidator.KeysAre(tpuattr.DNSLabel(gke.MaxName))},
		NestedObject: schema.NestedAttributeObject{Attributes: cpuPoolAttributes()},
	}
}

func cpuPoolAttributes() map[string]schema.Attribute {
	const anew = " GKE cannot change it: the pool is made anew, while a pool named NAME-stand-in takes its pods, which needs room for both."
	return map[string]schema.Attribute{
		"machine_type": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "The machine type, such as `e2-standard-8`.",
			Validators:          []validator.String{cpuMachine()},
		},
		"node_count": schema.Int64Attribute{
			Optional: true, Computed: true,
			MarkdownDescription: "How many nodes, in each zone of the pool. The default is 1; with `autoscaling` the autoscaler decides.",
			Validators:          []validator.Int64{int64validator.Between(0, 1000)},
		},
		"autoscaling": schema.SingleNestedAttribute{
			Optional:            true,
			MarkdownDescription: "Lets the cluster autoscaler choose the number of nodes. Leaving it out turns it off.",
			Attributes: map[string]schema.Attribute{
				"min_nodes": schema.Int64Attribute{Optional: true, Computed: true, Default: int64default.StaticInt64(0), MarkdownDescription: "The least nodes, in each zone of the pool. The default is 0.",
					Validators: []validator.Int64{int64validator.AtLeast(0)}},
				"max_nodes": schema.Int64Attribute{Required: true, MarkdownDescription: "The most nodes, in each zone of the pool.",
					Validators: []validator.Int64{int64validator.Between(1, 15000)}},
				"total":           schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(false), MarkdownDescription: "Whether `min_nodes` and `max_nodes` count the nodes of all zones together. The default is false."},
				"location_policy": choice("How nodes spread over zones: `BALANCED` or `ANY`.", "BALANCED", "ANY"),
			},
		},
		"disk_type": text("The type of the boot disks. The default is GKE's."),
		"disk_size_gb": schema.Int64Attribute{
			Optional: true, Computed: true,
			MarkdownDescription: "The size of the boot disks in GB. The default is GKE's.",
			Validators:          []validator.Int64{int64validator.Between(10, 65536)},
		},
		"labels": schema.MapAttribute{
			Optional: true, Computed: true, ElementType: types.StringType,
			MarkdownDescription: "Kubernetes labels of the nodes. Changed in place.",
			Validators:          []validator.Map{tpuattr.KubernetesLabels()},
		},
		"taints": schema.ListNestedAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "Taints of the nodes. Changed in place.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key":    schema.StringAttribute{Required: true, MarkdownDescription: "The taint's key.", Validators: []validator.String{stringvalidator.LengthAtLeast(1)}},
				"value":  schema.StringAttribute{Required: true, MarkdownDescription: "The taint's value."},
				"effect": schema.StringAttribute{Required: true, MarkdownDescription: "`NoSchedule`, `PreferNoSchedule` or `NoExecute`.", Validators: []validator.String{stringvalidator.OneOf("NoSchedule", "PreferNoSchedule", "NoExecute")}},
			}},
		},
		"zones":           set("The zones of the pool's nodes. The default is the cluster's. Changed in place.", setvalidator.SizeAtLeast(1)),
		"spot":            flag("Whether the machines are spot machines, which Google may take back at any time." + anew),
		"service_account": text("The service account of the nodes, as its mail address. The default is Compute Engine's." + anew),
		"oauth_scopes":    set("The OAuth scopes of the nodes. The default is `https://www.googleapis.com/auth/cloud-platform`: what nodes may do is then the service account's roles." + anew),
		"max_pods_per_node": schema.Int64Attribute{Optional: true, Computed: true,
			MarkdownDescription: "The most pods of one node, 8 to 256. The default is the cluster's." + anew},
		"version": text("The lowest version of the nodes, such as `1.34`; not above the control plane's. Nodes that are older are upgraded one after the other. GKE upgrades them by itself too. Read back it is the version that runs.", version()),
	}
}
