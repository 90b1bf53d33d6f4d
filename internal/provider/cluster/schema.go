package cluster

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	tpuattr "github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
)

// shared is what the resource and the data source know of a cluster.
type shared struct {
	ID                 types.String `tfsdk:"id"`
	Name               types.String `tfsdk:"name"`
	Project            types.String `tfsdk:"project"`
	Location           types.String `tfsdk:"location"`
	ReleaseChannel     types.String `tfsdk:"release_channel"`
	Network            types.String `tfsdk:"network"`
	Subnetwork         types.String `tfsdk:"subnetwork"`
	IPRanges           types.Object `tfsdk:"ip_ranges"`
	MaxPodsPerNode     types.Int64  `tfsdk:"max_pods_per_node"`
	DataplaneV2        types.Bool   `tfsdk:"dataplane_v2"`
	Zones              types.Set    `tfsdk:"zones"`
	PrivateNodes       types.Bool   `tfsdk:"private_nodes"`
	DNS                types.Object `tfsdk:"dns"`
	ControlPlane       types.Object `tfsdk:"control_plane"`
	Maintenance        types.Object `tfsdk:"maintenance"`
	Logging            types.Object `tfsdk:"logging"`
	Monitoring         types.Object `tfsdk:"monitoring"`
	AutoscalingProfile types.String `tfsdk:"autoscaling_profile"`
	Autoprovisioning   types.Object `tfsdk:"autoprovisioning"`
	Addons             types.Object `tfsdk:"addons"`
	WorkloadIdentity   types.Bool   `tfsdk:"workload_identity"`
	ShieldedNodes      types.Bool   `tfsdk:"shielded_nodes"`
	SecurityPosture    types.Object `tfsdk:"security_posture"`
	CPUPools           types.Map    `tfsdk:"cpu_pools"`
	ResourceLabels     types.Map    `tfsdk:"resource_labels"`
	Version            types.String `tfsdk:"version"`
	Endpoint           types.String `tfsdk:"endpoint"`
	DNSEndpoint        types.String `tfsdk:"dns_endpoint"`
	CACertificate      types.String `tfsdk:"ca_certificate"`
	WorkloadPool       types.String `tfsdk:"workload_pool"`
	Status             types.String `tfsdk:"status"`
}

// model is the state and plan of one cluster.
type model struct {
	shared
	MinVersion         types.String   `tfsdk:"min_master_version"`
	EffectiveLabels    types.Map      `tfsdk:"effective_labels"`
	Overrides          types.String   `tfsdk:"cluster_overrides"`
	DeletionProtection types.Bool     `tfsdk:"deletion_protection"`
	Force              types.Bool     `tfsdk:"force"`
	Timeouts           timeouts.Value `tfsdk:"timeouts"`
}

// Schema implements resource.Resource.
func (r *Resource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A GKE cluster fit for TPU training: VPC-native, with Workload Identity, and with CPU node pools for everything that needs no TPU. " +
			"The TPUs themselves are `tpu_slice_pool`s. Node pools that are not in `cpu_pools` are never touched.\n\n" +
			"A setting that is left out is GKE's to choose when the cluster is made, and is left as it is afterwards, also when it was set before.\n\n" +
			"With `create_before_destroy`, a cluster that keeps its name cannot be made again: the new object takes the cluster over, and the old one leaves it, with a warning.",
		Attributes: attributes(ctx),
	}
}

func attributes(ctx context.Context) map[string]schema.Attribute {
	all := map[string]schema.Attribute{
		"id":   tpuattr.ID("projects/PROJECT/locations/LOCATION/clusters/CLUSTER"),
		"name": tpuattr.Name("The name of the cluster, up to 40 characters.", gke.MaxName),
		"project": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "The Google Cloud project. The default is the provider's. Changing it makes a new cluster.",
			Validators:          []validator.String{tpuattr.Project("the provider's")},
		},
		"location": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "A zone (`us-west4-a`) for a cluster in one zone, or a region (`us-west4`) for one in several. The default is the provider's. Changing it makes a new cluster.",
			Validators:          []validator.String{tpuattr.Location("the provider's")},
		},
		"min_master_version": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "The lowest version of the control plane, such as `1.34` or `1.34.1-gke.2201000`. A cluster that is older is upgraded in place; a newer one is left alone. The version that runs is `version`.",
			Validators:          []validator.String{version()},
		},
		"cpu_pools": cpuPoolsAttribute(),
		"resource_labels": schema.MapAttribute{
			Optional: true, ElementType: types.StringType,
			MarkdownDescription: "Google Cloud labels of the cluster, for billing for example. Changed in place.",
			Validators:          []validator.Map{tpuattr.ResourceLabels()},
		},
		"effective_labels": schema.MapAttribute{
			Computed: true, ElementType: types.StringType,
			MarkdownDescription: "`resource_labels` together with the provider's `default_labels`.",
		},
		"cluster_overrides": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Settings of the GKE API that have no attribute here: JSON of a [cluster](https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters#Cluster), " +
				"such as `jsonencode({ costManagementConfig = { enabled = true } })`, merged into what the attributes make. Only the fields that it names are looked at. " +
				"A field that GKE updates is changed in place, one operation each; any other needs another cluster, and the plan says so.",
		},
		"deletion_protection": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(true),
			MarkdownDescription: "Refuse to plan the cluster's deletion or replacement while this is true, which is the default. Set it to false and apply before you destroy.",
		},
		"force": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Delete the cluster also while it has node pools that this resource did not make (slices, for example) or jobs that run, or does not say whether any do. The default is false: the deletion stops and names them.",
		},
		"timeouts": tpuattr.Timeouts(ctx, timeouts.Opts{
			Create: true, Update: true, Delete: true,
			CreateDescription: "How long the creation may take, as a duration; the default is `40m`.",
			UpdateDescription: "How long an update may take; the default is `60m`.",
			DeleteDescription: "How long the deletion may take; the default is `40m`.",
		}),
	}
	for _, group := range []map[string]schema.Attribute{networkAttributes(), operationAttributes(), featureAttributes(), computedAttributes()} {
		for name, a := range group {
			all[name] = a
		}
	}
	return all
}

func computedAttributes() map[string]schema.Attribute {
	computed := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description, PlanModifiers: keep()}
	}
	return map[string]schema.Attribute{
		"version":        computed("The version of the control plane."),
		"endpoint":       computed("The address of the cluster's API server, without `https://`."),
		"dns_endpoint":   computed("The DNS name of the control plane, which `control_plane.dns_endpoint` opens to callers outside of Google Cloud."),
		"ca_certificate": computed("The public certificate (PEM) that the API server's certificate is signed with."),
		"workload_pool":  computed("The Workload Identity pool, `PROJECT.svc.id.goog`."),
		"status":         computed("The cluster's status as GKE has it: `RUNNING`, `PROVISIONING`, `RECONCILING`, `DEGRADED`, `ERROR` or `STOPPING`."),
	}
}

// keep leaves a computed value as it was unless ModifyPlan says otherwise.
func keep() []planmodifier.String {
	return []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
}
