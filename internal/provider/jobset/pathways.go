package jobset

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

type placementModel struct {
	Provisioning types.String `tfsdk:"provisioning"`
	Reservation  types.String `tfsdk:"reservation"`
	Policy       types.String `tfsdk:"policy"`
	Pool         types.String `tfsdk:"pool_accelerator"`
}

type pathwaysModel struct {
	Scratch          types.String `tfsdk:"scratch_location"`
	Headless         types.Bool   `tfsdk:"headless"`
	ProxyImage       types.String `tfsdk:"proxy_image"`
	ServerImage      types.String `tfsdk:"server_image"`
	ProxyArgs        types.List   `tfsdk:"proxy_args"`
	ServerArgs       types.List   `tfsdk:"server_args"`
	WorkerArgs       types.List   `tfsdk:"worker_args"`
	ProxyResources   types.Object `tfsdk:"proxy_resources"`
	ServerResources  types.Object `tfsdk:"server_resources"`
	HeadNodeSelector types.Map    `tfsdk:"head_node_selector"`
	ElasticSlices    types.Int64  `tfsdk:"elastic_slices"`
	MaxSliceRestarts types.Int64  `tfsdk:"max_slice_restarts"`
	ColocatedPython  types.String `tfsdk:"colocated_python_image"`
}

// placement are the inputs about where a job runs, and Pathways.
func placement() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"placement": schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: "Which slices of its kind the job takes. Without it, any: a queued job gets what its queue's flavor says. " +
				"For slices of one capacity model, for node pools that are scaled or made when a job asks for them, and for parts of slices." + replaces,
			PlanModifiers: []planmodifier.Object{objectplanmodifier.RequiresReplaceIf(otherPlacement, "Another placement makes a new job.", "Another placement makes a new job.")},
			Attributes: map[string]schema.Attribute{
				"provisioning": schema.StringAttribute{
					Optional:            true,
					MarkdownDescription: "The capacity model of the nodes: `on_demand`, `spot`, `flex_start`, `queued` or `reservation`. Any by default.",
					Validators:          []validator.String{stringvalidator.OneOf(queue.Provisionings...)},
				},
				"reservation": word("With `provisioning = \"reservation\"`: the reservation's name alone, as its nodes carry it."),
				"policy": word("The workload policy that places slices of several tpu7x hosts, by its name (`placement_policy` of a `tpu_slice_pool`). " +
					"Node auto-provisioning needs it, and clusters with several policies for one topology."),
				"pool_accelerator": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: "The kind of slice that the node pools are made of, where the job's slices are parts of them (`accelerator = \"v6e-64\"` in pools of `v6e-256`), " +
						"or are formed of several (`accelerator = \"tpu7x-256\"` of cubes, `tpu7x-128`). Kueue chooses the parts, by the Topology of a `tpu_kueue_flavor` of this kind with `topology_aware`; " +
						"cubes also need an admission check by `" + accelerator.SuperSliceController + "`.",
					Validators: []validator.String{attr.AcceleratorName()},
				},
			},
		},
		"containers_per_host": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "How many containers share the chips of a host: on tpu7x 2 (default, one for each half of the host) or 1. Elsewhere there is 1." +
				replaces,
			Validators:    []validator.Int64{int64validator.AtLeast(1)},
			PlanModifiers: []planmodifier.Int64{int64planmodifier.RequiresReplace()},
		},
		"pathways": pathways(),
	}
}

