package jobcontrollers

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
)

var (
	defaultPodsReady = short(controllers.DefaultPodsReadyTimeout)
	defaultRecovery  = short(controllers.DefaultRecoveryTimeout)
)

// Schema describes the resource.
func (r *Resource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: fmt.Sprintf("The JobSet and Kueue controllers on a cluster: JobSet runs a training job on slices, Kueue decides when. "+
			"The official manifests of JobSet %s and Kueue %s, and of one older pair, are part of the provider and are written by server-side apply; nothing is downloaded but the images.\n\n"+
			"A newer `version` upgrades in place: jobs run on, waiting ones keep waiting, no queue or job is deleted, and what Kueue stored is stored anew in the version that the new release wants. An apply that is interrupted is continued by the next one.\n\n"+
			"Kueue manages JobSets and Jobs only: its webhooks for pods, deployments and other frameworks are left out, because they would block pods of every namespace while Kueue is down. "+
			"Chips are what queues count; cpu and memory are ignored unless a queue declares them. "+
			"JobSet's definition gets columns of a job's queue, owner, slices and accelerator, by which `kubectl get jobsets` and `tpuctl list` tell them.\n\n"+
			"Let queues, flavors and jobs take their cluster from here (`cluster = tpu_job_controllers.main.cluster`), so that they are created after the controllers and destroyed before them.",
			controllers.JobSetVersion, controllers.KueueVersion),
		Attributes: map[string]schema.Attribute{
			"id":      attr.ID("projects/PROJECT/locations/LOCATION/clusters/CLUSTER/jobControllers"),
			"cluster": attr.Cluster(),
			"jobset":  jobSetAttribute(),
			"kueue":   kueueAttribute(),
			"image_repository": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(controllers.DefaultRegistry),
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
				MarkdownDescription: "Where the controllers' images come from, instead of `" + controllers.DefaultRegistry + "`: a registry or repository that mirrors it, for clusters that cannot reach the public one. " +
					"With `R`, the images are `R/jobset/jobset:" + controllers.JobSetVersion + "` and `R/kueue/kueue:" + controllers.KueueVersion + "`.",
			},
			"webhook_port": schema.Int64Attribute{
				Optional: true, Computed: true, Default: int64default.StaticInt64(controllers.DefaultWebhookPort),
				Validators: []validator.Int64{int64validator.AtLeast(1)},
				MarkdownDescription: fmt.Sprintf("The port that the controllers' pods serve their webhooks on. Default %d: the control plane of a private GKE cluster reaches nodes on 443 and %d only, unless a firewall rule says otherwise.",
					controllers.DefaultWebhookPort, controllers.DefaultWebhookPort),
			},
			"max_hosts": schema.Int64Attribute{
				Optional:   true,
				Validators: []validator.Int64{int64validator.Between(1, 65000)},
				MarkdownDescription: "How many TPU hosts the cluster will have at most. Each controller gets memory (1.2 MiB a host and at least 4 GiB, as xpk gives them) and CPU (half a core up to 1,250 hosts, 2 cores for 5,000, 4 at most: this provider's own figures) for them: " +
					"15 GiB for 12,500 hosts, and the CPU pool needs machines with room for that. " +
					"Without it, the sizes of the releases, which serve some hundred hosts. `resources` of each controller goes before it. Requests a second stay the release's: see `client_qps`.",
			},
			"tolerations": tolerationsAttribute(),
			"node_selector": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Labels of the nodes that the controllers run on, such as `{ \"cloud.google.com/gke-nodepool\" = \"system\" }`. Without it, any node without a taint: never a TPU host.",
			},
			"priorities": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "Whether to make the five priorities that jobs can name: `very-low` (100), `low` (250), `medium` (500), `high` (750) and `very-high` (1000). Turning it off later keeps those that exist.",
			},
			"adopt": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Whether to take over what another tool installed: controllers from `kubectl apply`, Helm or xpk, or fields of them that were changed by hand. " +
					"Queues, jobs and priorities stay; the settings, the webhooks and the version become those asked for here. Without it an install of somebody else is an error that names the tool, before anything is written. " +
					"What Helm installed under other names than the official manifests have (every release of JobSet's chart, and one of Kueue's that is not `kueue` in `kueue-system`) cannot be adopted, and is always an error: disable that controller here, or remove it first. A Helm release that was adopted must not be uninstalled or upgraded any more.",
			},
			"force_uninstall": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Whether destroying this also deletes the JobSets and workloads that are still on the cluster. Without it, destroying is refused while there are any. Queues, flavors and priorities go with the controllers in any case.",
			},
			"jobset_version": schema.StringAttribute{Computed: true, MarkdownDescription: "The JobSet version that is installed, such as `" + controllers.JobSetVersion + "`; empty when there is none here."},
			"kueue_version":  schema.StringAttribute{Computed: true, MarkdownDescription: "The Kueue version that is installed, such as `" + controllers.KueueVersion + "`; empty when there is none."},
			"status": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "`READY`; `NOT_READY` while pods of the controllers are starting or down, which the cluster heals; " +
					"`INCOMPLETE` when something is missing or differs from the configuration, which the next apply repairs; `to_repair` names it.",
			},
			"to_repair": schema.ListAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "What was found missing or changed by hand, such as `Deployment kueue-system/kueue-controller-manager has 0 replicas, want 1`. The next apply repairs it; then it is empty.",
			},
			"timeouts": attr.Timeouts(ctx, timeouts.Opts{
				Create: true, Update: true, Delete: true,
				CreateDescription: "How long to wait for both controllers to answer, such as `30m`. Default 20 minutes.",
				UpdateDescription: "How long to wait for both controllers to answer after a change. Default 20 minutes.",
				DeleteDescription: "How long to wait until everything is gone. Default 20 minutes.",
			}),
		},
	}
}
