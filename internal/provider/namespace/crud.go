package namespace

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// asDocumented is what the roles allow, unless somebody changed that.
const asDocumented = "as documented"

// Check refuses what the API server would refuse.
func (m *model) Check(ctx context.Context, diags *diag.Diagnostics) {
	spec, known := m.spec(ctx, diags)
	if !known || diags.HasError() {
		return
	}
	if err := spec.Validate(); err != nil {
		diags.AddError("Invalid namespace", err.Error())
	}
}

// Plan shows that roles are put right.
func (m *model) Plan(context.Context, *kubeobject.Planning[model]) {
	m.Roles = types.StringValue(asDocumented)
}

// Write applies the namespace with what is in it, and takes away what is not
// wanted any more.
func (m *model) Write(ctx context.Context, w *kubeobject.Writer[model]) error {
	spec, known := m.spec(ctx, w.Diags)
	if !known {
		return fmt.Errorf("a value is still unknown at apply; please report this")
	}
	m.Roles = types.StringValue(asDocumented)
	objects := spec.Objects()
	if err := w.Apply(ctx, objects[0]); err != nil {
		return err
	}
	for _, obj := range objects[1:] {
		if err := unbind(ctx, w.Client, obj); err != nil {
			return err
		}
		if err := w.Part(ctx, obj); err != nil {
			return err
		}
	}
	if w.Before == nil {
		return nil
	}
	before, _ := w.Before.spec(ctx, w.Diags)
	for _, obj := range leftover(before.Objects(), objects) {
		if err := w.Remove(ctx, obj, false); err != nil {
			return err
		}
	}
	return nil
}

// unbind removes a binding that leads to another role: Kubernetes does not let
// it be turned.
func unbind(ctx context.Context, k *kube.Client, obj client.Object) error {
	binding, ok := obj.(*rbacv1.RoleBinding)
	if !ok {
		return nil
	}
	live := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: binding.Namespace, Name: binding.Name}}
	found, err := k.Fetch(ctx, live)
	if err != nil || !found || live.RoleRef == binding.RoleRef {
		return err
	}
	return k.Remove(ctx, live, true)
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

// Read fills in what the cluster has.
func (m *model) Read(ctx context.Context, k *kube.Client, _ *diag.Diagnostics) (found bool, err error) {
	live := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}
	if found, err = k.Fetch(ctx, live); err != nil || !found || live.DeletionTimestamp != nil {
		return false, err
	}
	// Of labels and annotations only ours are looked at: those in state, or on
	// import those our field manager owns.
	m.Labels = conn.OwnedStrings(m.Labels, live.Labels, live, "labels")
	m.Annotations = conn.OwnedStrings(m.Annotations, live.Annotations, live, "annotations")
	if m.Force.IsNull() { // on import
		m.Force = types.BoolValue(false)
	}
	if err := m.readAccount(ctx, k); err != nil {
		return false, err
	}
	return true, m.readRoles(ctx, k)
}

func (m *model) readAccount(ctx context.Context, k *kube.Client) error {
	ns := m.Name.ValueString()
	if m.ServiceAccount.IsNull() { // on import: ours by its label
		var accounts corev1.ServiceAccountList
		if err := k.List(ctx, &accounts, client.InNamespace(ns), client.MatchingLabels{queue.LabelManagedBy: queue.ManagedBy}); err != nil {
			return fmt.Errorf("listing service accounts of namespace %s on cluster %s: %w", ns, k.Name, err)
		}
		if len(accounts.Items) > 0 {
			m.ServiceAccount = m.account(&accounts.Items[0])
		}
		return nil
	}
	name, _ := m.ServiceAccount.Attributes()["name"].(types.String)
	live := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name.ValueString()}}
	found, err := k.Fetch(ctx, live)
	if err != nil {
		return err
	}
	if !found {
		m.ServiceAccount = types.ObjectNull(accountTypes)
		return nil
	}
	m.ServiceAccount = m.account(live)
	return nil
}

