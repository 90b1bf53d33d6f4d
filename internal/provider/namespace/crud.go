package namespace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

const (
	writeTimeout  = 5 * time.Minute
	deleteTimeout = 10 * time.Minute
)

// Create applies the namespace and what is in it.
func (r *namespaceResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	timeout, diags := m.Timeouts.Create(ctx, writeTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r.write(ctx, &m, queue.Namespace{}, true, &resp.State, &resp.Diagnostics)
}

// Update applies it again and takes away what is not wanted any more.
func (r *namespaceResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var before, m model
	resp.Diagnostics.Append(req.State.Get(ctx, &before)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	timeout, diags := m.Timeouts.Update(ctx, writeTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r.write(ctx, &m, before.spec(ctx, &resp.Diagnostics), false, &resp.State, &resp.Diagnostics)
}

func (r *namespaceResource) write(ctx context.Context, m *model, before queue.Namespace, create bool, state *tfsdk.State, diags *diag.Diagnostics) {
	spec := m.spec(ctx, diags)
	if diags.HasError() {
		return
	}
	k, err := r.MustReach(ctx, m.Cluster.ValueString())
	if err != nil {
		conn.AddError(diags, "Cannot reach the cluster", err)
		return
	}
	objects := spec.Objects()
	if create {
		adopted, err := r.Claim(ctx, k, objects[0], typeName, m.id())
		if err != nil {
			conn.AddError(diags, "Cannot create namespace "+spec.Name, err)
			return
		}
		if adopted {
			diags.AddWarning("Namespace taken over", fmt.Sprintf("Namespace %s was there already, left by an earlier apply of this configuration that did not finish.", spec.Name))
		}
	}
	for i, obj := range objects {
		r.Stamp(obj)
		if err := conn.ApplyRetry(ctx, k, obj); err != nil {
			conn.AddError(diags, "Cannot apply namespace "+spec.Name, err)
			return
		}
		if i == 0 {
			// From here on the namespace exists: an error below must not lose it.
			m.ID = types.StringValue(m.id())
			diags.Append(state.Set(ctx, m)...)
		}
	}
	for _, obj := range leftover(before.Objects(), objects) {
		if err := k.Remove(ctx, obj, false); err != nil {
			conn.AddError(diags, "Cannot clean up namespace "+spec.Name, err)
			return
		}
	}
}

// leftover are the objects of before that after has not. The namespace itself
// never is one: its name cannot change.
func leftover(before, after []client.Object) []client.Object {
	key := func(o client.Object) string {
		return o.GetObjectKind().GroupVersionKind().Kind + "/" + o.GetName()
	}
	var out []client.Object
	for _, o := range slices.Backward(before) {
		if o.GetNamespace() != "" && !slices.ContainsFunc(after, func(a client.Object) bool { return key(a) == key(o) }) {
			out = append(out, o)
		}
	}
	return out
}

// Read refreshes the state; a namespace that is gone, or going, leaves it.
func (r *namespaceResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	k, gone, err := r.Reach(ctx, m.Cluster.ValueString())
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Cannot read namespace "+m.Name.ValueString(), err)
		return
	}
	live := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}
	found := false
	if !gone {
		if found, err = k.Fetch(ctx, live); err != nil {
			conn.AddError(&resp.Diagnostics, "Cannot read namespace "+m.Name.ValueString(), err)
			return
		}
	}
	if !found || live.DeletionTimestamp != nil {
		resp.State.RemoveResource(ctx)
		return
	}
	m.read(live)
	if err := m.readContents(ctx, k); err != nil {
		conn.AddError(&resp.Diagnostics, "Cannot read namespace "+m.Name.ValueString(), err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// readContents refreshes the service account and who is bound to the roles.
func (m *model) readContents(ctx context.Context, k *kube.Client) error {
	ns := m.Name.ValueString()
	if m.ServiceAccount == nil { // on import: ours by its label
		var accounts corev1.ServiceAccountList
		if err := k.List(ctx, &accounts, client.InNamespace(ns), client.MatchingLabels{queue.LabelManagedBy: queue.ManagedBy}); err != nil {
			return fmt.Errorf("listing service accounts of namespace %s on cluster %s: %w", ns, k.Name, err)
		}
		if len(accounts.Items) > 0 {
			m.ServiceAccount = &account{Name: types.StringValue(accounts.Items[0].Name)}
		}
	}
	if a := m.ServiceAccount; a != nil {
		live := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: a.Name.ValueString()}}
		found, err := k.Fetch(ctx, live)
		switch {
		case err != nil:
			return err
		case !found:
			m.ServiceAccount = nil
		default:
			a.Google = types.StringNull()
			if email := live.Annotations[queue.AnnotationGoogleServiceAccount]; email != "" {
				a.Google = types.StringValue(email)
			}
		}
	}
	for role, set := range map[string]*types.Set{queue.SubmitterRole: &m.Submitters, queue.ViewerRole: &m.Viewers} {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: role}}
		found, err := k.Fetch(ctx, binding)
		if err != nil {
			return err
		}
		var bound []string
		if found {
			for _, s := range binding.Subjects {
				bound = append(bound, subjectText(s))
			}
		}
		if len(bound) == 0 {
			if len(set.Elements()) > 0 || set.IsUnknown() {
				*set = types.SetNull(types.StringType)
			}
			continue
		}
		*set = types.SetValueMust(types.StringType, texts(bound))
	}
	return nil
}

func texts(all []string) []attr.Value {
	values := make([]attr.Value, len(all))
	for i, s := range all {
		values[i] = types.StringValue(s)
	}
	return values
}

// Delete removes the namespace with all that is in it, and waits until it is
// gone.
func (r *namespaceResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	timeout, diags := m.Timeouts.Delete(ctx, deleteTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	k, gone, err := r.Reach(ctx, m.Cluster.ValueString())
	if gone {
		return
	}
	live := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}
	if err == nil {
		err = k.Remove(ctx, live, true)
	}
	if err == nil {
		return
	}
	var stuck []string
	for _, c := range live.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			stuck = append(stuck, c.Message)
		}
	}
	if len(stuck) > 0 {
		err = fmt.Errorf("%w\nKubernetes says: %s", err, strings.Join(stuck, "; "))
	}
	conn.AddDeleteError(&resp.Diagnostics, "namespace "+m.Name.ValueString(), err)
}
