package jobset

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	tfattr "github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

type envFromModel struct {
	Secret    types.String `tfsdk:"secret"`
	ConfigMap types.String `tfsdk:"config_map"`
	Prefix    types.String `tfsdk:"prefix"`
	Optional  types.Bool   `tfsdk:"optional"`
}

type resourcesModel struct {
	CPU              types.String `tfsdk:"cpu"`
	Memory           types.String `tfsdk:"memory"`
	EphemeralStorage types.String `tfsdk:"ephemeral_storage"`
}

type nfsModel struct {
	Server types.String `tfsdk:"server"`
	Path   types.String `tfsdk:"path"`
}

type volumeModel struct {
	Path         types.String `tfsdk:"path"`
	ReadOnly     types.Bool   `tfsdk:"read_only"`
	SubPath      types.String `tfsdk:"sub_path"`
	Bucket       types.String `tfsdk:"bucket"`
	MountOptions []string     `tfsdk:"mount_options"`
	Claim        types.String `tfsdk:"claim"`
	Secret       types.String `tfsdk:"secret"`
	ConfigMap    types.String `tfsdk:"config_map"`
	HostPath     types.String `tfsdk:"host_path"`
	Ramdisk      types.Bool   `tfsdk:"ramdisk"`
	MultiTier    types.Bool   `tfsdk:"multi_tier"`
	Memory       types.String `tfsdk:"memory"`
	Scratch      types.String `tfsdk:"scratch"`
	NFS          *nfsModel    `tfsdk:"nfs"`
}

type jobModel struct {
	Pods         types.Int64       `tfsdk:"pods"`
	Image        types.String      `tfsdk:"image"`
	Command      []string          `tfsdk:"command"`
	Args         []string          `tfsdk:"args"`
	Shell        types.String      `tfsdk:"shell"`
	Env          map[string]string `tfsdk:"env"`
	EnvFrom      []envFromModel    `tfsdk:"env_from"`
	Resources    *resourcesModel   `tfsdk:"resources"`
	NodeSelector map[string]string `tfsdk:"node_selector"`
	OnFailure    types.String      `tfsdk:"on_failure"`
	StartsAfter  map[string]string `tfsdk:"starts_after"`
}

// decode takes a collection over when all of it is known; else field is
// unknown, and left out of every check.
func decode(ctx context.Context, field string, v tfattr.Value, into any, unknown map[string]bool, diags *diag.Diagnostics) {
	raw, err := v.ToTerraformValue(ctx)
	switch {
	case err != nil || !raw.IsFullyKnown():
		unknown[field] = true
	case !v.IsNull():
		diags.Append(tfsdk.ValueAs(ctx, v, into)...)
	}
}

// pods translates what is in the pods.
func (m model) pods(ctx context.Context, s *training.Spec, unknown map[string]bool, diags *diag.Diagnostics) {
	var from []envFromModel
	var resources *resourcesModel
	var volumes map[string]volumeModel
	var jobs map[string]jobModel
	var after map[string]string
	decode(ctx, "env_from", m.EnvFrom, &from, unknown, diags)
	decode(ctx, "resources", m.Resources, &resources, unknown, diags)
	decode(ctx, "volumes", m.Volumes, &volumes, unknown, diags)
	decode(ctx, "jobs", m.Jobs, &jobs, unknown, diags)
	decode(ctx, "starts_after", m.StartsAfter, &after, unknown, diags)
	s.Files = m.stringMap("files", m.Files, unknown)
	s.EnvFrom, s.Resources, s.DependsOn = sources(from), resources.spec(), dependencies(after)
	for _, name := range slices.Sorted(maps.Keys(volumes)) {
		s.Volumes = append(s.Volumes, volumes[name].spec(name))
	}
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		s.Jobs = append(s.Jobs, jobs[name].spec(name))
	}
	if unknown["jobs"] { // what refers to them cannot be held against them
		unknown["starts_after"], unknown["jobset_overrides"] = true, true
	}
	s.HostNetwork = m.HostNetwork.ValueBool()
	s.Overrides = compact(m.Overrides.ValueString())
	if m.Overrides.IsUnknown() {
		unknown["jobset_overrides"] = true
	}
}

// compact writes JSON in one way; what is no JSON stays, to be refused.
func compact(text string) string {
	var v any
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	if text == "" || decoder.Decode(&v) != nil || decoder.More() {
		return text
	}
	b, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(b)
}

func sources(all []envFromModel) []training.EnvSource {
	var out []training.EnvSource
	for _, e := range all {
		out = append(out, training.EnvSource{Secret: e.Secret.ValueString(), ConfigMap: e.ConfigMap.ValueString(), Prefix: e.Prefix.ValueString(), Optional: e.Optional.ValueBool()})
	}
	return out
}

// parsed is a quantity that the attribute's own validator lets through.
func parsed(v types.String) *resource.Quantity {
	if v.ValueString() == "" {
		return nil
	}
	q, err := resource.ParseQuantity(v.ValueString())
	if err != nil {
		return nil
	}
	return &q
}

func (r *resourcesModel) spec() training.Resources {
	if r == nil {
		return training.Resources{}
	}
	return training.Resources{CPU: parsed(r.CPU), Memory: parsed(r.Memory), EphemeralStorage: parsed(r.EphemeralStorage)}
}

func dependencies(after map[string]string) []training.Dependency {
	var out []training.Dependency
	for _, name := range slices.Sorted(maps.Keys(after)) {
		out = append(out, training.Dependency{Job: name, Until: training.Until(after[name])})
	}
	return out
}

