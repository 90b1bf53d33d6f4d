package training

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// FromJobSet is the Spec that a JobSet was made from, as far as it shows: for
// importing a job, and for submitting one like it. What others than this
// project put into a JobSet and Spec has no name for is left out.
func FromJobSet(js *jobset.JobSet) Spec {
	s := Spec{
		Namespace:   js.Namespace,
		Name:        js.Name,
		Queue:       js.Labels[queue.LabelQueueName],
		Priority:    js.Labels[queue.LabelPriorityClass],
		Owner:       js.Labels[LabelOwner],
		Experiment:  js.Labels[LabelExperiment],
		RunID:       js.Labels[LabelRunID],
		Labels:      unreserved(js.Labels),
		Annotations: unreserved(js.Annotations),
	}
	if t := js.Spec.TTLSecondsAfterFinished; t != nil {
		s.TTL = ptr.To(time.Duration(*t) * time.Second)
	}
	if p := js.Spec.FailurePolicy; p != nil {
		s.Restart.MaxRestarts = int(p.MaxRestarts)
	}
	rj := main(js)
	if rj == nil {
		return s
	}
	s.Slices = int(rj.Replicas)
	s.Slice, _ = sliceOf(js.Annotations[AnnotationAccelerator], rj)
	s.Restart.FatalExitCodes = fatalCodes(rj.Template.Spec.PodFailurePolicy)
	s.PodAnnotations = unreserved(rj.Template.Spec.Template.Annotations)
	pod := rj.Template.Spec.Template.Spec
	s.ServiceAccount = pod.ServiceAccountName
	if g := pod.TerminationGracePeriodSeconds; g != nil && time.Duration(*g)*time.Second != DefaultGracePeriod {
		s.GracePeriod = ptr.To(time.Duration(*g) * time.Second)
	}
	if len(pod.Containers) == 0 {
		return s
	}
	c := pod.Containers[0]
	s.Image, s.Command, s.Args = c.Image, c.Command, c.Args
	for _, e := range c.Env {
		switch {
		case e.Name == EnvRunID || e.ValueFrom != nil:
		case e.Name == EnvOutputDir:
			s.OutputDir = strings.TrimSuffix(e.Value, "/"+s.runID())
		default:
			if s.Env == nil {
				s.Env = map[string]string{}
			}
			s.Env[e.Name] = e.Value
		}
	}
	return s
}

// unreserved leaves out what the builder, JobSet, Kueue and kubectl write.
func unreserved(m map[string]string) map[string]string {
	var out map[string]string
	for key, value := range m {
		domain, _, qualified := strings.Cut(key, "/")
		foreign := qualified && (domain == "kueue.x-k8s.io" || domain == "kubectl.kubernetes.io" || strings.HasSuffix(domain, "jobset.sigs.k8s.io"))
		if foreign || reserved(key) != "" {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	return out
}

func fatalCodes(p *batchv1.PodFailurePolicy) []int32 {
	if p == nil {
		return nil
	}
	for _, rule := range p.Rules {
		if rule.Action == batchv1.PodFailurePolicyActionFailJob && rule.OnExitCodes != nil && rule.OnExitCodes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn {
			return slices.Clone(rule.OnExitCodes.Values)
		}
	}
	return nil
}
