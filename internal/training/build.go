package training

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// lostHostSeconds is how long a pod stays bound to a host that stopped
// answering. Kubernetes' default of 300 would leave every other host idle for
// five minutes; a shorter time would restart a job over a passing hiccup.
const lostHostSeconds = 60

// JobSet renders the job, overrides included. Everything that the JobSet
// webhook and the API server would default is written out, so that the stored
// object differs from this one only by what Kueue adds. spec.suspend is left
// out: on a queued job it is Kueue's, whose webhook sets it on creation.
func (s Spec) JobSet() *jobset.JobSet {
	js := s.render()
	if merged, err := Merge(js, s.Overrides); err == nil { // Validate has refused the others
		js = merged
	}
	return js
}

func (s Spec) render() *jobset.JobSet {
	labels := maps.Clone(s.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, s.jobLabels())
	if s.Queue != "" && !s.Held {
		labels[queue.LabelQueueName] = s.Queue
	}
	if s.Priority != "" {
		labels[queue.LabelPriorityClass] = s.Priority
	}
	if s.MaxRunTime != nil {
		labels[labelMaxRunTime] = strconv.Itoa(int(s.MaxRunTime.Seconds()))
	}
	annotations := maps.Clone(s.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationSpecHash] = s.Hash()
	annotations[AnnotationAccelerator] = s.Slice.Name
	annotations[AnnotationSlices] = strconv.Itoa(s.Slices)

	js := &jobset.JobSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: jobset.GroupVersion.String(), Kind: "JobSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: labels, Annotations: annotations},
		Spec: jobset.JobSetSpec{
			ReplicatedJobs: s.replicatedJobs(),
			Network: &jobset.Network{
				EnableDNSHostnames:       ptr.To(true),
				PublishNotReadyAddresses: ptr.To(true),
			},
			SuccessPolicy: &jobset.SuccessPolicy{Operator: jobset.OperatorAll},
			StartupPolicy: &jobset.StartupPolicy{StartupPolicyOrder: jobset.AnyOrder},
			FailurePolicy: s.failurePolicy(),
		},
	}
	if len(s.Jobs) > 0 || s.Pathways != nil { // one alone decides success
		js.Spec.SuccessPolicy.TargetReplicatedJobs = []string{s.deciding()}
	}
	if s.Held {
		js.Spec.Suspend = ptr.To(true)
	}
	if s.TTL != nil {
		js.Spec.TTLSecondsAfterFinished = ptr.To(int32(s.TTL.Seconds()))
	}
	if text := s.record(js); text != "" {
		annotations[AnnotationSpec] = text
	}
	return js
}

// failurePolicy tells a disruption (restart, not counted) from a fatal exit
// code (fail at once); what matches neither restarts and is counted. JobSet
// sees both as a Job that failed by its pod failure policy, and only the
// message tells them apart: a host's condition is named in it.
func (s Spec) failurePolicy() *jobset.FailurePolicy {
	disrupted := jobset.RestartJobSetAndIgnoreMaxRestarts
	switch s.Restart.OnPreemption {
	case PreemptionCounts:
		disrupted = jobset.RestartJobSet
	case PreemptionFails:
		disrupted = jobset.FailJobSet
	}
	p := &jobset.FailurePolicy{
		MaxRestarts:     int32(s.Restart.MaxRestarts),
		RestartStrategy: jobset.Recreate,
		Rules: []jobset.FailurePolicyRule{
			{
				Name:                        ruleDisruption,
				Action:                      disrupted,
				OnJobFailureReasons:         []string{batchv1.JobReasonPodFailurePolicy},
				OnJobFailureMessagePatterns: []string{"condition DisruptionTarget matching"},
			},
			{
				Name:                ruleFatalExit,
				Action:              jobset.FailJobSet,
				OnJobFailureReasons: []string{batchv1.JobReasonPodFailurePolicy},
			},
		},
	}
	for i := range p.Rules {
		p.Rules[i].TargetReplicatedJobs = s.bound()
	}
	if fatal := s.fatal(); len(fatal) > 0 {
		p.Rules = append(p.Rules, jobset.FailurePolicyRule{Name: ruleFurtherJob, Action: jobset.FailJobSet, TargetReplicatedJobs: fatal})
	}
	return p
}

