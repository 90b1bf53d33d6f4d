package slicepool

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	tpuattr "github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
)

// model is the state and plan of one slice pool.
type model struct {
	ID                 types.String   `tfsdk:"id"`
	Cluster            types.String   `tfsdk:"cluster"`
	Name               types.String   `tfsdk:"name"`
	Accelerator        types.String   `tfsdk:"accelerator"`
	Topology           types.String   `tfsdk:"topology"`
	MachineType        types.String   `tfsdk:"machine_type"`
	SliceCount         types.Int64    `tfsdk:"slice_count"`
	Zone               types.String   `tfsdk:"zone"`
	PlacementPolicy    types.String   `tfsdk:"placement_policy"`
	Provisioning       types.Object   `tfsdk:"provisioning"`
	Node               types.Object   `tfsdk:"node"`
	Autoscaling        types.Object   `tfsdk:"autoscaling"`
	Version            types.String   `tfsdk:"version"`
	Management         types.Object   `tfsdk:"management"`
	Upgrade            types.Object   `tfsdk:"upgrade"`
	MaxUnavailable     types.Int64    `tfsdk:"max_unavailable_slices"`
	Overrides          types.String   `tfsdk:"node_pool_overrides"`
	OnStockout         types.String   `tfsdk:"on_stockout"`
	Force              types.Bool     `tfsdk:"force"`
	DeletionProtection types.Bool     `tfsdk:"deletion_protection"`
	ResourceLabels     types.Map      `tfsdk:"resource_labels"`
	EffectiveLabels    types.Map      `tfsdk:"effective_labels"`
	HostsPerSlice      types.Int64    `tfsdk:"hosts_per_slice"`
	ChipsPerSlice      types.Int64    `tfsdk:"chips_per_slice"`
	Chips              types.Int64    `tfsdk:"chips"`
	NodeSelector       types.Map      `tfsdk:"node_selector"`
	Tolerations        types.List     `tfsdk:"tolerations"`
	Slices             types.Map      `tfsdk:"slices"`
	ReadySlices        types.Int64    `tfsdk:"ready_slices"`
	Status             types.String   `tfsdk:"status"`
	Timeouts           timeouts.Value `tfsdk:"timeouts"`
}

// provisioning is how the machines are got.
type provisioning struct {
	Model          types.String `tfsdk:"model"`
	Reservation    types.String `tfsdk:"reservation"`
	MaxRunDuration types.String `tfsdk:"max_run_duration"`
}

// node is what the nodes of every slice have in common.
type node struct {
	ServiceAccount types.String `tfsdk:"service_account"`
	Labels         types.Map    `tfsdk:"labels"`
	BootDisk       types.Object `tfsdk:"boot_disk"`

	Tags               types.List   `tfsdk:"tags"`
	Taints             types.List   `tfsdk:"taints"`
	ImageType          types.String `tfsdk:"image_type"`
	ImageStreaming     types.Bool   `tfsdk:"image_streaming"`
	Private            types.Bool   `tfsdk:"private"`
	NetworkProfile     types.String `tfsdk:"network_profile"`
	MaxPods            types.Int64  `tfsdk:"max_pods"`
	SecondaryBootDisks types.List   `tfsdk:"secondary_boot_disks"`
}

type bootDisk struct {
	Type   types.String `tfsdk:"type"`
	SizeGB types.Int64  `tfsdk:"size_gb"`
}

var (
	provisioningType = map[string]attr.Type{"model": types.StringType, "reservation": types.StringType, "max_run_duration": types.StringType}
	bootDiskType     = map[string]attr.Type{"type": types.StringType, "size_gb": types.Int64Type}
	nodeType         = with(nodeSettingTypes, map[string]attr.Type{
		"service_account": types.StringType,
		"labels":          types.MapType{ElemType: types.StringType},
		"boot_disk":       types.ObjectType{AttrTypes: bootDiskType},
	})
	sliceType      = types.ObjectType{AttrTypes: map[string]attr.Type{"node_pool": types.StringType, "status": types.StringType, "message": types.StringType}}
	tolerationType = types.ObjectType{AttrTypes: map[string]attr.Type{"key": types.StringType, "operator": types.StringType, "value": types.StringType, "effect": types.StringType}}
)

// with joins maps of attributes.
func with[V any](more ...map[string]V) map[string]V {
	out := map[string]V{}
	for _, m := range more {
		maps.Copy(out, m)
	}
	return out
}