func (v volumeModel) spec(name string) training.Volume {
	out := training.Volume{
		Name: name, Path: v.Path.ValueString(), ReadOnly: v.ReadOnly.ValueBool(), SubPath: v.SubPath.ValueString(),
		Bucket: v.Bucket.ValueString(), MountOptions: v.MountOptions, Claim: v.Claim.ValueString(), Secret: v.Secret.ValueString(),
		ConfigMap: v.ConfigMap.ValueString(), HostPath: v.HostPath.ValueString(), Ramdisk: v.Ramdisk.ValueBool(), MultiTier: v.MultiTier.ValueBool(),
		Memory: parsed(v.Memory), Scratch: parsed(v.Scratch),
	}
	if v.NFS != nil {
		out.NFS = &training.NFS{Server: v.NFS.Server.ValueString(), Path: v.NFS.Path.ValueString()}
	}
	return out
}

func (j jobModel) spec(name string) training.Job {
	out := training.Job{
		Name: name, Pods: 1, Image: j.Image.ValueString(), Command: j.Command, Args: j.Args, Shell: j.Shell.ValueString(), Env: j.Env,
		EnvFrom: sources(j.EnvFrom), Resources: j.Resources.spec(), NodeSelector: j.NodeSelector,
		OnFailure: training.OnFailure(j.OnFailure.ValueString()), DependsOn: dependencies(j.StartsAfter),
	}
	if !j.Pods.IsNull() {
		out.Pods = int(j.Pods.ValueInt64())
	}
	return out
}

// importedPods fills in what is in the pods of a job that was read.
func (m *model) importedPods(ctx context.Context, s training.Spec, diags *diag.Diagnostics) {
	set := func(field any, typ tfattr.Type, v any) {
		if reflect.ValueOf(v).IsZero() {
			return
		}
		diags.Append(tfsdk.ValueFrom(ctx, v, typ, field)...)
	}
	inputs := pods()
	m.Shell, m.Scheduler, m.Overrides = optional(s.Shell), optional(s.SchedulerName), optional(s.Overrides)
	if s.HostNetwork {
		m.HostNetwork = types.BoolValue(true)
	}
	set(&m.EnvFrom, inputs["env_from"].GetType(), fromSources(s.EnvFrom))
	set(&m.Resources, inputs["resources"].GetType(), fromResources(s.Resources))
	set(&m.Files, types.MapType{ElemType: types.StringType}, s.Files)
	set(&m.StartsAfter, inputs["starts_after"].GetType(), fromDependencies(s.DependsOn))
	var volumes map[string]volumeModel
	for _, v := range s.Volumes {
		if volumes == nil {
			volumes = map[string]volumeModel{}
		}
		volumes[v.Name] = fromVolume(v)
	}
	set(&m.Volumes, inputs["volumes"].GetType(), volumes)
	var jobs map[string]jobModel
	for _, j := range s.Jobs {
		if jobs == nil {
			jobs = map[string]jobModel{}
		}
		jobs[j.Name] = fromJob(j)
	}
	set(&m.Jobs, inputs["jobs"].GetType(), jobs)
}

func fromSources(all []training.EnvSource) []envFromModel {
	var out []envFromModel
	for _, e := range all {
		out = append(out, envFromModel{Secret: optional(e.Secret), ConfigMap: optional(e.ConfigMap), Prefix: optional(e.Prefix), Optional: flag(e.Optional)})
	}
	return out
}

func flag(b bool) types.Bool {
	if !b {
		return types.BoolNull()
	}
	return types.BoolValue(true)
}

func amount(q *resource.Quantity) types.String {
	if q == nil {
		return types.StringNull()
	}
	return types.StringValue(q.String())
}

func fromResources(r training.Resources) *resourcesModel {
	if r == (training.Resources{}) {
		return nil
	}
	return &resourcesModel{CPU: amount(r.CPU), Memory: amount(r.Memory), EphemeralStorage: amount(r.EphemeralStorage)}
}

func fromDependencies(all []training.Dependency) map[string]string {
	var out map[string]string
	for _, d := range all {
		if out == nil {
			out = map[string]string{}
		}
		out[d.Job] = string(d.Until)
	}
	return out
}

func fromVolume(v training.Volume) volumeModel {
	out := volumeModel{
		Path: types.StringValue(v.Path), ReadOnly: flag(v.ReadOnly), SubPath: optional(v.SubPath), Bucket: optional(v.Bucket), MountOptions: v.MountOptions,
		Claim: optional(v.Claim), Secret: optional(v.Secret), ConfigMap: optional(v.ConfigMap), HostPath: optional(v.HostPath),
		Ramdisk: flag(v.Ramdisk), MultiTier: flag(v.MultiTier), Memory: amount(v.Memory), Scratch: amount(v.Scratch),
	}
	if v.NFS != nil {
		out.NFS = &nfsModel{Server: types.StringValue(v.NFS.Server), Path: types.StringValue(v.NFS.Path)}
	}
	return out
}

func fromJob(j training.Job) jobModel {
	out := jobModel{
		Image: optional(j.Image), Command: j.Command, Args: j.Args, Shell: optional(j.Shell), Env: j.Env, EnvFrom: fromSources(j.EnvFrom),
		Resources: fromResources(j.Resources), NodeSelector: j.NodeSelector, OnFailure: optional(string(j.OnFailure)), StartsAfter: fromDependencies(j.DependsOn),
	}
	if j.Pods > 1 {
		out.Pods = types.Int64Value(int64(j.Pods))
	}
	return out
}
