package jobset

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	jobsetv1 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

const (
	waitTimeout     = 30 * time.Minute
	completeTimeout = 24 * time.Hour
	deleteTimeout   = 10 * time.Minute
)

// Create submits the job and follows it as far as wait_for says.
func (r *jobsetResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	limit, diags := m.Timeouts.Create(ctx, m.patience())
	resp.Diagnostics.Append(diags...)
	spec, _ := m.spec(ctx, r.Owner(), &resp.Diagnostics)
	if err := spec.Validate(); err != nil {
		conn.AddError(&resp.Diagnostics, "Invalid job", err)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	k, err := r.MustReach(ctx, m.Cluster.ValueString())
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Cannot reach the cluster", err)
		return
	}
	js, err := r.submit(ctx, k, spec, m.id(), &resp.Diagnostics)
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Cannot submit job "+spec.Name, err)
		return
	}
	m.show(training.Read(js, nil))
	m.settle()
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	m.activate(ctx, k, &resp.Diagnostics) // one that was taken over may be otherwise
	m.note(ctx, r.follow(ctx, limit, k, &m, m.level(), &resp.State, &resp.Diagnostics), resp.Private, &resp.Diagnostics)
}

// level is how far the apply follows the job; a suspended one not at all.
func (m model) level() training.Level {
	if !m.Active.IsNull() && !m.Active.ValueBool() {
		return training.LevelCreated
	}
	return training.Level(m.WaitFor.ValueString())
}

// activate suspends the job or lets it go on, as active says; without it, both
// are others' business.
func (m model) activate(ctx context.Context, k *kube.Client, diags *diag.Diagnostics) {
	if m.Active.IsNull() {
		return
	}
	err := training.SetActive(ctx, k, apitypes.NamespacedName{Namespace: m.Namespace.ValueString(), Name: m.Name.ValueString()}, m.Active.ValueBool(), m.Queue.ValueString())
	var finished *training.FinishedError
	var gone *training.NotFoundError
	if err == nil || errors.As(err, &finished) || errors.As(err, &gone) {
		return
	}
	what := "Cannot suspend job "
	if m.Active.ValueBool() {
		what = "Cannot resume job "
	}
	// A warning: an error would taint a job that was just made.
	diags.AddWarning(what+m.Name.ValueString(), fmt.Sprintf("%v\nThe next apply tries again.", err))
}

// keyWaiting in the private state: an interrupt ended the waiting, and the next
// apply is to wait on.
const keyWaiting = "waiting"

// privateState is what Create and Update are given.
type privateState interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func (model) note(ctx context.Context, interrupted bool, private privateState, diags *diag.Diagnostics) {
	diags.Append(private.SetKey(context.WithoutCancel(ctx), keyWaiting, []byte(strconv.FormatBool(interrupted)))...)
}

// patience is how long the level that is waited for may take.
func (m model) patience() time.Duration {
	if m.WaitFor.ValueString() == string(training.LevelCompleted) {
		return completeTimeout
	}
	return waitTimeout
}

// adoptable is how old a job may be that an unnamed configuration takes over.
const adoptable = 24 * time.Hour

// submit creates the job, or takes over what an interrupted apply of this
// configuration created.
func (r *jobsetResource) submit(ctx context.Context, k *kube.Client, spec training.Spec, id string, diags *diag.Diagnostics) (*jobsetv1.JobSet, error) {
	js, err := training.Submit(ctx, k, spec)
	var exists *training.ExistsError
	if !errors.As(err, &exists) {
		return js, err
	}
	js = &jobsetv1.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: spec.Namespace, Name: spec.Name}}
	found, fetchErr := k.Fetch(ctx, js)
	switch {
	case fetchErr != nil:
		return nil, fetchErr
	case found && js.DeletionTimestamp != nil:
		return nil, fmt.Errorf("%w, which is being deleted; apply again when it is gone", err)
	case found && exists.Same && (spec.Owner != "" || time.Since(js.CreationTimestamp.Time) < adoptable):
		diags.AddWarning("Job taken over", fmt.Sprintf("Job %s was there already with the very same settings, left by an earlier apply that did not finish. It was not started a second time.", spec.Name))
		return js, training.EnsureFiles(ctx, k, spec, js)
	}
	return nil, fmt.Errorf("%w, which was made otherwise. Choose another name, delete that job, or manage it here:\n  terraform import %s.NAME %s", err, typeName, id)
}

