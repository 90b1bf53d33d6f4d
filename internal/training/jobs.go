package training

import (
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// Job is a further job beside the main one: pods without chips, such as an
// uploader of metrics, an evaluator or a preparation of data. It lives with the
// main job, which alone decides whether the run succeeded: when that ends, the
// further jobs end too.
type Job struct {
	Name string // of the replicated job; part of its pods' names
	Pods int    // at least 1

	Image   string // "" = the main job's
	Command []string
	Args    []string
	Shell   string            `json:",omitempty"`
	Env     map[string]string `json:",omitempty"` // the main job's are not taken over
	EnvFrom []EnvSource       `json:",omitempty"`

	Resources    Resources         `json:",omitzero"` // of each pod
	NodeSelector map[string]string `json:",omitempty"`

	OnFailure OnFailure
	DependsOn []Dependency `json:",omitempty"`
}

// OnFailure says what the failure of a further job does.
type OnFailure string

// What a further job's failure can do. "" is FailureRetries.
const (
	FailureRetries  OnFailure = "retry"   // its container is started again, for ever; the main job does not notice
	FailureRestarts OnFailure = "restart" // the whole run restarts, counted
	FailureFails    OnFailure = "fail"    // the run fails
)

// OnFailures lists them, the default first.
var OnFailures = []string{string(FailureRetries), string(FailureRestarts), string(FailureFails)}

// Dependency is what must be there before a job starts.
type Dependency struct {
	Job string // the name of a further job, or SliceJob
	// Until Ready (all its pods are) or Complete (all have succeeded).
	Until Until
}

// Until is how far a dependency must be.
type Until string

// The steps of a dependency.
const (
	UntilReady    Until = "ready"
	UntilComplete Until = "complete"
)

// Untils lists them.
var Untils = []string{string(UntilReady), string(UntilComplete)}

// Ports and variables by which the pods of one further job find each other.
// For pods with chips GKE sets its own.
const (
	coordinatorPort = 1234
	envCoordinator  = "JAX_COORDINATOR_ADDRESS"
	envProcessID    = "JAX_PROCESS_ID"
	envProcesses    = "JAX_NUM_PROCESSES"
	labelPodIndex   = batchv1.JobCompletionIndexAnnotation
	maxFurtherJobs  = 7 // Kueue 0.15 takes 8 kinds of pods in one Workload
	maxDependencies = 5 // JobSet's limit
)

// bound are the replicated jobs whose disruption and fatal exit codes are the
// run's; nil when there are no others.
func (s Spec) bound() []string {
	if len(s.Jobs) == 0 {
		return nil
	}
	names := []string{SliceJob}
	if s.Pathways != nil {
		names = []string{HeadJob, SliceJob}
	}
	for _, j := range s.Jobs {
		if j.OnFailure == FailureRestarts {
			names = append(names, j.Name)
		}
	}
	return names
}

// fatal are the further jobs whose failure fails the run.
func (s Spec) fatal() []string {
	var names []string
	for _, j := range s.Jobs {
		if j.OnFailure == FailureFails {
			names = append(names, j.Name)
		}
	}
	return names
}

// replicatedJobs are all of them, each after what it depends on, as JobSet
// wants them; otherwise the main job is the first, and those that ask for cpu or
// memory the last. Kueue 0.19 stops at the first kind of pods whose resources
// are none of its queue's, and never admits a job that has further ones.
func (s Spec) replicatedJobs() []jobset.ReplicatedJob {
	all := []jobset.ReplicatedJob{s.mainJob()}
	for _, asks := range []bool{false, true} {
		for _, j := range s.Jobs {
			if (j.Resources != Resources{}) == asks {
				all = append(all, s.furtherJob(j))
			}
		}
	}
	if s.Pathways != nil {
		all = append(all, s.headJob())
	}
	sorted := make([]jobset.ReplicatedJob, 0, len(all))
	placed := map[string]bool{}
	for len(sorted) < len(all) {
		before := len(sorted)
		for i := range all {
			waits := slices.ContainsFunc(all[i].DependsOn, func(d jobset.DependsOn) bool { return !placed[d.Name] })
			if !placed[all[i].Name] && !waits {
				sorted = append(sorted, all[i])
				placed[all[i].Name] = true
				break
			}
		}
		if len(sorted) == before { // a circle, or two of one name; Validate says so
			return all
		}
	}
	return sorted
}

func dependsOn(all []Dependency) []jobset.DependsOn {
	var out []jobset.DependsOn
	for _, d := range all {
		status := jobset.DependencyReady
		if d.Until == UntilComplete {
			status = jobset.DependencyComplete
		}
		out = append(out, jobset.DependsOn{Name: d.Job, Status: status})
	}
	return out
}

func (s Spec) furtherJob(j Job) jobset.ReplicatedJob {
	pods := int32(max(j.Pods, 1))
	t := s.basePod()
	t.Spec.NodeSelector = maps.Clone(j.NodeSelector)
	image := j.Image
	if image == "" {
		image = s.Image
	}
	c := s.container(j.Name, image, j.Shell, j.Command, j.Args)
	c.Env, c.EnvFrom = append(s.env(nil), s.peers(j)...), envFrom(j.EnvFrom)
	for _, name := range slices.Sorted(maps.Keys(j.Env)) {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: j.Env[name]})
	}
	c.Resources = j.Resources.requirements(0)
	t.Spec.Containers = []corev1.Container{c}
	s.addVolumes(&t, t.Spec.Containers, func(v Volume) bool { return !v.onHost() })

	job := batchv1.JobSpec{
		Parallelism:    ptr.To(pods),
		Completions:    ptr.To(pods),
		CompletionMode: ptr.To(batchv1.IndexedCompletion),
		BackoffLimit:   ptr.To(int32(0)),
		Template:       t,
	}
	disruption := []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	switch j.OnFailure {
	case FailureRestarts:
		job.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionFailJob, OnPodConditions: disruption}}}
		job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	case FailureFails:
		// A host that goes takes no blame: its pod is made again.
		job.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: disruption}}}
		job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	default:
		job.BackoffLimit = ptr.To(int32(1<<31 - 1))
		job.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	return jobset.ReplicatedJob{
		Name: j.Name, GroupName: "default", Replicas: 1,
		Template:  batchv1.JobTemplateSpec{Spec: job},
		DependsOn: dependsOn(j.DependsOn),
	}
}

// peers tell JAX who its fellows are, where a further job has several pods.
func (s Spec) peers(j Job) []corev1.EnvVar {
	if j.Pods < 2 {
		return nil
	}
	all := []corev1.EnvVar{
		{Name: envCoordinator, Value: s.Name + "-" + j.Name + "-0-0." + s.Name + ":" + strconv.Itoa(coordinatorPort)},
		{Name: envProcessID, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.labels['" + labelPodIndex + "']",
		}}},
		{Name: envProcesses, Value: strconv.Itoa(j.Pods)},
	}
	return slices.DeleteFunc(all, func(e corev1.EnvVar) bool { _, own := j.Env[e.Name]; return own })
}
