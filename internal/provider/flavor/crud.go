package flavor

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

const timeout = 5 * time.Minute

// Create applies the flavor.
func (r *flavorResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	limit, diags := m.Timeouts.Create(ctx, timeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if r.write(ctx, &m, true, &resp.Diagnostics) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// Update applies it again.
func (r *flavorResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	limit, diags := m.Timeouts.Update(ctx, timeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if r.write(ctx, &m, false, &resp.Diagnostics) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

func (r *flavorResource) write(ctx context.Context, m *model, create bool, diags *diag.Diagnostics) bool {
	name := m.Name.ValueString()
	s, err := accelerator.Resolve(m.Accelerator.ValueString())
	if err != nil {
		conn.AddError(diags, "Unknown accelerator", err)
		return false
	}
	f := queue.Flavor{Name: name, Slice: s, Provisioning: queue.Provisioning(m.Provisioning.ValueString()), NodeLabels: conn.Strings(ctx, m.NodeLabels, diags)}
	if err := f.Validate(); err != nil {
		conn.AddError(diags, "Invalid flavor", err)
	}
	if diags.HasError() {
		return false
	}
	k, err := r.MustReach(ctx, m.Cluster.ValueString())
	if err != nil {
		conn.AddError(diags, "Cannot reach the cluster", err)
		return false
	}
	obj := f.Object()
	adopted := false
	if create {
		if adopted, err = r.Claim(ctx, k, obj, typeName, m.id()); err != nil {
			conn.AddError(diags, "Cannot create flavor "+name, heldBy(ctx, k, name, err))
			return false
		}
	}
	r.Stamp(obj)
	if err := conn.ApplyRetry(ctx, k, obj); err != nil {
		conn.AddError(diags, "Cannot apply flavor "+name, conn.NeedsControllers(err))
		return false
	}
	if adopted {
		diags.AddWarning("Flavor taken over", fmt.Sprintf("Flavor %s was there already, left by an earlier apply of this configuration that did not finish.", name))
	}
	m.ID = types.StringValue(m.id())
	m.derive()
	return true
}

// Read refreshes the state; a flavor that is gone leaves it.
func (r *flavorResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	k, gone, err := r.Reach(ctx, m.Cluster.ValueString())
	live := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}
	found := false
	if err == nil && !gone {
		found, err = k.Fetch(ctx, live)
	}
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Cannot read flavor "+m.Name.ValueString(), err)
		return
	}
	if !found || live.DeletionTimestamp != nil {
		resp.State.RemoveResource(ctx)
		return
	}
	m.read(live)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// read takes over what the cluster has. The user's spelling of the accelerator
// stays as long as the flavor still stands for it.
func (m *model) read(live *kueue.ResourceFlavor) {
	m.ID = types.StringValue(m.id())
	labels := maps.Clone(live.Spec.NodeLabels)
	wanted, err := accelerator.Resolve(m.Accelerator.ValueString())
	if is, ok := queue.SliceOf(labels); ok && (err != nil || is != wanted) {
		m.Accelerator = types.StringValue(is.Name)
	} else if !ok {
		// Somebody took the labels away: an empty name shows as a change.
		m.Accelerator = types.StringValue("")
	}
	provisioning := queue.AnyProvisioning
	switch {
	case labels[accelerator.LabelSpot] == "true":
		provisioning = queue.Spot
		delete(labels, accelerator.LabelSpot)
	case labels[accelerator.LabelProvisioning] == "standard":
		provisioning = queue.OnDemand
		delete(labels, accelerator.LabelProvisioning)
	}
	m.Provisioning = types.StringNull()
	if provisioning != queue.AnyProvisioning {
		m.Provisioning = types.StringValue(string(provisioning))
	}
	for _, key := range []string{accelerator.LabelAccelerator, accelerator.LabelTopology, accelerator.LabelAcceleratorCount} {
		delete(labels, key)
	}
	if len(labels) > 0 || len(m.NodeLabels.Elements()) > 0 {
		m.NodeLabels = conn.StringMap(labels)
	}
	m.derive()
}

// Delete removes the flavor. One that only a queue holds back is left to Kueue:
// a renamed flavor is deleted before the queue turns to the new one, so waiting
// here would wait for ever.
func (r *flavorResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	limit, diags := m.Timeouts.Delete(ctx, timeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	name := m.Name.ValueString()
	k, gone, err := r.Reach(ctx, m.Cluster.ValueString())
	if gone {
		return
	}
	var holders []string
	if err == nil {
		holders, err = remove(ctx, k, name)
	}
	if err != nil {
		conn.AddDeleteError(&resp.Diagnostics, "flavor "+name, err)
		return
	}
	if len(holders) > 0 {
		resp.Diagnostics.AddWarning("Flavor goes when its queues let it go", fmt.Sprintf(
			"Flavor %s is marked for deletion, and Kueue removes it as soon as no queue names it. Named by: %s.", name, strings.Join(holders, ", ")))
	}
}