// follow waits and shows, and tells whether an interrupt ended that. Whatever
// happens to the job from here on is a warning: an error would taint it, and the
// next apply would run it again.
func (r *jobsetResource) follow(ctx context.Context, limit time.Duration, k *kube.Client, m *model, level training.Level, state *tfsdk.State, diags *diag.Diagnostics) (interrupted bool) {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	name := m.Name.ValueString()
	var last string
	suspended := false
	run, err := training.Wait(waiting, k, apitypes.NamespacedName{Namespace: m.Namespace.ValueString(), Name: name}, level, func(run training.Run) {
		if now := fmt.Sprint(run.State, run.Reason, run.HostsReady, run.HostsDone, run.Restarts); now != last {
			last = now
			tflog.Info(ctx, "job "+name+" is "+string(run.State), map[string]any{
				"reason": run.Reason, "message": run.Message, "hosts_ready": run.HostsReady, "hosts_done": run.HostsDone, "hosts_wanted": run.HostsWanted, "restarts": run.Restarts,
			})
		}
		if suspended = run.State == training.Suspended && !level.Reached(run.State); suspended {
			cancel() // only somebody's resuming it ends that
		}
	})
	if run.UID != "" && (m.UID.ValueString() == "" || run.UID == m.UID.ValueString()) {
		m.show(run)
	}
	var missing *training.NotFoundError
	var never *training.InadmissibleError
	switch {
	case errors.As(err, &never):
		diags.AddWarning("Job cannot be admitted", fmt.Sprintf("%v.\nIt stays in its queue, and runs once it fits: give the queue more quota or a flavor of this kind of slice, or change the job.", never))
	case errors.As(err, &missing):
		if !m.finished() {
			m.gone(missing.Error())
		}
		diags.AddWarning("Job is gone", fmt.Sprintf("Job %s was deleted while it was waited for. It is kept in the state as %s and will not be run again.", name, m.Status.ValueString()))
	case err != nil && ctx.Err() != nil:
		interrupted = true
		diags.AddWarning("Interrupted", fmt.Sprintf("Job %s goes on without being waited for; it was %s%s. The next apply waits on.", name, run.State, because(run)))
	case suspended:
		diags.AddWarning("Job is suspended", fmt.Sprintf(
			"Job %s is suspended%s, and is not waited for until it is %s. It stays as it is. To let it go on, set active = true, or use tpuctl resume.", name, because(run), level))
	case err != nil && waiting.Err() != nil:
		diags.AddWarning("Job is not "+string(level)+" yet", fmt.Sprintf(
			"After %s job %s is %s%s.\nIt stays as it is; the next refresh shows how it stands. To wait longer, raise timeouts.create.", limit, name, run.State, because(run)))
	case err != nil:
		diags.AddWarning("Job cannot be followed", fmt.Sprintf("Job %s was submitted, but: %v", name, err))
	case run.State == training.Failed:
		diags.AddWarning("Job failed", fmt.Sprintf("Job %s failed%s.\nThe result is kept, and the job is not run again. To run it again, change rerun_trigger.", name, because(run)))
	}
	// The interrupt must not keep the state from being saved.
	diags.Append(state.Set(context.WithoutCancel(ctx), m)...)
	return interrupted
}

func because(run training.Run) string {
	switch {
	case run.Reason != "" && run.Message != "":
		return fmt.Sprintf(" (%s: %s)", run.Reason, run.Message)
	case run.Message != "":
		return " (" + run.Message + ")"
	}
	return ""
}