// mainJob is the replicated job that trains.
func (s Spec) mainJob() jobset.ReplicatedJob {
	rj := jobset.ReplicatedJob{
		Name:      SliceJob,
		GroupName: "default",
		Replicas:  int32(s.Slices),
		Template:  s.jobTemplate(),
		DependsOn: dependsOn(s.DependsOn),
	}
	if s.Pathways != nil {
		return s.workers(rj)
	}
	return rj
}

func (s Spec) jobTemplate() batchv1.JobTemplateSpec {
	hosts := int32(s.Slice.Hosts)
	t := batchv1.JobTemplateSpec{
		Spec: batchv1.JobSpec{
			Parallelism:    ptr.To(hosts),
			Completions:    ptr.To(hosts),
			CompletionMode: ptr.To(batchv1.IndexedCompletion),
			// When a host goes, its peers may exit 1 before the disruption is
			// classified. As long as one pod is left the Job has not failed
			// yet, and the disruption decides how it fails.
			BackoffLimit: ptr.To(hosts - 1),
			// Without a container's name init containers and sidecars would match too.
			PodFailurePolicy: s.fatalExits(podFailurePolicy(batchv1.PodFailurePolicyActionFailJob), s.containerNames()...),
			Template:         s.podTemplate(),
		},
	}
	if s.Slice.MultiHost && s.whole() {
		// One slice is one node pool: no two Jobs share one, no Job spans two.
		t.Annotations = map[string]string{jobset.ExclusiveKey: accelerator.LabelNodePool}
	}
	return t
}

// podFailurePolicy says what the disruption of a host does to its Job.
func podFailurePolicy(disrupted batchv1.PodFailurePolicyAction) *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: disrupted,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		}},
	}}}
}

// fatalExits adds the exit codes of containers that fail the run.
func (s Spec) fatalExits(p *batchv1.PodFailurePolicy, containers ...string) *batchv1.PodFailurePolicy {
	if len(s.Restart.FatalExitCodes) == 0 {
		return p
	}
	codes := slices.Sorted(slices.Values(s.Restart.FatalExitCodes))
	for _, name := range containers {
		p.Rules = append(p.Rules, batchv1.PodFailurePolicyRule{
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: ptr.To(name),
				Operator:      batchv1.PodFailurePolicyOnExitCodesOpIn,
				Values:        codes,
			},
		})
	}
	return p
}

func (s Spec) podTemplate() corev1.PodTemplateSpec {
	t := s.basePod()
	t.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.place(&t)
	s.hostNetwork(&t)
	if s.Pathways == nil {
		t.Spec.Containers = s.containers()
		s.addVolumes(&t, t.Spec.Containers, func(Volume) bool { return true })
		return t
	}
	t.Spec.InitContainers, t.Spec.Containers = s.workerContainers()
	s.addVolumes(&t, t.Spec.Containers, func(Volume) bool { return true })
	s.addMounts(t.Spec.InitContainers, func(Volume) bool { return true })
	return t
}

func (s Spec) hostNetwork(t *corev1.PodTemplateSpec) {
	if s.HostNetwork {
		t.Spec.HostNetwork = true
		t.Spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
}

// basePod is what the pods of every replicated job have in common.
func (s Spec) basePod() corev1.PodTemplateSpec {
	grace := DefaultGracePeriod
	if s.GracePeriod != nil {
		grace = *s.GracePeriod
	}
	lost := func(key string) corev1.Toleration {
		return corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: ptr.To(int64(lostHostSeconds)),
		}
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: s.jobLabels(), Annotations: maps.Clone(s.PodAnnotations)},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(grace.Seconds())),
			// As process 1 a program would not hear SIGTERM unless it handles it,
			// and would have to take its orphans: here the pause container does.
			ShareProcessNamespace: ptr.To(true),
			ServiceAccountName:    s.ServiceAccount,
			SchedulerName:         s.SchedulerName,
			Tolerations:           []corev1.Toleration{lost(corev1.TaintNodeNotReady), lost(corev1.TaintNodeUnreachable)},
			Volumes: []corev1.Volume{{
				Name:         volumeShm,
				VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
			}},
		},
	}
}

