package jobset

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

var replaceMap = []planmodifier.Map{mapplanmodifier.RequiresReplace()}

// quantity is a Kubernetes quantity, such as 4, 500m or 16Gi.
func quantity(text string) schema.StringAttribute {
	return schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: text,
		Validators: []validator.String{attr.Check("Invalid quantity", "a quantity such as 4, 500m or 16Gi", func(s string) error {
			if _, err := resource.ParseQuantity(s); err != nil {
				return fmt.Errorf("%q is not a quantity: want a number, if need be with a unit, such as 4, 500m or 16Gi", s)
			}
			return nil
		})},
	}
}

func word(text string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: text, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}}
}

func yes(text string) schema.BoolAttribute {
	return schema.BoolAttribute{Optional: true, MarkdownDescription: text}
}

func words(text string) schema.ListAttribute {
	return schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: text}
}

func textMap(text string) schema.MapAttribute {
	return schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: text}
}

// pods are the inputs about what is in the pods.
func pods() map[string]schema.Attribute {
	from, resources, after := envFrom(), resources("What each container asks for beside its chips; hosts of tpu7x run two containers. "+
		"A queue that does not count cpu and memory takes such a job all the same, but only one of `jobs` can ask for them too, and none that others wait for."), startsAfter(
		"What must be there before the main job (of a Pathways job: its head) starts: further jobs by name, each `ready` (all its pods are) or `complete` (all have succeeded).")
	from.MarkdownDescription += replaces
	from.PlanModifiers = []planmodifier.List{listplanmodifier.RequiresReplace()}
	resources.MarkdownDescription += replaces
	resources.PlanModifiers = []planmodifier.Object{objectplanmodifier.RequiresReplace()}
	after.MarkdownDescription += replaces
	after.PlanModifiers = replaceMap
	shell, network := word("A script for the image's shell, instead of `command` and `args`: for pipes and sequences. The job ends as the script does."+replaces),
		yes("Whether the pods use their host's network (default false)."+replaces)
	shell.PlanModifiers, network.PlanModifiers = replaceString, []planmodifier.Bool{boolplanmodifier.RequiresReplace()}
	scheduler := word("The scheduler that places the pods. The cluster's own by default." + replaces)
	scheduler.PlanModifiers = replaceString
	return map[string]schema.Attribute{
		"shell":    shell,
		"env_from": from,
		"files": schema.MapAttribute{
			Optional: true, ElementType: types.StringType,
			MarkdownDescription: "Small files, by their absolute path: configuration, vocabularies. Every container finds them there, read-only. " +
				"They are a ConfigMap that goes with the job, 1 MiB together at most; what is larger belongs into a bucket. Nothing secret belongs here." + replaces,
			PlanModifiers: replaceMap,
		},
		"volumes":        volumes(),
		"resources":      resources,
		"jobs":           jobs(),
		"starts_after":   after,
		"host_network":   network,
		"scheduler_name": scheduler,
		"jobset_overrides": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Fields of the JobSet that no attribute stands for, as JSON (`jsonencode`), merged into what the provider renders: objects field by field, " +
				"lists of named things (jobs, containers, volumes) by name, other lists as a whole; null takes a field away. The outcome is checked in the plan as far as that can be done offline. " +
				"The main job is called `" + training.SliceJob + "`, its container `" + training.Container + "` (of a Pathways job, that is in `" + training.HeadJob + "`)." + replaces,
			PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplaceIf(otherJSON,
				"Other overrides make a new job; the same ones written otherwise do not.", "Other overrides make a new job; the same ones written otherwise do not.")},
		},
	}
}

func envFrom() schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		Optional: true,
		MarkdownDescription: "Secrets and config maps of the job's namespace whose keys become environment variables, later ones over earlier ones, `env` over all. " +
			"Their values are not in the state.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"secret":     word("The name of a Secret."),
			"config_map": word("The name of a ConfigMap."),
			"prefix":     word("What to put before each name."),
			"optional":   yes("Whether the pods start without it (default false: they wait for it)."),
		}},
	}
}

func resources(text string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: text,
		Attributes: map[string]schema.Attribute{
			"cpu": quantity("CPUs, such as `100` or `500m`. More may be used while the host has them idle."),
			"memory": quantity("Memory, such as `180Gi`, and no more: a program that takes more is ended, which counts as a crash. " +
				"Without it, the host evicts whoever takes too much, which looks like a preemption and restarts the job again and again."),
			"ephemeral_storage": quantity("Disk for logs and what is written outside volumes, such as `50Gi`, and no more."),
		},
	}
}