// Read refreshes how the job stands. A job never leaves the state because its
// object is gone; only with its cluster does it.
func (r *jobsetResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	name := m.Name.ValueString()
	importing := m.UID.IsNull() && m.Status.IsNull()
	k, gone, err := r.Reach(ctx, m.Cluster.ValueString())
	if gone {
		resp.State.RemoveResource(ctx)
		return
	}
	var run training.Run
	js := &jobsetv1.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace.ValueString(), Name: name}}
	found := false
	if err == nil {
		found, err = k.Fetch(ctx, js)
	}
	found = found && (m.UID.ValueString() == "" || string(js.UID) == m.UID.ValueString())
	if err == nil && found {
		run, err = training.Get(ctx, k, js.Namespace, js.Name)
		var missing *training.NotFoundError
		if errors.As(err, &missing) { // between the two calls
			found, err = false, nil
		}
	}
	switch {
	case err != nil:
		conn.AddError(&resp.Diagnostics, "Cannot read job "+name, err)
		return
	case !found && importing:
		resp.State.RemoveResource(ctx) // Terraform says that there is nothing to import
		return
	case !found && m.finished():
	case !found:
		m.gone(fmt.Sprintf("the JobSet %s is not there any more, and how it ended is not known", name))
		resp.Diagnostics.AddWarning("Job is gone", fmt.Sprintf(
			"Job %s is not on cluster %s any more, and how it ended is not known. It is kept in the state as %s and will not be run again by itself. "+
				"To run it again, change rerun_trigger. To forget it: terraform state rm ADDRESS.", name, k.Name, training.Gone))
	default:
		if importing {
			spec := training.FromJobSet(js)
			if err := training.ReadFiles(ctx, k, js, &spec); err != nil {
				conn.AddError(&resp.Diagnostics, "Cannot read the files of job "+name, err)
				return
			}
			m.imported(ctx, spec, r.Owner(), &resp.Diagnostics)
		}
		m.refresh(js)
		if !m.Active.IsNull() && !run.State.Finished() {
			active, known, err := training.Active(ctx, k, js)
			if err != nil {
				conn.AddError(&resp.Diagnostics, "Cannot read job "+name, err)
				return
			}
			if known {
				m.Active = types.BoolValue(active)
			}
		}
		m.show(run)
	}
	m.settle()
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Update changes in place what can: active, labels, annotations, priority, TTL. A job
// that is gone keeps the new settings in the state; there is nothing to change.
func (r *jobsetResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var had, m model
	resp.Diagnostics.Append(req.State.Get(ctx, &had)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	limit, diags := m.Timeouts.Update(ctx, m.patience())
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	before, _ := had.spec(ctx, r.Owner(), &resp.Diagnostics)
	after, _ := m.spec(ctx, r.Owner(), &resp.Diagnostics)
	k, err := r.MustReach(ctx, m.Cluster.ValueString())
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Cannot reach the cluster", err)
		return
	}
	// What is computed is unknown in the plan; what was known stays until read.
	m.keep(had)
	m.settle()
	js := &jobsetv1.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: after.Namespace, Name: after.Name}}
	found, err := k.Fetch(ctx, js)
	if err == nil && found && string(js.UID) == m.UID.ValueString() {
		err = training.Change(ctx, k, before, after)
		var missing *training.NotFoundError
		if errors.As(err, &missing) {
			found, err = false, nil
		}
	}
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Cannot change job "+after.Name, err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	if had.finished() {
		return // the plan has promised its result
	}
	if !found || string(js.UID) != m.UID.ValueString() {
		m.gone("the JobSet is not there any more, and how it ended is not known")
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
		return
	}
	if !m.Active.Equal(had.Active) {
		m.activate(ctx, k, &resp.Diagnostics)
	}
	level := m.level()
	if m.WaitFor.Equal(had.WaitFor) && m.Active.Equal(had.Active) && !waiting(ctx, req.Private, &resp.Diagnostics) {
		level = training.LevelCreated // a reading is enough
	}
	m.note(ctx, r.follow(ctx, limit, k, &m, level, &resp.State, &resp.Diagnostics), resp.Private, &resp.Diagnostics)
}

// privateReader is what plans and updates are given.
type privateReader interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

// waiting tells whether an interrupt ended the waiting of an earlier apply.
func waiting(ctx context.Context, private privateReader, diags *diag.Diagnostics) bool {
	v, found := private.GetKey(ctx, keyWaiting)
	diags.Append(found...)
	return string(v) == "true"
}

// Delete removes the job, running or not, and waits until it holds neither
// hosts nor quota. A later job of the same name is not touched.
func (r *jobsetResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	limit, diags := m.Timeouts.Delete(ctx, deleteTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	k, gone, err := r.Reach(ctx, m.Cluster.ValueString())
	if gone {
		return
	}
	if err == nil {
		err = training.Delete(ctx, k, m.Namespace.ValueString(), m.Name.ValueString(), m.UID.ValueString())
	}
	if err != nil {
		conn.AddDeleteError(&resp.Diagnostics, "job "+m.Name.ValueString(), err)
	}
}
