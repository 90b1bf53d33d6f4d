package jobset

import (
	"context"
	"math"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

type model struct {
	Cluster        types.String `tfsdk:"cluster"`
	Namespace      types.String `tfsdk:"namespace"`
	Name           types.String `tfsdk:"name"`
	Queue          types.String `tfsdk:"queue"`
	Priority       types.String `tfsdk:"priority"`
	Accelerator    types.String `tfsdk:"accelerator"`
	Slices         types.Int64  `tfsdk:"slices"`
	Placement      types.Object `tfsdk:"placement"`
	Containers     types.Int64  `tfsdk:"containers_per_host"`
	Pathways       types.Object `tfsdk:"pathways"`
	Image          types.String `tfsdk:"image"`
	Command        types.List   `tfsdk:"command"`
	Args           types.List   `tfsdk:"args"`
	Shell          types.String `tfsdk:"shell"`
	Env            types.Map    `tfsdk:"env"`
	EnvFrom        types.List   `tfsdk:"env_from"`
	Files          types.Map    `tfsdk:"files"`
	Volumes        types.Map    `tfsdk:"volumes"`
	Resources      types.Object `tfsdk:"resources"`
	Jobs           types.Map    `tfsdk:"jobs"`
	StartsAfter    types.Map    `tfsdk:"starts_after"`
	HostNetwork    types.Bool   `tfsdk:"host_network"`
	Scheduler      types.String `tfsdk:"scheduler_name"`
	Overrides      types.String `tfsdk:"jobset_overrides"`
	ServiceAccount types.String `tfsdk:"service_account"`
	RunID          types.String `tfsdk:"run_id"`
	FirstAttempt   types.Int64  `tfsdk:"first_attempt"`
	OutputDir      types.String `tfsdk:"output_dir"`
	Owner          types.String `tfsdk:"owner"`
	Experiment     types.String `tfsdk:"experiment"`
	Labels         types.Map    `tfsdk:"labels"`
	Annotations    types.Map    `tfsdk:"annotations"`
	PodAnnotations types.Map    `tfsdk:"pod_annotations"`
	Restart        types.Object `tfsdk:"restart_policy"`
	TTL            types.String `tfsdk:"ttl_after_finished"`
	Grace          types.String `tfsdk:"termination_grace_period"`
	MaxRunTime     types.String `tfsdk:"max_run_time"`
	Active         types.Bool   `tfsdk:"active"`
	RerunTrigger   types.String `tfsdk:"rerun_trigger"`
	WaitFor        types.String `tfsdk:"wait_for"`

	ID         types.String `tfsdk:"id"`
	UID        types.String `tfsdk:"uid"`
	Status     types.String `tfsdk:"status"`
	Reason     types.String `tfsdk:"reason"`
	Message    types.String `tfsdk:"message"`
	Restarts   types.Int64  `tfsdk:"restarts"`
	Flavor     types.String `tfsdk:"flavor"`
	Conditions types.List   `tfsdk:"conditions"`
	Proxy      types.String `tfsdk:"proxy_address"`
	CreatedAt  types.String `tfsdk:"created_at"`
	StartedAt  types.String `tfsdk:"started_at"`
	FinishedAt types.String `tfsdk:"finished_at"`

	Timeouts timeouts.Value `tfsdk:"timeouts"`
}

func (m model) id() string {
	return m.Cluster.ValueString() + "/namespaces/" + m.Namespace.ValueString() + "/jobsets/" + m.Name.ValueString()
}

// spec translates. unknown holds the attributes whose values only an apply
// will know; what stands in for them passes every check of its own.
func (m model) spec(ctx context.Context, owner string, diags *diag.Diagnostics) (s training.Spec, unknown map[string]bool) {
	unknown = map[string]bool{}
	text := func(field string, v types.String, standIn string) string {
		if v.IsUnknown() {
			unknown[field] = true
			return standIn
		}
		return v.ValueString()
	}
	s = training.Spec{
		Namespace:      text("namespace", m.Namespace, "unknown"),
		Name:           text("name", m.Name, "x"),
		Queue:          text("queue", m.Queue, "unknown"),
		Priority:       text("priority", m.Priority, ""),
		Image:          text("image", m.Image, "unknown"),
		ServiceAccount: text("service_account", m.ServiceAccount, ""),
		RunID:          text("run_id", m.RunID, ""),
		OutputDir:      text("output_dir", m.OutputDir, ""),
		Owner:          text("owner", m.Owner, ""),
		Experiment:     text("experiment", m.Experiment, ""),
		Shell:          text("shell", m.Shell, ""),
		SchedulerName:  text("scheduler_name", m.Scheduler, ""),
		Held:           !m.Active.IsNull() && !m.Active.IsUnknown() && !m.Active.ValueBool(),
		Command:        m.strings("command", m.Command, unknown),
		Args:           m.strings("args", m.Args, unknown),
		Env:            m.stringMap("env", m.Env, unknown),
		Labels:         m.stringMap("labels", m.Labels, unknown),
		Annotations:    m.stringMap("annotations", m.Annotations, unknown),
		PodAnnotations: m.stringMap("pod_annotations", m.PodAnnotations, unknown),
		Restart:        m.restart(ctx, unknown, diags),
		Slices:         1,
	}
	if m.Owner.IsNull() {
		s.Owner = owner
	}
	if m.Slices.IsUnknown() {
		unknown["slices"] = true
	} else {
		s.Slices = int(m.Slices.ValueInt64())
	}
	if m.FirstAttempt.IsUnknown() {
		unknown["first_attempt"] = true
	} else {
		s.FirstAttempt = int(m.FirstAttempt.ValueInt64())
	}
	name := text("accelerator", m.Accelerator, "v5litepod-1")
	if slice, err := accelerator.Resolve(name); err == nil {
		s.Slice = slice
	} else {
		unknown["accelerator"] = true // the attribute's own validator says so
		s.Slice, _ = accelerator.Resolve("v5litepod-1")
	}
	s.Placement = m.placed(ctx, unknown, diags)
	if s.ContainersPerHost = int(m.Containers.ValueInt64()); m.Containers.IsUnknown() {
		unknown["containers_per_host"] = true
	}
	if s.Pathways = m.throughPathways(ctx, unknown, diags); unknown["accelerator"] { // what fits another slice is not known
		unknown["placement"], unknown["containers_per_host"] = true, true
	}
	s.TTL = duration("ttl_after_finished", m.TTL, unknown)
	s.GracePeriod = duration("termination_grace_period", m.Grace, unknown)
	s.MaxRunTime = duration("max_run_time", m.MaxRunTime, unknown)
	m.pods(ctx, &s, unknown, diags)
	return s, unknown
}

// duration: what does not parse has been refused by the attribute's validator.
func duration(field string, v types.String, unknown map[string]bool) *time.Duration {
	if v.IsUnknown() {
		unknown[field] = true
	}
	d, err := time.ParseDuration(v.ValueString())
	if v.IsNull() || v.IsUnknown() || err != nil {
		return nil
	}
	return &d
}

func (model) strings(field string, l types.List, unknown map[string]bool) []string {
	if l.IsUnknown() {
		unknown[field] = true
	}
	var out []string
	for _, e := range l.Elements() {
		s, ok := e.(types.String)
		if !ok || s.IsUnknown() {
			unknown[field] = true
		}
		out = append(out, s.ValueString())
	}
	return out
}

func (model) stringMap(field string, m types.Map, unknown map[string]bool) map[string]string {
	if m.IsUnknown() {
		unknown[field] = true
	}
	var out map[string]string
	for key, e := range m.Elements() {
		s, ok := e.(types.String)
		if !ok || s.IsUnknown() {
			unknown[field] = true
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = s.ValueString()
	}
	return out
}

func (m model) restart(ctx context.Context, unknown map[string]bool, diags *diag.Diagnostics) training.RestartPolicy {
	policy := training.DefaultRestart()
	if m.Restart.IsNull() || m.Restart.IsUnknown() {
		if m.Restart.IsUnknown() {
			unknown["restart_policy"] = true
		}
		return policy
	}
	attrs := m.Restart.Attributes()
	if p, ok := attrs["on_preemption"].(types.String); ok && p.ValueString() != string(training.PreemptionRestarts) {
		policy.OnPreemption = training.OnPreemption(p.ValueString())
	}
	if n, ok := attrs["max_restarts"].(types.Int64); ok && !n.IsNull() && !n.IsUnknown() {
		policy.MaxRestarts = int(n.ValueInt64())
	}
	codes, ok := attrs["fatal_exit_codes"].(types.Set)
	if !ok || codes.IsNull() || codes.IsUnknown() {
		return policy
	}
	policy.FatalExitCodes = nil
	for _, e := range codes.Elements() {
		if n, ok := e.(types.Int64); ok && !n.IsUnknown() {
			code := min(max(n.ValueInt64(), -1), math.MaxInt32) // what is no exit code is refused, and must not become one
			policy.FatalExitCodes = append(policy.FatalExitCodes, int32(code))
		}
	}
	return policy
}
