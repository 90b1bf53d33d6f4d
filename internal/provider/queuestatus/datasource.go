// Package queuestatus is the data source tpu_queue_status: what a queue has,
// who holds it and who waits, now. It translates; what the state means is
// internal/queue's.
package queuestatus

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	kq "github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// New is the data source tpu_queue_status.
func New() datasource.DataSource { return &source{} }

type source struct{ data *conn.Data }

var _ datasource.DataSourceWithConfigure = (*source)(nil)

// Metadata implements datasource.DataSource.
func (*source) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_queue_status"
}

// Configure implements datasource.DataSourceWithConfigure.
func (s *source) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	s.data = conn.From(req.ProviderData, &resp.Diagnostics)
}

var text, number, list = attr.ComputedText, attr.ComputedNumber, attr.ComputedList

// Schema implements datasource.DataSource.
func (*source) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	job := func() map[string]schema.Attribute {
		return map[string]schema.Attribute{
			"namespace":      text("The namespace of the job."),
			"name":           text("The name of the job."),
			"kind":           text("What the job is, such as `JobSet`."),
			"workload":       text("The name of Kueue's Workload for the job."),
			"priority":       number("Its priority: higher goes first."),
			"priority_class": text("The name of its priority, or empty."),
			"slices":         number("The slices it asks for; 0 when this version of the provider does not know them."),
			"chips":          number("The chips it asks for."),
			"created":        text("Since when it is in the queue (RFC 3339)."),
			"reason":         text("Kueue's reason why it does not run yet, or empty."),
			"message":        text("The same in Kueue's words, or empty."),
		}
	}
	pending, admitted := job(), job()
	pending["position"] = number("Its place among those that wait; 1 is the next.")
	admitted["flavor"] = text("The flavor of its slices.")
	admitted["admitted"] = text("Since when it may run (RFC 3339); empty while an admission check is not done.")
	resp.Schema = schema.Schema{
		MarkdownDescription: "The state of a queue as it is now: its quota, how much of it is used, what it has borrowed, who waits in which order and who runs.\n\n" +
			"It is read anew by every plan, so what it says changes between plans: use it in outputs and checks rather than in the arguments of resources.",
		Attributes: map[string]schema.Attribute{
			"queue": schema.StringAttribute{Required: true,
				MarkdownDescription: "The queue: the `id` of a `tpu_kueue_queue`, `projects/PROJECT/locations/LOCATION/clusters/CLUSTER/clusterQueues/NAME`. Any ClusterQueue will do.",
				Validators:          []validator.String{attr.Check("Invalid queue", "the id of a queue", checkID)}},
			"status":         text("`Active` when the queue admits jobs, else Kueue's reason why not, such as `Stopped` or `FlavorNotFound`."),
			"message":        text("Why it admits none and what to do about it, or empty."),
			"cohort":         text("The cohort in which it borrows and lends, or empty."),
			"weighted_share": number("Its share in fair sharing: what it holds above its own quota, by its weight. 0 while it has not borrowed."),
			"flavors": list("The slices it hands out, the preferred flavor first.", map[string]schema.Attribute{
				"name":            text("The name of the flavor."),
				"accelerator":     text("The slice, such as `v5litepod-16`; empty when this version of the provider does not know it, and then all numbers of slices are 0."),
				"slices":          number("The queue's own slices."),
				"used_slices":     number("The slices that its jobs hold, borrowed ones included; one that is only partly used counts."),
				"borrowed_slices": number("How many of those belong to other queues of the cohort."),
				"chips":           number("The queue's own chips."),
				"used_chips":      number("The chips that its jobs hold, borrowed ones included."),
				"borrowed_chips":  number("How many of those belong to other queues of the cohort."),
			}),
			"resources": list("What else it counts, such as cpu and memory.", map[string]schema.Attribute{
				"flavor":   text("The name of the flavor."),
				"name":     text("The name of the resource."),
				"quota":    text("The queue's own."),
				"used":     text("What its jobs hold, what they borrowed included."),
				"borrowed": text("How much of that belongs to other queues of the cohort."),
			}),
			"pending":       list("The jobs that wait, the next first.", pending),
			"pending_count": number("How many jobs wait."),
			"pending_order": text("Who says in which order jobs wait: `Kueue`, or `Estimate` where Kueue's visibility API does not answer: then it is by priority and age, as without fair sharing."),
			"admitted":      list("The jobs that hold quota, the oldest first.", admitted),
		},
	}
}

func checkID(id string) error {
	_, _, err := conn.ParseID(id, "clusterQueues")
	return err
}

// Read implements datasource.DataSource.
func (s *source) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("queue"), &m.Queue)...)
	if resp.Diagnostics.HasError() {
		return
	}
	cluster, names, err := conn.ParseID(m.Queue.ValueString(), "clusterQueues")
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("queue"), "Invalid queue", err.Error())
		return
	}
	if s.data == nil {
		resp.Diagnostics.AddError("Cannot read queue "+names[0], "the provider is not configured")
		return
	}
	k, err := s.data.Cluster(ctx, cluster)
	var got kq.Status
	if err == nil {
		got, err = kq.ReadStatus(ctx, k, names[0])
	}
	var none *kq.ErrNoQueue
	switch {
	case errors.Is(err, gke.NotFound) || errors.As(err, &none):
		resp.Diagnostics.AddAttributeError(path.Root("queue"), "There is no such queue",
			fmt.Sprintf("%s\n\nIf this configuration makes the queue, refer to it (queue = tpu_kueue_queue.NAME.id), so that it is read after it is made.", err))
		return
	case err != nil:
		conn.AddError(&resp.Diagnostics, "Cannot read queue "+names[0], err)
		return
	}
	m.fill(got)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
