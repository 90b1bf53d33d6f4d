package jobcontrollers

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	fwattr "github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
)

func enabled(what string) schema.BoolAttribute {
	return schema.BoolAttribute{
		Optional: true, Computed: true, Default: booldefault.StaticBool(true),
		MarkdownDescription: "Whether to install " + what + ". Set it to false where somebody else does.",
	}
}

func replicas() schema.Int64Attribute {
	return schema.Int64Attribute{
		Optional: true, Computed: true, Default: int64default.StaticInt64(1),
		Validators:          []validator.Int64{int64validator.Between(1, 10)},
		MarkdownDescription: "Number of pods. One leads; the others serve webhooks and stand by.",
	}
}

func version(what string, versions []string) schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true, Computed: true, Default: stringdefault.StaticString(versions[0]),
		Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		MarkdownDescription: fmt.Sprintf("The release of %s: `%s`. Default the newest. JobSet and Kueue go in pairs: %s. An older release than the installed one is refused.",
			what, strings.Join(versions, "` or `"), pairs()),
	}
}

// pairs lists the releases that fit each other.
func pairs() string {
	jobSets, kueues := controllers.Versions()
	var out []string
	for i := range jobSets {
		out = append(out, fmt.Sprintf("`%s` with `%s`", jobSets[i], kueues[i]))
	}
	return strings.Join(out, ", ")
}

func resourcesAttribute() schema.SingleNestedAttribute {
	quantity := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description}
	}
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "What each pod requests. What is left out follows `max_hosts`, or else the release.",
		Attributes: map[string]schema.Attribute{
			"cpu":          quantity("CPU request, such as `500m` or `2`."),
			"memory":       quantity("Memory request, such as `4Gi`."),
			"memory_limit": quantity("Memory limit; the pod is ended above it. Raised to the request when that is more."),
		},
	}
}

func clientQPS() schema.Int64Attribute {
	return schema.Int64Attribute{
		Optional: true, Validators: []validator.Int64{int64validator.Between(1, 10000)},
		MarkdownDescription: "Requests a second that the controller may send to the API server. Default the release's own.",
	}
}

func clientBurst() schema.Int64Attribute {
	return schema.Int64Attribute{
		Optional: true, Validators: []validator.Int64{int64validator.Between(1, 20000)},
		MarkdownDescription: "Requests that the controller may send to the API server at once. Default the release's own.",
	}
}

func featureGates(example string) schema.MapAttribute {
	return schema.MapAttribute{
		Optional: true, ElementType: types.BoolType,
		MarkdownDescription: "Feature gates to turn on or off, such as `{ " + example + " }`. A name that the release does not know keeps the controller from starting, which the error then says.",
	}
}

// off is a switch that is off unless it is set.
func off(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(false), MarkdownDescription: description}
}

func tolerationsAttribute() schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		Optional:            true,
		MarkdownDescription: "Taints that the controllers' pods tolerate, for a node pool that is set aside for them.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"key": schema.StringAttribute{Optional: true, MarkdownDescription: "The taint's key. Without it, with `operator = \"Exists\"`, every taint."},
			"operator": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf("Equal", "Exists")},
				MarkdownDescription: "`Equal` or `Exists`. Default `Equal` with a `value`, else `Exists`.",
			},
			"value": schema.StringAttribute{Optional: true, MarkdownDescription: "The taint's value."},
			"effect": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf("NoSchedule", "PreferNoSchedule", "NoExecute")},
				MarkdownDescription: "`NoSchedule`, `PreferNoSchedule` or `NoExecute`. Without it, all of them.",
			},
		}},
	}
}

// defaults is an object of these types with these values, and null elsewhere.
func defaults(of map[string]fwattr.Type, values map[string]fwattr.Value) types.Object {
	all := map[string]fwattr.Value{}
	for name, t := range of {
		if v, ok := values[name]; ok {
			all[name] = v
			continue
		}
		switch t := t.(type) {
		case types.ObjectType:
			all[name] = types.ObjectNull(t.AttrTypes)
		case types.MapType:
			all[name] = types.MapNull(t.ElemType)
		case types.ListType:
			all[name] = types.ListNull(t.ElemType)
		default:
			if t == types.Int64Type {
				all[name] = types.Int64Null()
			} else {
				all[name] = types.StringNull()
			}
		}
	}
	return types.ObjectValueMust(of, all)
}

func jobSetAttribute() schema.SingleNestedAttribute {
	versions, _ := controllers.Versions()
	return schema.SingleNestedAttribute{
		Optional: true, Computed: true,
		Default: objectdefault.StaticValue(defaults(jobSetTypes, map[string]fwattr.Value{
			"enabled": types.BoolValue(true), "version": types.StringValue(controllers.JobSetVersion), "replicas": types.Int64Value(1),
		})),
		MarkdownDescription: "The JobSet controller.",
		Attributes: map[string]schema.Attribute{
			"enabled":       enabled("JobSet"),
			"version":       version("JobSet", versions),
			"replicas":      replicas(),
			"resources":     resourcesAttribute(),
			"client_qps":    clientQPS(),
			"client_burst":  clientBurst(),
			"feature_gates": featureGates("InPlaceRestart = true"),
		},
	}
}