func startsAfter(text string) schema.MapAttribute {
	return schema.MapAttribute{
		Optional: true, ElementType: types.StringType, MarkdownDescription: text,
		Validators: []validator.Map{mapvalidator.ValueStringsAre(stringvalidator.OneOf(training.Untils...))},
	}
}

func volumes() schema.MapNestedAttribute {
	return schema.MapNestedAttribute{
		Optional: true,
		MarkdownDescription: "Storage for the containers, by a name. Each says what it is by one of `" + "bucket`, `claim`, `secret`, `config_map`, `host_path`, `ramdisk`, `multi_tier`, `memory`, `scratch` or `nfs`. " +
			"Further jobs have them too, but for those that only TPU hosts have (`host_path`, `ramdisk`, `multi_tier`)." + replaces,
		PlanModifiers: replaceMap,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"path":          schema.StringAttribute{Required: true, MarkdownDescription: "Where it is mounted, an absolute path."},
			"read_only":     yes("Whether it is mounted read-only (default false)."),
			"sub_path":      word("The folder of it that is mounted; all of it by default."),
			"bucket":        word("A Cloud Storage bucket, by its name alone. The cluster needs the Cloud Storage FUSE addon, and the job a service account with access to the bucket."),
			"mount_options": words("Options of Cloud Storage FUSE, such as `implicit-dirs` or `only-dir=FOLDER`."),
			"claim":         word("A PersistentVolumeClaim of the namespace: Filestore, Lustre, Parallelstore, Hyperdisk."),
			"secret":        word("A Secret of the namespace, one file a key."),
			"config_map":    word("A ConfigMap of the namespace, one file a key."),
			"host_path":     word("A folder of the host."),
			"ramdisk":       yes("The checkpoint volume in the host's memory. The cluster needs the high-scale checkpointing addon."),
			"multi_tier":    yes("The multi-tier checkpoint volume. The cluster needs the high-scale checkpointing addon."),
			"memory":        quantity("An empty folder in memory of this size. It counts as the container's memory."),
			"scratch":       quantity("An empty folder on the boot disk of this size, deleted with the pod."),
			"nfs": schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "A share of an NFS server.", Attributes: map[string]schema.Attribute{
				"server": schema.StringAttribute{Required: true, MarkdownDescription: "The server's name or address."},
				"path":   schema.StringAttribute{Required: true, MarkdownDescription: "The exported path."},
			}},
		}},
	}
}

func jobs() schema.MapNestedAttribute {
	return schema.MapNestedAttribute{
		Optional: true,
		MarkdownDescription: "Further jobs beside the main one, by name: pods without chips, such as an uploader of metrics, an evaluator or a preparation of data. " +
			"They are admitted, restarted and ended together with the main job, which alone decides whether the run succeeded. " +
			"They have the run's `files`, `volumes`, service account and `RUN_ID`, `ATTEMPT` and `OUTPUT_DIR`; where one has several pods, also `JAX_COORDINATOR_ADDRESS`, `JAX_PROCESS_ID` and `JAX_NUM_PROCESSES`." + replaces,
		PlanModifiers: replaceMap,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"pods":          schema.Int64Attribute{Optional: true, MarkdownDescription: "How many pods it has (default 1).", Validators: []validator.Int64{int64validator.AtLeast(1)}},
			"image":         word("The container image. The main job's by default."),
			"command":       words("The program and its arguments."),
			"args":          words("Arguments for the image's entry point, or more of them for `command`."),
			"shell":         word("A script for the image's shell, instead of `command` and `args`."),
			"env":           textMap("Environment variables. Those of the main job are not taken over."),
			"env_from":      envFrom(),
			"resources":     resources("What each pod asks for."),
			"node_selector": textMap("Labels of the nodes it runs on. Any node without TPUs by default."),
			"on_failure": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "What its failure does: `retry` (default: its container is started again, as often as need be, and the main job does not notice), " +
					"`restart` (the whole run restarts, counted by `max_restarts`) or `fail` (the run fails).",
				Validators: []validator.String{stringvalidator.OneOf(training.OnFailures...)},
			},
			"starts_after": startsAfter("What must be there before it starts: other jobs by name (`" + training.SliceJob + "` is the main job, `" + training.HeadJob + "` the head of a Pathways job), each `ready` or `complete`."),
		}},
	}
}
