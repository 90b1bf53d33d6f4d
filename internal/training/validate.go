package training

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// FieldError is one thing wrong with a Spec. Field is the name of the setting
// in snake_case, as in a Terraform attribute.
type FieldError struct {
	Field   string
	Problem string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// FieldErrors picks the FieldErrors out of what Validate returned.
func FieldErrors(err error) []*FieldError {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return nil
	}
	var out []*FieldError
	for _, e := range joined.Unwrap() {
		var f *FieldError
		if errors.As(e, &f) {
			out = append(out, f)
		}
	}
	return out
}

const (
	maxNameLength = 63  // DNS-1035 labels: job, pod and service names
	podSuffix     = 6   // "-" and five random characters
	maxExitCodes  = 255 // values in one pod failure rule
	// maxAnnotationBytes is the API server's limit for one object.
	maxAnnotationBytes = 256 << 10
)

// MaxNameLength is how long the name of a job may be: the names of its pods
// (<name>-slice-<slice>-<host>-<5 random>) must fit 63 characters.
func MaxNameLength(slices, hosts int) int {
	return maxNameLength - len(fmt.Sprintf("-%s-%d-%d", SliceJob, max(slices-1, 0), max(hosts-1, 0))) - podSuffix
}

// Validate checks offline what the JobSet and Kueue webhooks, the CRD rules
// and the API server would refuse, all problems at once.
func (s Spec) Validate() error {
	var errs []error
	add := func(field, format string, args ...any) {
		errs = append(errs, &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}

	if err := queue.CheckNamespace(s.Namespace); err != nil {
		add("namespace", "%v", err)
	}
	if problems := naming.Job(s.Name); len(problems) > 0 {
		add("name", "%q cannot name a job: %s", s.Name, strings.Join(problems, "; "))
	} else if limit := MaxNameLength(s.Slices, s.Slice.Hosts); len(s.Name) > limit {
		add("name", "%q has %d characters; with %d slices of %d hosts at most %d fit, since pods are called %s-%s-%d-%d-xxxxx and may have %d",
			s.Name, len(s.Name), s.Slices, s.Slice.Hosts, limit, s.Name, SliceJob, max(s.Slices-1, 0), max(s.Slice.Hosts-1, 0), maxNameLength)
	}
	if s.Slices < 1 {
		add("slices", "%d; a job needs at least one slice", s.Slices)
	} else if int64(s.Slices)*int64(s.Slice.Hosts) > math.MaxInt32 {
		add("slices", "%d slices of %d hosts are more pods than a JobSet can count", s.Slices, s.Slice.Hosts)
	}
	if s.Slice.Hosts < 1 {
		add("accelerator", "no accelerator chosen")
	}
	switch {
	case s.Image == "" && s.Pathways != nil && s.Pathways.Headless:
	case strings.TrimSpace(s.Image) == "":
		add("image", "a job needs a container image")
	case s.Image != strings.TrimSpace(s.Image):
		add("image", "%q starts or ends with a space", s.Image)
	case !imageReference.MatchString(s.Image):
		add("image", "%q: %s", s.Image, notAnImage)
	}
	if s.Queue != "" {
		for _, problem := range append(naming.Object(s.Queue), naming.LabelValue(s.Queue)...) {
			add("queue", "%q: %s", s.Queue, problem)
		}
	}
	if s.Priority != "" {
		for _, problem := range append(naming.Object(s.Priority), naming.LabelValue(s.Priority)...) {
			add("priority", "%q: %s", s.Priority, problem)
		}
		if s.Queue == "" {
			add("priority", "only a queued job has a priority: set queue as well")
		}
	}
	if s.ServiceAccount != "" {
		for _, problem := range naming.Object(s.ServiceAccount) {
			add("service_account", "%q: %s", s.ServiceAccount, problem)
		}
	}
	switch {
	case s.FirstAttempt < 0 || s.FirstAttempt > math.MaxInt32:
		add("first_attempt", "%d; want a number from 0", s.FirstAttempt)
	case s.FirstAttempt > 0 && s.Shell == "" && len(s.Command) == 0:
		add("first_attempt", "a job that goes on with a run names its command (or shell): its attempts are counted on from before the program starts, and the image's own command is not known")
	}
	// A run id that is not set is the name, which is checked already.
	for field, value := range map[string]string{"run_id": s.RunID, "owner": s.Owner, "experiment": s.Experiment} {
		for _, problem := range naming.LabelValue(value) {
			add(field, "%q: %s", value, problem)
		}
	}
	s.validateOutput(add)
	s.validateEnv(add)
	s.validateMetadata(add)
	s.validateRestart(add)
	validateProgram(add, "", s.Shell, s.Command, s.Args)
	validateEnvFrom(add, "", s.EnvFrom)
	validateResources(add, "", s.Resources)
	s.validateStorage(add)
	s.validateJobs(add)
	s.validateLife(add)
	s.validatePlacement(add)
	s.validatePathways(add)
	if len(errs) == 0 { // of what is wrong by itself the object says nothing new
		merged, err := Merge(s.render(), s.Overrides)
		if err == nil {
			err = checkObject(merged)
		}
		switch {
		case err != nil && s.Overrides != "":
			add("jobset_overrides", "%v", err)
		case err != nil:
			add("jobs", "%v", err)
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

func (s Spec) validateLife(add report) {
	for field, d := range map[string]*time.Duration{"ttl_after_finished": s.TTL, "termination_grace_period": s.GracePeriod, "max_run_time": s.MaxRunTime} {
		if d != nil && *d >= 0 && *d%time.Second != 0 {
			add(field, "%s; Kubernetes counts whole seconds", *d)
		}
	}
	if s.TTL != nil && (*s.TTL < 0 || s.TTL.Seconds() > math.MaxInt32) {
		add("ttl_after_finished", "%s; it cannot be negative or above %d seconds", *s.TTL, math.MaxInt32)
	}
	if s.GracePeriod != nil && *s.GracePeriod < 0 {
		add("termination_grace_period", "%s; it cannot be negative", *s.GracePeriod)
	}
	if d := s.MaxRunTime; d != nil {
		switch {
		case s.Queue == "":
			add("max_run_time", "Kueue measures it: set queue as well")
		case *d <= 0 || d.Seconds() > math.MaxInt32:
			add("max_run_time", "%s; want between 1 and %d seconds", *d, math.MaxInt32)
		}
	}
	if s.SchedulerName != "" {
		for _, problem := range naming.Object(s.SchedulerName) {
			add("scheduler_name", "%q: %s", s.SchedulerName, problem)
		}
	}
}

func (s Spec) validateEnv(add report) {
	for name := range s.Env {
		for _, problem := range naming.Variable(name) {
			add("env", "%q: %s", name, problem)
		}
		switch name {
		case EnvRunID:
			add("env", "%s is set for every job: use run_id", name)
		case EnvOutputDir:
			add("env", "%s is set from output_dir: use that", name)
		case EnvFirstAttempt:
			add("env", "%s is set from first_attempt: use that", name)
		case EnvAttempt:
			add("env", "%s counts the restarts and cannot be set", name)
		}
	}
}

func (s Spec) validateMetadata(add report) {
	for key, value := range s.Labels {
		for _, problem := range naming.Key(key) {
			add("labels", "key %q: %s", key, problem)
		}
		for _, problem := range naming.LabelValue(value) {
			add("labels", "%s = %q: %s", key, value, problem)
		}
		if hint := reserved(key); hint != "" {
			add("labels", "%s is not free: %s", key, hint)
		}
	}
	for field, annotations := range map[string]map[string]string{"annotations": s.Annotations, "pod_annotations": s.PodAnnotations} {
		size := 0
		for key, value := range annotations {
			size += len(key) + len(value)
			// The API server checks annotation keys in lower case.
			for _, problem := range naming.Key(strings.ToLower(key)) {
				add(field, "key %q: %s", key, problem)
			}
			if hint := reserved(key); hint != "" {
				add(field, "%s is not free: %s", key, hint)
			}
		}
		if size > maxAnnotationBytes {
			add(field, "%d bytes together; Kubernetes allows %d", size, maxAnnotationBytes)
		}
	}
}

// reserved says which setting stands for a label or annotation, or "".
func reserved(key string) string {
	switch key {
	case queue.LabelQueueName:
		return "use queue"
	case queue.LabelPriorityClass:
		return "use priority"
	case LabelOwner:
		return "use owner"
	case LabelExperiment:
		return "use experiment"
	case LabelRunID:
		return "use run_id"
	case labelMaxRunTime:
		return "use max_run_time"
	case AnnotationCancelled:
		return "a cancelled job has it"
	case queue.LabelManagedBy, AnnotationSpecHash, AnnotationAccelerator, AnnotationSlices, AnnotationSpec:
		return "it is written on every job"
	}
	if strings.HasPrefix(key, "jobset.sigs.k8s.io/") {
		return "JobSet writes it"
	}
	return ""
}

func (s Spec) validateRestart(add report) {
	if p := s.Restart.OnPreemption; p != "" && !slices.Contains(OnPreemptions, string(p)) {
		add("restart_policy.on_preemption", "%q; want %s", p, strings.Join(OnPreemptions, ", "))
	}
	if n := s.Restart.MaxRestarts; n < 0 || n > math.MaxInt32 {
		add("restart_policy.max_restarts", "%d; it must be between 0 and %d", n, math.MaxInt32)
	}
	if n := len(s.Restart.FatalExitCodes); n > maxExitCodes {
		add("restart_policy.fatal_exit_codes", "%d codes; Kubernetes allows %d", n, maxExitCodes)
	}
	seen := map[int32]bool{}
	for _, code := range s.Restart.FatalExitCodes {
		switch {
		case code == 0:
			add("restart_policy.fatal_exit_codes", "0 is success and cannot be fatal")
		case code < 0 || code > 255:
			add("restart_policy.fatal_exit_codes", "%d; exit codes are 1 to 255", code)
		case seen[code]:
			add("restart_policy.fatal_exit_codes", "%d is listed twice", code)
		}
		seen[code] = true
	}
}
