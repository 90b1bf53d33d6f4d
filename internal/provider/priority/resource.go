// Package priority is the tpu_kueue_priority resource: a WorkloadPriorityClass.
// It translates; the rules are internal/queue's.
package priority

import (
	"context"
	"math"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// NewResource makes the resource.
func NewResource() resource.Resource {
	return kubeobject.New[model](kubeobject.Kind{
		Type: "tpu_kueue_priority", Noun: "priority", Collection: "workloadPriorityClasses",
		Description: "A priority that jobs can have in queues: a Kueue WorkloadPriorityClass, which jobs name in `priority`.\n\n" +
			"It orders the jobs that wait, and says whose slices may be taken where a queue preempts. It is not the priority of pods. " +
			"`tpu_job_controllers` makes five of them: `very-low`, `low`, `medium`, `high` and `very-high`.",
		Name: kubeobject.Name("The priority's name, up to 63 characters.", queue.CheckPriorityName),
		Listing: kubeobject.Listing{
			Description: "Lists Kueue's WorkloadPriorityClasses, whatever made them, without the five that `tpu_job_controllers` makes.",
			Objects:     func() client.ObjectList { return &kueue.WorkloadPriorityClassList{} },
			Hidden: func(o client.Object) bool {
				return queue.DefaultPriority(o.GetName()) && o.GetLabels()[queue.LabelManagedBy] != queue.ManagedBy
			},
		},
		Attributes: map[string]schema.Attribute{
			"value": schema.Int64Attribute{
				Required: true,
				MarkdownDescription: "Higher goes first; the five that exist have 100, 250, 500, 750 and 1000. " +
					"Changed in place: jobs that are there already keep the old value.",
				Validators: []validator.Int64{int64validator.Between(math.MinInt32, math.MaxInt32)},
			},
			"description": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "What the priority is for, up to 2048 characters.",
			},
		},
	})
}

type model struct {
	kubeobject.Object
	Value       types.Int64  `tfsdk:"value"`
	Description types.String `tfsdk:"description"`
}

func (m *model) spec() queue.Priority {
	return queue.Priority{Name: m.Name.ValueString(), Value: int32(m.Value.ValueInt64()), Description: m.Description.ValueString()}
}

// Check refuses what Kueue would.
func (m *model) Check(_ context.Context, diags *diag.Diagnostics) {
	if m.Name.IsUnknown() || m.Description.IsUnknown() {
		return
	}
	if err := m.spec().Validate(); err != nil {
		diags.AddError("Invalid priority", err.Error())
	}
}

// Write applies it.
func (m *model) Write(ctx context.Context, w *kubeobject.Writer[model]) error {
	return w.Apply(ctx, m.spec().Object())
}

// Read takes over what the cluster has.
func (m *model) Read(ctx context.Context, k *kube.Client, _ *diag.Diagnostics) (bool, error) {
	live := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}
	if found, err := k.Fetch(ctx, live); err != nil || !found || live.DeletionTimestamp != nil {
		return false, err
	}
	m.Value = types.Int64Value(int64(live.Value))
	if live.Description != m.Description.ValueString() { // "" may be written
		m.Description = types.StringNull()
		if live.Description != "" {
			m.Description = types.StringValue(live.Description)
		}
	}
	return true, nil
}

// Remove deletes it. Jobs that have it keep its value.
func (m *model) Remove(ctx context.Context, k *kube.Client, _ *diag.Diagnostics) error {
	return k.Remove(ctx, &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}, true)
}