func pathways() schema.SingleNestedAttribute {
	sized := func(text string, r training.Resources) schema.SingleNestedAttribute {
		return resources(fmt.Sprintf("%s What is left out is %s CPUs and %s of memory.", text, r.CPU, r.Memory))
	}
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Runs the program once, in a head on a CPU host, which uses the chips of all slices through the Pathways servers on them. " +
			"What is said of the program (`image`, `command`, `env`, `files`, `resources`, exit codes, ...) holds in the head, whose end is the end of the job. " +
			"The program finds `JAX_PLATFORMS`, `JAX_BACKEND_TARGET` and `XCLOUD_ENVIRONMENT` set. `resources.cpu` is " + training.DefaultProgramResources.CPU.String() + " by default." + replaces,
		PlanModifiers: []planmodifier.Object{objectplanmodifier.RequiresReplace()},
		Attributes: map[string]schema.Attribute{
			"scratch_location": schema.StringAttribute{Required: true, MarkdownDescription: "The folder in Cloud Storage that the servers share, such as `gs://BUCKET/pathways`. The job's service account needs access to it."},
			"headless":         yes("No program: clients elsewhere connect to `proxy_address`. The job runs until it is deleted, suspended or `max_run_time` has passed (default false)."),
			"proxy_image":      word("The image of the proxy (default `" + training.DefaultProxyImage + "`)."),
			"server_image":     word("The image of the resource manager and the workers (default `" + training.DefaultServerImage + "`)."),
			"proxy_args":       words("Further arguments of the proxy, such as XLA flags."),
			"server_args":      words("Further arguments of the resource manager."),
			"worker_args":      words("Further arguments of the workers."),
			"proxy_resources":  sized("What the proxy asks for.", training.DefaultProxyResources),
			"server_resources": sized("What the resource manager asks for.", training.DefaultServerResources),
			"head_node_selector": textMap("Labels of the nodes that the head runs on. Any node without TPUs by default; one needs room for the program, the proxy and the resource manager together: " +
				"48 CPUs and 132 GB, and what the program takes beside, unless they ask for less."),
			"elastic_slices": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "How many slices may come and go while the program runs (default 0). Hosts that are preempted or lost are then replaced and the job is not restarted; " +
					"without it, it restarts, which is not counted.",
				Validators: []validator.Int64{int64validator.AtLeast(0)},
			},
			"max_slice_restarts": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: fmt.Sprintf("How often the workers of a slice may end, for each of its hosts, before the whole job restarts, counted (default %d).", training.DefaultSliceRestarts),
				Validators:          []validator.Int64{int64validator.AtLeast(1)},
			},
			"colocated_python_image": word("The image of a Python server beside each worker (port 50051), for code that runs next to the chips. It has the job's `env`, `files` and `volumes`. None by default."),
		},
	}
}

// otherPlacement: two spellings of one kind of slice are the same.
func otherPlacement(ctx context.Context, req planmodifier.ObjectRequest, resp *objectplanmodifier.RequiresReplaceIfFuncResponse) {
	resp.RequiresReplace = !samePlacement(ctx, req.StateValue, req.PlanValue)
}

func samePlacement(ctx context.Context, a, b types.Object) bool {
	unknown, diags := map[string]bool{}, diag.Diagnostics{}
	was, is := model{Placement: a}.placed(ctx, unknown, &diags), model{Placement: b}.placed(ctx, unknown, &diags)
	return len(unknown) == 0 && was == is
}

// known takes an object over whose attributes may each be unknown yet.
func asKnown(ctx context.Context, field string, o types.Object, into any, unknown map[string]bool, diags *diag.Diagnostics) bool {
	switch {
	case o.IsUnknown():
		unknown[field] = true
		return false
	case o.IsNull():
		return false
	}
	raw, err := o.ToTerraformValue(ctx)
	if err != nil || !raw.IsFullyKnown() {
		unknown[field] = true
	}
	found := o.As(ctx, into, basetypes.ObjectAsOptions{})
	diags.Append(found...)
	return !found.HasError()
}

func (m model) placed(ctx context.Context, unknown map[string]bool, diags *diag.Diagnostics) training.Placement {
	var p placementModel
	if !asKnown(ctx, "placement", m.Placement, &p, unknown, diags) {
		return training.Placement{}
	}
	out := training.Placement{Provisioning: queue.Provisioning(p.Provisioning.ValueString()), Reservation: p.Reservation.ValueString(), Policy: p.Policy.ValueString(), Pool: p.Pool.ValueString()}
	if pool, err := accelerator.Resolve(out.Pool); err == nil {
		out.Pool = pool.Name
	} else if out.Pool != "" { // the attribute's own validator says so
		unknown["placement"], out.Pool = true, ""
	}
	return out
}

