package jobset

import (
	"cmp"
	"context"
	"time"

	tfattr "github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	jobsetv1 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// show takes a reading of the run over into the computed attributes. Times
// that were known once stay.
func (m *model) show(r training.Run) {
	m.ID = types.StringValue(m.id())
	m.Status = types.StringValue(string(r.State))
	m.Reason, m.Message = types.StringValue(r.Reason), types.StringValue(r.Message)
	m.Restarts = types.Int64Value(int64(r.Restarts))
	if r.Flavor != "" || m.Flavor.IsUnknown() {
		m.Flavor = types.StringValue(r.Flavor)
	}
	if r.UID != "" {
		m.UID = types.StringValue(r.UID)
	}
	m.Conditions = conditions(r.Conditions)
	stamp(&m.CreatedAt, r.Created, false)
	stamp(&m.StartedAt, r.Started, r.State.Finished())
	stamp(&m.FinishedAt, r.Finished, false)
}

var conditionType = types.ObjectType{AttrTypes: map[string]tfattr.Type{
	"of": types.StringType, "type": types.StringType, "status": types.BoolType, "reason": types.StringType, "message": types.StringType, "since": types.StringType,
}}

func conditions(all []training.Condition) types.List {
	values := []tfattr.Value{}
	for _, c := range all {
		values = append(values, types.ObjectValueMust(conditionType.AttrTypes, map[string]tfattr.Value{
			"of": types.StringValue(c.Of), "type": types.StringValue(c.Type), "status": types.BoolValue(c.Status), "reason": types.StringValue(c.Reason),
			"message": types.StringValue(c.Message), "since": types.StringValue(c.Since.UTC().Format(time.RFC3339)),
		}))
	}
	return types.ListValueMust(conditionType, values)
}

// stamp sets a time; keep leaves one that is known already.
func stamp(v *types.String, t time.Time, keep bool) {
	switch {
	case keep && v.ValueString() != "":
	case !t.IsZero():
		*v = types.StringValue(t.UTC().Format(time.RFC3339))
	case v.IsUnknown():
		*v = types.StringNull()
	}
}

// gone marks a job whose object is not there. A result that is known stays.
func (m *model) gone(message string) {
	m.Status, m.Reason, m.Message = types.StringValue(string(training.Gone)), types.StringValue(training.ReasonNotFound), types.StringValue(message)
}

// finished tells whether the state holds a result.
func (m model) finished() bool { return training.State(m.Status.ValueString()).Finished() }

// keep takes over from an earlier reading how the job stands.
func (m *model) keep(had model) {
	m.Status, m.Reason, m.Message, m.Restarts, m.Flavor, m.Conditions = had.Status, had.Reason, had.Message, had.Restarts, had.Flavor, had.Conditions
	m.StartedAt, m.FinishedAt = had.StartedAt, had.FinishedAt
}

// awaited makes unknown what waiting may change.
func (m *model) awaited() {
	for _, v := range []*types.String{&m.Status, &m.Reason, &m.Message, &m.Flavor, &m.StartedAt, &m.FinishedAt} {
		*v = types.StringUnknown()
	}
	m.Restarts, m.Conditions = types.Int64Unknown(), types.ListUnknown(conditionType)
}

// settle gives every computed value that is still unknown one: after an apply
// nothing may be unknown.
func (m *model) settle() {
	for _, v := range []*types.String{&m.ID, &m.UID, &m.Status, &m.Reason, &m.Message, &m.Flavor, &m.CreatedAt, &m.StartedAt, &m.FinishedAt} {
		if v.IsUnknown() {
			*v = types.StringNull()
		}
	}
	if m.Proxy.IsUnknown() || m.Proxy.IsNull() {
		m.Proxy = m.proxyAddress()
	}
	if m.Conditions.IsUnknown() || m.Conditions.IsNull() {
		m.Conditions = conditions(nil)
	}
	if m.Restarts.IsUnknown() {
		m.Restarts = types.Int64Value(0)
	}
	if m.RunID.IsUnknown() || m.RunID.IsNull() {
		m.RunID = m.Name
	}
}

// refresh takes over what may change while a job lives.
func (m *model) refresh(js *jobsetv1.JobSet) {
	live := training.FromJobSet(js)
	m.Labels = known(m.Labels, live.Labels)
	m.Annotations = known(m.Annotations, live.Annotations)
	if !m.Priority.IsNull() {
		m.Priority = optional(live.Priority)
	}
	if had := duration("", m.TTL, map[string]bool{}); (had == nil) != (live.TTL == nil) || had != nil && *had != *live.TTL {
		m.TTL = optionalDuration(live.TTL)
	}
}

// known are the live values of the keys that the state has.
func known(state types.Map, live map[string]string) types.Map {
	if len(state.Elements()) == 0 {
		return state
	}
	out := map[string]string{}
	for key := range state.Elements() {
		if v, ok := live[key]; ok {
			out[key] = v
		}
	}
	return conn.StringMap(out)
}

// imported fills in everything that a job that was read shows.
func (m *model) imported(ctx context.Context, s training.Spec, owner string, diags *diag.Diagnostics) {
	m.importedPods(ctx, s, diags)
	m.importedPlacement(ctx, s, diags)
	m.Queue, m.Priority = optional(s.Queue), optional(s.Priority)
	m.Accelerator, m.Slices = types.StringValue(s.Slice.Name), types.Int64Value(int64(s.Slices))
	m.Image, m.Command, m.Args = optional(s.Image), optionalList(s.Command), optionalList(s.Args)
	m.Env, m.ServiceAccount = conn.StringMap(s.Env), optional(s.ServiceAccount)
	m.RunID, m.OutputDir = types.StringValue(s.RunID), optional(s.OutputDir)
	if s.RunID == "" {
		m.RunID = m.Name
	}
	if s.FirstAttempt > 0 {
		m.FirstAttempt = types.Int64Value(int64(s.FirstAttempt))
	}
	m.Experiment = optional(s.Experiment)
	if m.Owner = optional(s.Owner); s.Owner == owner {
		m.Owner = types.StringNull() // the provider's, not the job's own
	}
	m.Labels, m.Annotations = conn.StringMap(s.Labels), conn.StringMap(s.Annotations)
	m.PodAnnotations = conn.StringMap(s.PodAnnotations)
	var codes []tfattr.Value
	for _, c := range s.Restart.FatalExitCodes {
		codes = append(codes, types.Int64Value(int64(c)))
	}
	m.Restart = types.ObjectValueMust(restartTypes, map[string]tfattr.Value{
		"max_restarts": types.Int64Value(int64(s.Restart.MaxRestarts)), "fatal_exit_codes": types.SetValueMust(types.Int64Type, codes),
		"on_preemption": types.StringValue(string(cmp.Or(s.Restart.OnPreemption, training.PreemptionRestarts))),
	})
	m.TTL, m.Grace, m.MaxRunTime = optionalDuration(s.TTL), optionalDuration(s.GracePeriod), optionalDuration(s.MaxRunTime)
	m.WaitFor = types.StringValue(string(training.LevelAdmitted))
}

func optional(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

func optionalList(all []string) types.List {
	if len(all) == 0 {
		return types.ListNull(types.StringType)
	}
	values := make([]tfattr.Value, len(all))
	for i, s := range all {
		values[i] = types.StringValue(s)
	}
	return types.ListValueMust(types.StringType, values)
}

func optionalDuration(d *time.Duration) types.String {
	if d == nil {
		return types.StringNull()
	}
	return types.StringValue(d.String())
}
