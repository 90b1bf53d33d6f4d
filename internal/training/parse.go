package training

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// FromJobSet is the Spec that a JobSet was made from, as far as it shows: for
// importing a job, and for submitting one like it. What others than this
// project put into a JobSet and Spec has no name for is left out.
func FromJobSet(js *jobset.JobSet) Spec {
	s, ok := recorded(js)
	if !ok {
		return read(js)
	}
	// What may have changed since is as it is now.
	now := read(js)
	s.Priority, s.TTL, s.Labels, s.Annotations = now.Priority, now.TTL, now.Labels, now.Annotations
	return s
}

// maxRecord bounds the annotation with the Spec: all annotations of an object
// together have 256 KiB. A larger job is read back as far as it shows.
const maxRecord = 128 << 10

// record is the Spec as FromJobSet reads it back, where js, rendered from it,
// does not show it all by itself; "" if it does, or if it is too large. What
// may change in place is not part of it, nor what the JobSet's name, the
// accelerator's annotation and the ConfigMap of the files say.
func (s Spec) record(js *jobset.JobSet) string {
	s.Labels, s.Annotations, s.Priority, s.TTL, s.Files = nil, nil, "", nil, nil
	if read(js).Hash() == s.Hash() {
		return ""
	}
	s.Slice = accelerator.Slice{}
	if s.RunID == s.Name {
		s.RunID = ""
	}
	b, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return ""
	}
	delete(fields, "Slice")
	for name, value := range fields {
		if text := string(value); text == "null" || text == `""` {
			delete(fields, name)
		}
	}
	if b, err = json.Marshal(fields); err != nil || len(b) > maxRecord {
		return ""
	}
	return string(b)
}

func recorded(js *jobset.JobSet) (s Spec, ok bool) {
	text := js.Annotations[AnnotationSpec]
	if text == "" || json.Unmarshal([]byte(text), &s) != nil || s.Name != js.Name || s.Namespace != js.Namespace {
		return Spec{}, false
	}
	rj := main(js)
	if rj == nil {
		return Spec{}, false
	}
	s.Slice, ok = sliceOf(js.Annotations[AnnotationAccelerator], rj)
	return s, ok
}

// read is FromJobSet for a JobSet that does not say its Spec.
func read(js *jobset.JobSet) Spec {
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
		case e.Name == EnvRunID || e.Name == EnvFirstAttempt || e.ValueFrom != nil:
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

// Unreserved are the labels or annotations that are a user's own: neither this
// project's nor Kubernetes'.
func Unreserved(m map[string]string) map[string]string { return unreserved(m) }

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