// throughPathways translates pathways. What is unknown is left out, or stood in
// for: the rest of the job is held against the rest of it.
func (m model) throughPathways(ctx context.Context, unknown map[string]bool, diags *diag.Diagnostics) *training.Pathways {
	var p pathwaysModel
	if !asKnown(ctx, "pathways", m.Pathways, &p, unknown, diags) {
		if unknown["pathways"] { // whether there is a program is not known
			for _, field := range []string{"image", "jobs", "starts_after", "jobset_overrides"} {
				unknown[field] = true
			}
		}
		return nil
	}
	if p.Headless.IsUnknown() {
		unknown["image"] = true
	}
	partly := map[string]bool{} // is said already
	return &training.Pathways{
		Scratch: p.Scratch.ValueString(), Headless: p.Headless.ValueBool(), ProxyImage: p.ProxyImage.ValueString(), ServerImage: p.ServerImage.ValueString(),
		ProxyArgs: m.strings("", p.ProxyArgs, partly), ServerArgs: m.strings("", p.ServerArgs, partly), WorkerArgs: m.strings("", p.WorkerArgs, partly),
		ProxyResources: asked(ctx, p.ProxyResources, diags), ServerResources: asked(ctx, p.ServerResources, diags),
		HeadNodeSelector: m.stringMap("", p.HeadNodeSelector, partly), ElasticSlices: int(p.ElasticSlices.ValueInt64()), MaxSliceRestarts: int(p.MaxSliceRestarts.ValueInt64()),
		ColocatedPython: p.ColocatedPython.ValueString(),
	}
}

func asked(ctx context.Context, o types.Object, diags *diag.Diagnostics) training.Resources {
	var r resourcesModel
	if o.IsNull() || o.IsUnknown() {
		return training.Resources{}
	}
	diags.Append(o.As(ctx, &r, basetypes.ObjectAsOptions{})...)
	return r.spec()
}

// proxyAddress is what follows from name and pathways.
func (m model) proxyAddress() types.String {
	switch {
	case m.Pathways.IsUnknown() || m.Name.IsUnknown():
		return types.StringUnknown()
	case m.Pathways.IsNull():
		return types.StringNull()
	}
	return types.StringValue(training.ProxyAddress(m.Name.ValueString()))
}

func (m *model) importedPlacement(ctx context.Context, s training.Spec, diags *diag.Diagnostics) {
	inputs := placement()
	object := func(name string, into *types.Object, from any, set bool) {
		typ, _ := inputs[name].GetType().(types.ObjectType)
		*into = types.ObjectNull(typ.AttrTypes)
		if set {
			v, found := types.ObjectValueFrom(ctx, typ.AttrTypes, from)
			diags.Append(found...)
			*into = v
		}
	}
	p := s.Placement
	object("placement", &m.Placement, placementModel{optional(string(p.Provisioning)), optional(p.Reservation), optional(p.Policy), optional(p.Pool)}, p != (training.Placement{}))
	m.Containers = optionalNumber(s.ContainersPerHost)
	w := s.Pathways
	if w == nil {
		object("pathways", &m.Pathways, nil, false)
		return
	}
	sized, _ := resources("").GetType().(types.ObjectType)
	amounts := func(r training.Resources) types.Object {
		if from := fromResources(r); from != nil {
			v, found := types.ObjectValueFrom(ctx, sized.AttrTypes, *from)
			diags.Append(found...)
			return v
		}
		return types.ObjectNull(sized.AttrTypes)
	}
	object("pathways", &m.Pathways, pathwaysModel{
		Scratch: types.StringValue(w.Scratch), Headless: flag(w.Headless), ProxyImage: optional(w.ProxyImage), ServerImage: optional(w.ServerImage),
		ProxyArgs: optionalList(w.ProxyArgs), ServerArgs: optionalList(w.ServerArgs), WorkerArgs: optionalList(w.WorkerArgs),
		ProxyResources: amounts(w.ProxyResources), ServerResources: amounts(w.ServerResources), HeadNodeSelector: conn.StringMap(w.HeadNodeSelector),
		ElasticSlices: optionalNumber(w.ElasticSlices), MaxSliceRestarts: optionalNumber(w.MaxSliceRestarts), ColocatedPython: optional(w.ColocatedPython),
	}, true)
}

func optionalNumber(n int) types.Int64 {
	if n == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(int64(n))
}