// containerNames: one a host, except where the generation wants one per NUMA
// node.
func (s Spec) containerNames() []string {
	n := s.containersPerHost()
	if n == 1 {
		return []string{Container}
	}
	var names []string
	for i := range n {
		names = append(names, Container+"-"+strconv.Itoa(i))
	}
	return names
}

func (s Spec) containers() []corev1.Container {
	names := s.containerNames()
	var all []corev1.Container
	for _, name := range names {
		c := s.container(name, s.Image, s.Shell, s.Command, s.Args)
		c.Env, c.EnvFrom = s.env(s.Env), envFrom(s.EnvFrom)
		c.Resources = s.Resources.requirements(int64(s.Slice.ChipsPerHost / len(names)))
		all = append(all, c)
	}
	return all
}

func (s Spec) container(name, image, shell string, command, args []string) corev1.Container {
	command, args = processCommand(s.FirstAttempt > 0, shell, command, args)
	return corev1.Container{
		Name:         name,
		Image:        image,
		Command:      command,
		Args:         args,
		VolumeMounts: []corev1.VolumeMount{{Name: volumeShm, MountPath: "/dev/shm"}},
		// A pod that failed keeps the end of its log in its status, where it
		// outlives the container.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// requirements asks for chips and the rest. Memory and disk are limits too: a
// program that takes more is ended, which counts as a crash. Without a limit
// the host would evict it, which looks like a disruption and restarts the job
// for ever. CPU may be exceeded while others leave it idle.
func (r Resources) requirements(chips int64) corev1.ResourceRequirements {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	if chips > 0 {
		q := *resource.NewQuantity(chips, resource.DecimalSI)
		requests[accelerator.ResourceName], limits[accelerator.ResourceName] = q, q
	}
	if r.CPU != nil {
		requests[corev1.ResourceCPU] = *r.CPU
	}
	for name, q := range map[corev1.ResourceName]*resource.Quantity{corev1.ResourceMemory: r.Memory, corev1.ResourceEphemeralStorage: r.EphemeralStorage} {
		if q != nil {
			requests[name], limits[name] = *q, *q
		}
	}
	var out corev1.ResourceRequirements
	if len(requests) > 0 {
		out.Requests = requests
	}
	if len(limits) > 0 {
		out.Limits = limits
	}
	return out
}

func envFrom(all []EnvSource) []corev1.EnvFromSource {
	var out []corev1.EnvFromSource
	for _, e := range all {
		from := corev1.EnvFromSource{Prefix: e.Prefix}
		var optional *bool
		if e.Optional {
			optional = ptr.To(true)
		}
		if e.Secret != "" {
			from.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: e.Secret}, Optional: optional}
		} else {
			from.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: e.ConfigMap}, Optional: optional}
		}
		out = append(out, from)
	}
	return out
}

// env is ours first, then the user's by name: the order of a map is not stable
// and the object must be.
func (s Spec) env(own map[string]string) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: EnvRunID, Value: s.runID()},
		{Name: EnvAttempt, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.labels['" + LabelRestartAttempt + "']",
		}}},
	}
	if s.FirstAttempt > 0 {
		env = append(env, corev1.EnvVar{Name: EnvFirstAttempt, Value: strconv.Itoa(s.FirstAttempt)})
	}
	if s.OutputDir != "" {
		env = append(env, corev1.EnvVar{Name: EnvOutputDir, Value: strings.TrimRight(s.OutputDir, "/") + "/" + s.runID()})
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		env = append(env, corev1.EnvVar{Name: name, Value: own[name]})
	}
	return env
}

// Hash identifies what the job runs and where. What may change in place
// (labels, annotations, priority, TTL) is not part of it.
func (s Spec) Hash() string {
	s.Labels, s.Annotations, s.Priority, s.TTL = nil, nil, "", nil
	s.RunID = s.runID()
	if len(s.Env) == 0 {
		s.Env = nil
	}
	if len(s.PodAnnotations) == 0 {
		s.PodAnnotations = nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a Spec holds only strings, numbers, lists and maps of them
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])[:16]
}
