// Package jobactions is the actions of Terraform 1.14 and newer: suspend and
// resume a job, pull an image ahead of a job, recreate a slice. It translates;
// what they do is internal/training's and internal/gke's.
package jobactions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// NewSuspend is the action tpu_suspend_job.
func NewSuspend() action.Action { return &setActive{name: "_suspend_job"} }

// NewResume is the action tpu_resume_job.
func NewResume() action.Action { return &setActive{name: "_resume_job", active: true} }

// configured takes the provider's Data over.
type configured struct{ data *conn.Data }

// Configure implements action.ActionWithConfigure.
func (c *configured) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	c.data = conn.From(req.ProviderData, &resp.Diagnostics)
}

type setActive struct {
	configured
	name   string
	active bool
}

var _ action.ActionWithConfigure = (*setActive)(nil)

// Metadata implements action.Action.
func (a *setActive) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + a.name
}

// Schema implements action.Action.
func (a *setActive) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	what := "Suspends a job: its pods end, and its quota and slices are free for others. It goes on when it is resumed, from its last checkpoint. " +
		"A `tpu_training_jobset` that does not set `active` takes this for no drift."
	if a.active {
		what = "Resumes a suspended job: it is back in its queue, and goes on when it is admitted."
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: what + " What is so already is left as it is; a job that has ended is an error.",
		Attributes: map[string]schema.Attribute{
			"job": schema.StringAttribute{Required: true,
				MarkdownDescription: "The job: the `id` of a `tpu_training_jobset`. Any JobSet will do.",
				Validators: []validator.String{attr.Check("Invalid job", "the id of a job", func(id string) error {
					_, _, err := conn.ParseID(id, "namespaces", "jobsets")
					return err
				})}},
		},
	}
}

// patience is how long a suspension or resumption may take to show.
const patience = 5 * time.Minute

// Invoke implements action.Action.
func (a *setActive) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var job types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("job"), &job)...)
	if resp.Diagnostics.HasError() {
		return
	}
	cluster, names, err := conn.ParseID(job.ValueString(), "namespaces", "jobsets")
	verb := map[bool]string{true: "resume", false: "suspend"}[a.active]
	if err == nil && a.data == nil {
		err = errors.New("the provider is not configured")
	}
	if err == nil {
		err = a.set(ctx, cluster, apitypes.NamespacedName{Namespace: names[0], Name: names[1]}, func(text string) {
			resp.SendProgress(action.InvokeProgressEvent{Message: text})
		})
	}
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Cannot "+verb+" job "+job.ValueString(), err)
	}
}

func (a *setActive) set(ctx context.Context, cluster string, key apitypes.NamespacedName, say func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	k, err := a.data.Cluster(ctx, cluster)
	if err != nil {
		return err
	}
	// A job that was made suspended knows which queue it is for.
	toQueue, err := training.QueueOf(ctx, k, key)
	if err != nil {
		return err
	}
	if err := training.SetActive(ctx, k, key, a.active, toQueue); err != nil {
		return err
	}
	r, err := training.Get(ctx, k, key.Namespace, key.Name)
	if err != nil {
		return err
	}
	say(fmt.Sprintf("job %s/%s is %s now", key.Namespace, key.Name, r.State))
	return nil
}
