package jobfile

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// From writes a Spec down as a Job, from which Job.Spec makes it again.
func From(s training.Spec) Job {
	j := Job{
		Name: s.Name, Namespace: s.Namespace, Queue: s.Queue, Priority: s.Priority, Accelerator: s.Slice.Name, Slices: &s.Slices,
		Image: s.Image, Command: s.Command, Args: s.Args, Shell: s.Shell, Env: some(s.Env), EnvFrom: fromSources(s.EnvFrom), Files: some(s.Files),
		Resources: fromResources(s.Resources), StartsAfter: fromDependencies(s.DependsOn),
		ServiceAccount: s.ServiceAccount, HostNetwork: s.HostNetwork, SchedulerName: s.SchedulerName,
		RunID: s.RunID, FirstAttempt: s.FirstAttempt, OutputDir: s.OutputDir, Owner: s.Owner, Experiment: s.Experiment,
		Labels: some(s.Labels), Annotations: some(s.Annotations), PodAnnotations: some(s.PodAnnotations),
		Restart: &Restart{MaxRestarts: &s.Restart.MaxRestarts, FatalExitCodes: append([]int32{}, s.Restart.FatalExitCodes...), OnPreemption: string(s.Restart.OnPreemption)},
		TTL:     fromDuration(s.TTL), Grace: fromDuration(s.GracePeriod), MaxRun: fromDuration(s.MaxRunTime),
	}
	j.Placement, j.Pathways, j.Containers = fromPlacement(s.Placement), fromPathways(s.Pathways), fromNumber(s.ContainersPerHost)
	if s.Queue == "" {
		j.Queue = QueueNone
	}
	if s.Restart.OnPreemption == "" && s.Restart.MaxRestarts == training.DefaultMaxRestarts && slices.Equal(s.Restart.FatalExitCodes, training.DefaultFatalExitCodes) {
		j.Restart = nil
	}
	j.Note = j.Annotations[AnnotationNote]
	delete(j.Annotations, AnnotationNote)
	if j.Tags = TagsOf(j.Labels); j.Tags != nil {
		maps.DeleteFunc(j.Labels, func(key, _ string) bool { return strings.HasPrefix(key, tagPrefix) })
	}
	for _, v := range s.Volumes {
		if j.Volumes == nil {
			j.Volumes = map[string]Volume{}
		}
		j.Volumes[v.Name] = fromVolume(v)
	}
	for _, f := range s.Jobs {
		if j.Jobs == nil {
			j.Jobs = map[string]Further{}
		}
		one := Further{
			Image: f.Image, Command: f.Command, Args: f.Args, Shell: f.Shell, Env: some(f.Env), EnvFrom: fromSources(f.EnvFrom),
			Resources: fromResources(f.Resources), NodeSelector: some(f.NodeSelector), OnFailure: string(f.OnFailure), StartsAfter: fromDependencies(f.DependsOn),
		}
		if f.Pods != 1 {
			one.Pods = &f.Pods
		}
		j.Jobs[f.Name] = one
	}
	decoder := json.NewDecoder(strings.NewReader(s.Overrides))
	decoder.UseNumber()
	if decoder.Decode(&j.Overrides) != nil {
		j.Overrides = nil // there are none, or Spec.Validate has refused them
	}
	return j
}

func fromPlacement(p training.Placement) *Placement {
	if p == (training.Placement{}) {
		return nil
	}
	return &Placement{Provisioning: string(p.Provisioning), Reservation: p.Reservation, Policy: p.Policy, Pool: p.Pool}
}

func fromPathways(p *training.Pathways) *Pathways {
	if p == nil {
		return nil
	}
	return &Pathways{
		Scratch: p.Scratch, Headless: p.Headless, ProxyImage: p.ProxyImage, ServerImage: p.ServerImage,
		ProxyArgs: p.ProxyArgs, ServerArgs: p.ServerArgs, WorkerArgs: p.WorkerArgs, ProxyResources: fromResources(p.ProxyResources), ServerResources: fromResources(p.ServerResources),
		HeadNodeSelector: some(p.HeadNodeSelector), ElasticSlices: fromNumber(p.ElasticSlices), MaxSliceRestarts: fromNumber(p.MaxSliceRestarts), ColocatedPython: p.ColocatedPython,
	}
}

// fromNumber: 0 is what is left out.
func fromNumber(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func fromSources(all []training.EnvSource) []EnvFrom {
	var out []EnvFrom
	for _, e := range all {
		out = append(out, EnvFrom{Secret: e.Secret, ConfigMap: e.ConfigMap, Prefix: e.Prefix, Optional: e.Optional})
	}
	return out
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

func fromResources(r training.Resources) *Resources {
	if r == (training.Resources{}) {
		return nil
	}
	return &Resources{CPU: fromQuantity(r.CPU), Memory: fromQuantity(r.Memory), EphemeralStorage: fromQuantity(r.EphemeralStorage)}
}

func fromQuantity(q *resource.Quantity) Quantity {
	if q == nil {
		return ""
	}
	return Quantity(q.String())
}

func fromDuration(d *time.Duration) Duration {
	if d == nil {
		return ""
	}
	return Duration(d.String())
}

func fromVolume(v training.Volume) Volume {
	out := Volume{
		Path: v.Path, ReadOnly: v.ReadOnly, SubPath: v.SubPath, Bucket: v.Bucket, MountOptions: v.MountOptions, Claim: v.Claim, Secret: v.Secret,
		ConfigMap: v.ConfigMap, HostPath: v.HostPath, Ramdisk: v.Ramdisk, MultiTier: v.MultiTier, Memory: fromQuantity(v.Memory), Scratch: fromQuantity(v.Scratch),
	}
	if v.NFS != nil {
		out.NFS = &NFS{Server: v.NFS.Server, Path: v.NFS.Path}
	}
	return out
}
