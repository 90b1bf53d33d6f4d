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

// JobSet renders the job. Everything that the JobSet webhook and the API
// server would default is written out, so that the stored object differs from
// this one only by what Kueue adds. spec.suspend is left out: on a queued job
// it is Kueue's, whose webhook sets it on creation.
func (s Spec) JobSet() *jobset.JobSet {
	labels := maps.Clone(s.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, s.jobLabels())
	if s.Queue != "" {
		labels[queue.LabelQueueName] = s.Queue
	}
	if s.Priority != "" {
		labels[queue.LabelPriorityClass] = s.Priority
	}
	annotations := maps.Clone(s.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationSpecHash] = s.Hash()
	annotations[AnnotationAccelerator] = s.Slice.Name

	js := &jobset.JobSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: jobset.GroupVersion.String(), Kind: "JobSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: labels, Annotations: annotations},
		Spec: jobset.JobSetSpec{
			ReplicatedJobs: []jobset.ReplicatedJob{{
				Name:      SliceJob,
				GroupName: "default",
				Replicas:  int32(s.Slices),
				Template:  s.jobTemplate(),
			}},
			Network: &jobset.Network{
				EnableDNSHostnames:       ptr.To(true),
				PublishNotReadyAddresses: ptr.To(true),
			},
			SuccessPolicy: &jobset.SuccessPolicy{Operator: jobset.OperatorAll},
			StartupPolicy: &jobset.StartupPolicy{StartupPolicyOrder: jobset.AnyOrder},
			FailurePolicy: s.failurePolicy(),
		},
	}
	if s.TTL != nil {
		js.Spec.TTLSecondsAfterFinished = ptr.To(int32(s.TTL.Seconds()))
	}
	return js
}

// failurePolicy tells a disruption (restart, not counted) from a fatal exit
// code (fail at once); what matches neither restarts and is counted. JobSet
// sees both as a Job that failed by its pod failure policy, and only the
// message tells them apart: a host's condition is named in it.
func (s Spec) failurePolicy() *jobset.FailurePolicy {
	return &jobset.FailurePolicy{
		MaxRestarts:     int32(s.Restart.MaxRestarts),
		RestartStrategy: jobset.Recreate,
		Rules: []jobset.FailurePolicyRule{
			{
				Name:                        ruleDisruption,
				Action:                      jobset.RestartJobSetAndIgnoreMaxRestarts,
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
			BackoffLimit:     ptr.To(hosts - 1),
			PodFailurePolicy: s.podFailurePolicy(),
			Template:         s.podTemplate(),
		},
	}
	if s.Slice.MultiHost {
		// One slice is one node pool: no two Jobs share one, no Job spans two.
		t.Annotations = map[string]string{jobset.ExclusiveKey: accelerator.LabelNodePool}
	}
	return t
}

func (s Spec) podFailurePolicy() *batchv1.PodFailurePolicy {
	p := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionFailJob,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		}},
	}}}
	if len(s.Restart.FatalExitCodes) == 0 {
		return p
	}
	codes := slices.Sorted(slices.Values(s.Restart.FatalExitCodes))
	// Without a container's name init containers and sidecars would match too.
	for _, name := range s.containerNames() {
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
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To(int64(grace.Seconds())),
			ServiceAccountName:            s.ServiceAccount,
			NodeSelector:                  s.Slice.NodeLabels(),
			Tolerations: []corev1.Toleration{
				{Key: accelerator.TaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
				lost(corev1.TaintNodeNotReady),
				lost(corev1.TaintNodeUnreachable),
			},
			Containers: s.containers(),
			Volumes: []corev1.Volume{{
				Name:         "shm",
				VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
			}},
		},
	}
}

// containerNames: one a host, except where the generation wants one per NUMA
// node.
func (s Spec) containerNames() []string {
	if s.Slice.ContainersPerHost <= 1 {
		return []string{Container}
	}
	var names []string
	for i := range s.Slice.ContainersPerHost {
		names = append(names, Container+"-"+strconv.Itoa(i))
	}
	return names
}

func (s Spec) containers() []corev1.Container {
	names := s.containerNames()
	chips := corev1.ResourceList{
		accelerator.ResourceName: *resource.NewQuantity(int64(s.Slice.ChipsPerHost/len(names)), resource.DecimalSI),
	}
	var all []corev1.Container
	for _, name := range names {
		all = append(all, corev1.Container{
			Name:         name,
			Image:        s.Image,
			Command:      s.Command,
			Args:         s.Args,
			Env:          s.env(),
			Resources:    corev1.ResourceRequirements{Limits: chips, Requests: chips},
			VolumeMounts: []corev1.VolumeMount{{Name: "shm", MountPath: "/dev/shm"}},
		})
	}
	return all
}

// env is ours first, then the user's by name: the order of a map is not stable
// and the object must be.
func (s Spec) env() []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: EnvRunID, Value: s.runID()},
		{Name: EnvAttempt, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.labels['" + LabelRestartAttempt + "']",
		}}},
	}
	if s.OutputDir != "" {
		env = append(env, corev1.EnvVar{Name: EnvOutputDir, Value: strings.TrimRight(s.OutputDir, "/") + "/" + s.runID()})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, corev1.EnvVar{Name: name, Value: s.Env[name]})
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