// Schema implements resource.Resource.
func (r *Resource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "N equal TPU slices, each of which is one GKE node pool named `NAME-INDEX`. " +
			"Node counts, placement, disks and labels follow from the accelerator.\n\n" +
			"Partial success is not failure: when some slices do not come up, the apply ends with a warning, `status` is `DEGRADED`, the next plan shows an update, " +
			"and the next apply makes only what is missing. Healthy slices are never touched to repair another. " +
			"Use a `postcondition` on `ready_slices` to make such an apply fail.\n\n" +
			"Two resources of one configuration with the same cluster and name are refused. Of two configurations, the one that comes second is refused if their `owner` in the provider's configuration differs; " +
			"if it is the same, or neither has one, node pools of the same name and specification are taken over, with a warning, as if an interrupted run had left them. " +
			"With `create_before_destroy` a pool of the same name cannot be made again: the new object takes the node pools over, and the old one leaves them, with a warning, also when the run ends between the two.",
		Attributes: with(settingsAttributes(), map[string]schema.Attribute{
			"id":      tpuattr.ID("projects/PROJECT/locations/LOCATION/clusters/CLUSTER/nodePools/NAME"),
			"cluster": tpuattr.Cluster(),
			"name":    tpuattr.Name("The name of the pool, up to 35 characters. Its node pools are called `NAME-0`, `NAME-1` and so on. In the names of machines GKE shortens the names of cluster and node pool to 32 characters together; a hash after them keeps slices apart, so look for a slice by the label `cloud.google.com/gke-nodepool`.", gke.MaxSlicePoolName),
			"accelerator": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "The TPU slice: a type name such as `v5litepod-16`, `v5p-128` or `v6e-16`, or a generation (`v5p`) together with `topology`. " +
					"Type names of v4, v5p, tpu7x and tpu7 count TensorCores (`v5p-8` is 4 chips), those of v5e and v6e count chips. " +
					"Another shape makes new slices; another name of the same shape changes nothing.",
				Validators: []validator.String{acceleratorOrGeneration()},
			},
			"topology": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The arrangement of a slice's chips, such as `4x4` or `4x4x8`. Written in lower case with its sides in GKE's order. Needed when `accelerator` is a generation, or when a type name has several arrangements and the most compact one is not wanted; a topology in the type name must be the same. Changing it makes new slices.",
				Validators:          []validator.String{tpuattr.TopologyText()},
			},
			"machine_type": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The machine type of the hosts, for shapes that can be made of several (8 chips of v5e or v6e). By default slices are made of the machine that multislice training can use. Written in full and in lower case; a machine size in the type name must be the same. Changing it makes new slices.",
				Validators:          []validator.String{tpuattr.MachineType()},
			},
			"slice_count": schema.Int64Attribute{
				Optional: true, Computed: true, Default: int64default.StaticInt64(1),
				MarkdownDescription: "How many slices. The default is 1. Growing adds node pools, shrinking removes idle slices (on which no job runs), those with the highest index first; the others are not touched. Indices need not be contiguous afterwards; growing fills the lowest free ones. The quotas of `tpu_kueue_queue` that follow the pool are lowered before it shrinks, until they fit together.",
				Validators:          []validator.Int64{int64validator.Between(0, gke.MaxSlices)},
			},
			"zone": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The zone of the slices. Needed on regional clusters; on a zonal one it is the cluster's. Changing it makes new slices.",
			},
			"placement_policy": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The Compute Engine workload policy (type HIGH_THROUGHPUT, with the slice's topology, in the cluster's region) that places multi-host tpu7x slices. " +
					"By default the pool has one of its own, which is made before its node pools and removed after them; that needs `roles/compute.instanceAdmin.v1`. " +
					"A policy that is named here is used as it is and never removed. Changing it makes new slices.",
			},
			"provisioning": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "How the machines are got. Changing it makes new slices.",
				Attributes:          provisioningAttributes(),
			},
			"node": schema.SingleNestedAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "What the nodes of every slice have in common. " +
					"A setting that is taken out goes back to its default, except `image_type`, `private`, `network_profile` and the size of the boot disks: their default is GKE's, and slices keep what they have until another value is set.",
				Attributes: with(nodeAttributes(), map[string]schema.Attribute{
					"service_account": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "The email address of the nodes' service account. The default is the project's Compute Engine default account (`default`). Changed slice by slice.",
						Validators:          []validator.String{tpuattr.Check("Invalid service account", "the email address of a service account", gke.CheckServiceAccount)},
					},
					"labels": schema.MapAttribute{
						Optional: true, ElementType: types.StringType,
						MarkdownDescription: "Kubernetes labels of the nodes, besides those that GKE adds. Changed in place.",
					},
					"boot_disk": schema.SingleNestedAttribute{
						Optional: true, Computed: true,
						MarkdownDescription: "The boot disks. Changed slice by slice.",
						Attributes: map[string]schema.Attribute{
							"type": schema.StringAttribute{
								Optional:            true,
								MarkdownDescription: "`pd-balanced` (the default) or `pd-standard`; v6e and tpu7x boot from `hyperdisk-balanced` only.",
							},
							"size_gb": schema.Int64Attribute{
								Optional: true, Computed: true,
								MarkdownDescription: "The size in GB. The default of a new pool is GKE's; taken out, it stays as it is.",
								Validators:          []validator.Int64{int64validator.Between(10, 65536)},
							},
						},
					},
				}),
			},
			"on_stockout": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(string(gke.StockoutWait)),
				MarkdownDescription: "What to do about a slice for which the zone or the reservation has no capacity. " +
					"`wait` (the default): ask again until the timeout. `keep`: ask once (GKE then looks for 35 minutes) and leave the node pool as it is, to be looked at; the next apply replaces it. " +
					"`cleanup`: ask once and remove what did not come up; if no slice came up, a creation is an error and leaves nothing, neither in GKE nor in state.",
				Validators: []validator.String{stringvalidator.OneOf(string(gke.StockoutWait), string(gke.StockoutKeep), string(gke.StockoutCleanup))},
			},
			"force": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Whether slices with a running job may be removed or get new nodes, which kills the job. By default they are left as they are, with a warning, and the next plan shows what is still to do.",
			},
			"deletion_protection": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Whether plans that would delete or replace the whole pool are refused. The default is false. Shrinking is not deletion: `force` guards running jobs there.",
			},
			"resource_labels": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Google Cloud labels of the machines, for billing for example. Changed in place.",
				Validators:          []validator.Map{tpuattr.ResourceLabels()},
			},
			"effective_labels": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "`resource_labels` together with the provider's `default_labels`.",
			},
			"hosts_per_slice": schema.Int64Attribute{Computed: true, MarkdownDescription: "The number of hosts (nodes) of one slice."},
			"chips_per_slice": schema.Int64Attribute{Computed: true, MarkdownDescription: "The number of chips of one slice."},
			"chips":           schema.Int64Attribute{Computed: true, MarkdownDescription: "The number of chips of all slices together."},
			"node_selector": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "The node selector of pods that run on these slices.",
			},
			"tolerations": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The tolerations that pods need on these slices.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"key":      schema.StringAttribute{Computed: true, MarkdownDescription: "The taint's key."},
					"operator": schema.StringAttribute{Computed: true, MarkdownDescription: "How the value is compared."},
					"value":    schema.StringAttribute{Computed: true, MarkdownDescription: "The taint's value."},
					"effect":   schema.StringAttribute{Computed: true, MarkdownDescription: "The taint's effect."},
				}},
			},
			"slices": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The slices by index, as GKE had them at the last apply or refresh.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"node_pool": schema.StringAttribute{Computed: true, MarkdownDescription: "The name of the slice's node pool."},
					"status":    schema.StringAttribute{Computed: true, MarkdownDescription: "`RUNNING`, `PROVISIONING`, `STOPPING` or `ERROR`."},
					"message":   schema.StringAttribute{Computed: true, MarkdownDescription: "What is wrong, if anything, in a few words: the cause, with the zone, quota or reservation it is about."},
				}},
			},
			"ready_slices": schema.Int64Attribute{Computed: true, MarkdownDescription: "How many slices are up."},
			"status": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "`READY`: every slice's node pool is up and as configured. `PROVISIONING`: one is still being made. `DEGRADED`: one is missing, failed, or too many; the next apply repairs it. `OUTDATED`: all are up, and one has other settings than it should: a change did not finish or had to spare a job, or somebody changed that slice; its `message` names them, and the next apply changes them. Single nodes that GKE replaces (a preempted spot node) do not count.",
			},
			"timeouts": tpuattr.Timeouts(ctx, timeouts.Opts{
				Create: true, Update: true, Delete: true,
				CreateDescription: "How long to wait for all slices, as a duration such as `2h`. The default is 90 minutes, and a minute for each slice and each 16 hosts. What is not up by then is not an error: see `status`.",
				UpdateDescription: "How long an update may take; the default is that of `create`.",
				DeleteDescription: "How long the removal of all slices may take; the default is 60 minutes, and a minute for each slice and each 16 hosts.",
			}),
		}),
	}
}

// acceleratorOrGeneration accepts a type name, or a generation alone.
func acceleratorOrGeneration() validator.String {
	return tpuattr.Check("Unknown accelerator", "a TPU type name such as v5litepod-16, or a generation such as v5p together with topology", checkAccelerator)
}
