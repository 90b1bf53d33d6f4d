package jobfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// QueueNone is the queue of a job that waits for none.
const QueueNone = "none"

const domain = "tpu-training.github.io/"

// Where a note and a tag are kept: a note is an annotation, a tag a label, so
// that jobs can be chosen by it.
const (
	AnnotationNote = domain + "note"
	tagPrefix      = "tag." + domain
	tagValue       = "true"
)

// TagLabel is the label of a tag.
func TagLabel(tag string) (key, value string) { return tagPrefix + tag, tagValue }

// CheckTag says what is wrong with a tag, or "".
func CheckTag(tag string) string {
	if tag == "" {
		return "an empty tag"
	}
	for _, problem := range naming.LabelValue(tag) {
		return fmt.Sprintf("%q: %s", tag, problem)
	}
	return ""
}

// TagsOf are the tags among labels, sorted.
func TagsOf(labels map[string]string) []string {
	var tags []string
	for key := range labels {
		if tag, ok := strings.CutPrefix(key, tagPrefix); ok {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags
}

// Spec makes the job. Problems are training.FieldErrors: what cannot be made a
// Spec of, and then what Spec.Validate refuses. A job without a queue stays
// open: its Spec has none, which QueueNone makes final.
func (j Job) Spec() (training.Spec, error) {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &training.FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	s := training.Spec{
		Namespace: cmp.Or(j.Namespace, "default"), Name: j.Name, Priority: j.Priority, Slices: 1,
		Image: j.Image, Command: list(j.Command), Args: list(j.Args), Shell: j.Shell, Env: some(j.Env), EnvFrom: sources(j.EnvFrom),
		Files: some(j.Files), Resources: j.Resources.spec("resources", bad),
		ServiceAccount: j.ServiceAccount, HostNetwork: j.HostNetwork, SchedulerName: j.SchedulerName,
		RunID: j.RunID, FirstAttempt: j.FirstAttempt, OutputDir: j.OutputDir, Owner: j.Owner, Experiment: j.Experiment,
		PodAnnotations: some(j.PodAnnotations), Restart: j.Restart.spec(),
		DependsOn: dependencies(j.StartsAfter),
	}
	if j.Queue != QueueNone {
		s.Queue = j.Queue
	}
	if j.Slices != nil {
		s.Slices = *j.Slices
	}
	if j.Accelerator == "" {
		bad("accelerator", "it is missing: a type name such as v5litepod-16; tpuctl accelerators lists them")
	} else if slice, err := accelerator.Resolve(j.Accelerator); err != nil {
		bad("accelerator", "%v", err)
	} else {
		s.Slice = slice
	}
	s.Placement, s.Pathways = j.Placement.spec(bad), j.Pathways.spec(bad)
	if j.Containers != nil {
		s.ContainersPerHost = *j.Containers
		if s.ContainersPerHost < 1 {
			bad("containers_per_host", "%d; want at least 1", s.ContainersPerHost)
		}
	}
	s.Labels, s.Annotations = j.labels(bad), j.annotations()
	for _, name := range slices.Sorted(maps.Keys(j.Volumes)) {
		s.Volumes = append(s.Volumes, j.Volumes[name].spec(name, bad))
	}
	for _, name := range slices.Sorted(maps.Keys(j.Jobs)) {
		s.Jobs = append(s.Jobs, j.Jobs[name].spec(name, bad))
	}
	s.TTL, s.GracePeriod, s.MaxRunTime = j.TTL.parse("ttl_after_finished", bad), j.Grace.parse("termination_grace_period", bad), j.MaxRun.parse("max_run_time", bad)
	if len(j.Overrides) > 0 {
		b, err := json.Marshal(j.Overrides)
		if err != nil {
			bad("jobset_overrides", "%v", err)
		}
		s.Overrides = string(b)
	}
	j.settings(&s, bad)
	if len(errs) > 0 {
		return s, errors.Join(errs...)
	}
	check := s
	if j.Queue == "" { // whichever it will be
		check.Queue = "open"
	}
	return s, check.Validate()
}

// list is l, or nil when there is nothing in it: an empty list says no more than
// none.
func list(l []string) []string {
	if len(l) == 0 {
		return nil
	}
	return l
}

// some is m, or nil when there is nothing in it.
func some(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return maps.Clone(m)
}

func (j Job) labels(bad func(string, string, ...any)) map[string]string {
	out := some(j.Labels)
	for _, tag := range j.Tags {
		if problem := CheckTag(tag); problem != "" {
			bad("tags", "%s", problem)
		}
		if out == nil {
			out = map[string]string{}
		}
		key, value := TagLabel(tag)
		out[key] = value
	}
	return out
}

func (j Job) annotations() map[string]string {
	out := some(j.Annotations)
	if j.Note != "" {
		if out == nil {
			out = map[string]string{}
		}
		out[AnnotationNote] = j.Note
	}
	return out
}

func (p *Placement) spec(bad func(string, string, ...any)) training.Placement {
	if p == nil {
		return training.Placement{}
	}
	out := training.Placement{Provisioning: queue.Provisioning(p.Provisioning), Reservation: p.Reservation, Policy: p.Policy, Pool: p.Pool}
	if p.Pool == "" {
		return out
	}
	pool, err := accelerator.Resolve(p.Pool)
	if err != nil {
		bad("placement.pool_accelerator", "%v", err)
		return out
	}
	out.Pool = pool.Name
	return out
}

func (p *Pathways) spec(bad func(string, string, ...any)) *training.Pathways {
	if p == nil {
		return nil
	}
	number := func(field string, n *int, least int) int {
		if n == nil {
			return 0
		}
		if *n < least {
			bad("pathways."+field, "%d; want at least %d", *n, least)
		}
		return *n
	}
	return &training.Pathways{
		Scratch: p.Scratch, Headless: p.Headless, ProxyImage: p.ProxyImage, ServerImage: p.ServerImage,
		ProxyArgs: list(p.ProxyArgs), ServerArgs: list(p.ServerArgs), WorkerArgs: list(p.WorkerArgs),
		ProxyResources:   p.ProxyResources.spec("pathways.proxy_resources", bad),
		ServerResources:  p.ServerResources.spec("pathways.server_resources", bad),
		HeadNodeSelector: some(p.HeadNodeSelector), ElasticSlices: number("elastic_slices", p.ElasticSlices, 0),
		MaxSliceRestarts: number("max_slice_restarts", p.MaxSliceRestarts, 1), ColocatedPython: p.ColocatedPython,
	}
}

func sources(all []EnvFrom) []training.EnvSource {
	var out []training.EnvSource
	for _, e := range all {
		out = append(out, training.EnvSource{Secret: e.Secret, ConfigMap: e.ConfigMap, Prefix: e.Prefix, Optional: e.Optional})
	}
	return out
}

func dependencies(after map[string]string) []training.Dependency {
	var out []training.Dependency
	for _, name := range slices.Sorted(maps.Keys(after)) {
		out = append(out, training.Dependency{Job: name, Until: training.Until(after[name])})
	}
	return out
}

func (r *Resources) spec(field string, bad func(string, string, ...any)) training.Resources {
	if r == nil {
		return training.Resources{}
	}
	return training.Resources{CPU: r.CPU.parse(field+".cpu", bad), Memory: r.Memory.parse(field+".memory", bad), EphemeralStorage: r.EphemeralStorage.parse(field+".ephemeral_storage", bad)}
}

func (q Quantity) parse(field string, bad func(string, string, ...any)) *resource.Quantity {
	if q == "" {
		return nil
	}
	parsed, err := resource.ParseQuantity(string(q))
	if err != nil {
		bad(field, "%q; want a quantity such as 4, 500m or 16Gi", string(q))
		return nil
	}
	return &parsed
}

func (d Duration) parse(field string, bad func(string, string, ...any)) *time.Duration {
	if d == "" {
		return nil
	}
	parsed, err := time.ParseDuration(string(d))
	if err != nil {
		bad(field, "%q; want a length of time such as 90s or 24h", string(d))
		return nil
	}
	return &parsed
}

func (r *Restart) spec() training.RestartPolicy {
	policy := training.DefaultRestart()
	if r == nil {
		return policy
	}
	if r.MaxRestarts != nil {
		policy.MaxRestarts = *r.MaxRestarts
	}
	if r.FatalExitCodes != nil { // an empty list means none
		policy.FatalExitCodes = slices.Sorted(slices.Values(r.FatalExitCodes)) // Terraform has a set
	}
	if r.OnPreemption != string(training.PreemptionRestarts) {
		policy.OnPreemption = training.OnPreemption(r.OnPreemption)
	}
	return policy
}

func (v Volume) spec(name string, bad func(string, string, ...any)) training.Volume {
	at := "volumes." + name
	out := training.Volume{
		Name: name, Path: v.Path, ReadOnly: v.ReadOnly, SubPath: v.SubPath, Bucket: v.Bucket, MountOptions: v.MountOptions, Claim: v.Claim,
		Secret: v.Secret, ConfigMap: v.ConfigMap, HostPath: v.HostPath, Ramdisk: v.Ramdisk, MultiTier: v.MultiTier,
		Memory: v.Memory.parse(at+".memory", bad), Scratch: v.Scratch.parse(at+".scratch", bad),
	}
	if v.NFS != nil {
		out.NFS = &training.NFS{Server: v.NFS.Server, Path: v.NFS.Path}
	}
	return out
}

func (f Further) spec(name string, bad func(string, string, ...any)) training.Job {
	out := training.Job{
		Name: name, Pods: 1, Image: f.Image, Command: list(f.Command), Args: list(f.Args), Shell: f.Shell, Env: some(f.Env), EnvFrom: sources(f.EnvFrom),
		Resources: f.Resources.spec("jobs."+name+".resources", bad), NodeSelector: some(f.NodeSelector),
		OnFailure: training.OnFailure(f.OnFailure), DependsOn: dependencies(f.StartsAfter),
	}
	if f.Pods != nil {
		out.Pods = *f.Pods
	}
	return out
}