// account is a service account as the cluster has it. Its pull secrets are
// looked at where state has some, and on import.
func (m *model) account(live *corev1.ServiceAccount) types.Object {
	had, _ := m.ServiceAccount.Attributes()["image_pull_secrets"].(types.List)
	secrets := types.ListNull(types.StringType)
	if !had.IsNull() || m.ServiceAccount.IsNull() && len(live.ImagePullSecrets) > 0 {
		var names []attr.Value
		for _, ref := range live.ImagePullSecrets {
			names = append(names, types.StringValue(ref.Name))
		}
		secrets = types.ListValueMust(types.StringType, names)
	}
	google := types.StringNull()
	if email := live.Annotations[queue.AnnotationGoogleServiceAccount]; email != "" {
		google = types.StringValue(email)
	}
	return types.ObjectValueMust(accountTypes, map[string]attr.Value{
		"name": types.StringValue(live.Name), "google_service_account": google, "image_pull_secrets": secrets,
	})
}

// readRoles finds who is bound to the roles, and whether those are still what
// they should be.
func (m *model) readRoles(ctx context.Context, k *kube.Client) error {
	var changed []string
	for _, r := range []struct {
		name string
		set  *types.Set
	}{{queue.SubmitterRole, &m.Submitters}, {queue.ViewerRole, &m.Viewers}} {
		bound, err := m.bound(ctx, k, r.name)
		if err != nil {
			return err
		}
		if len(bound) == 0 {
			if len(r.set.Elements()) > 0 || r.set.IsUnknown() {
				*r.set = types.SetNull(types.StringType)
			}
			continue
		}
		*r.set = types.SetValueMust(types.StringType, bound)
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: m.Name.ValueString(), Name: r.name}}
		found, err := k.Fetch(ctx, role)
		if err != nil {
			return err
		}
		if !found {
			changed = append(changed, r.name+" is missing")
		} else if !reflect.DeepEqual(role.Rules, queue.RoleRules(r.name)) {
			changed = append(changed, r.name+" was changed")
		}
	}
	m.Roles = types.StringValue(asDocumented)
	if len(changed) > 0 {
		m.Roles = types.StringValue(strings.Join(changed, ", "))
	}
	return nil
}

// bound is who holds a role. A binding that leads elsewhere gives it to nobody.
func (m *model) bound(ctx context.Context, k *kube.Client, role string) (subjects []attr.Value, err error) {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: m.Name.ValueString(), Name: role}}
	found, err := k.Fetch(ctx, binding)
	if err != nil || !found || binding.RoleRef.Kind != "Role" || binding.RoleRef.Name != role {
		return nil, err
	}
	for _, s := range binding.Subjects {
		subjects = append(subjects, types.StringValue(subjectText(s)))
	}
	return subjects, nil
}

// settling is how long jobs may stay undeleted: those of the same destroy go at
// the same time when nothing says that they come first.
const settling = 3 * time.Second

// guard stops the deletion of a namespace with jobs that are not finished:
// somebody else's, as this configuration's own go before.
func (m *model) guard(ctx context.Context, k *kube.Client) error {
	name := m.Name.ValueString()
	for began := time.Now(); ; {
		runs, err := training.List(ctx, k, name)
		if err != nil {
			return fmt.Errorf("looking for jobs in it: %w\nNothing was deleted. Destroy again when the cluster answers, or set force = true and apply, and then destroy", err)
		}
		var jobs []string
		for _, run := range runs {
			if !run.Deleting && !run.State.Finished() {
				jobs = append(jobs, fmt.Sprintf("%s (%s)", run.Name, run.State))
			}
		}
		if len(jobs) == 0 {
			return nil
		}
		if time.Since(began) >= settling {
			return fmt.Errorf("it has jobs that are not finished:\n  %s\nNothing was deleted. Delete these jobs or wait for their end, or set force = true and apply, and then destroy: that deletes them too", strings.Join(jobs, "\n  "))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// Remove deletes the namespace with all that is in it, and waits until it is
// gone.
func (m *model) Remove(ctx context.Context, k *kube.Client, _ *diag.Diagnostics) error {
	if !m.Force.ValueBool() {
		if err := m.guard(ctx, k); err != nil {
			return err
		}
	}
	live := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}
	err := k.Remove(ctx, live, true)
	if err == nil {
		return nil
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
	return err
}
