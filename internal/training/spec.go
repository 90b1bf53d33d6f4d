// Package training is a training job: from a typed Spec to the JobSet that runs
// it, and from a JobSet and its Kueue Workload back to the status of a Run.
// The provider and tpuctl use the same Spec and Run, so a job applied by one
// and submitted by the other are the same object.
//
// It knows JobSet, Kueue and TPU shapes; it must not know GKE, Terraform or
// the command line.
package training

import (
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// Spec is one training job: the same program on every host of a number of
// equal slices.
type Spec struct {
	Namespace string
	Name      string

	Queue    string // LocalQueue; "" = not queued, started at once
	Priority string // WorkloadPriorityClass; "" = none (0)

	Slice  accelerator.Slice
	Slices int

	Image   string
	Command []string // argv[0]...; empty = the image's own
	Args    []string
	Env     map[string]string

	ServiceAccount string // Kubernetes service account; "" = the namespace's default

	// RunID names the run over all its attempts, and over later jobs that
	// continue it; "" = Name. OutputDir, if set, is handed to the program with
	// the RunID appended.
	RunID     string
	OutputDir string

	Owner       string // who submitted it, as a label value
	Experiment  string
	Labels      map[string]string // further labels of the JobSet
	Annotations map[string]string // further annotations of the JobSet
	// PodAnnotations are for what works on pods: storage drivers, sidecars.
	PodAnnotations map[string]string

	Restart RestartPolicy

	// TTL is how long the finished JobSet is kept; nil = for ever.
	TTL *time.Duration
	// GracePeriod between SIGTERM and SIGKILL; nil = DefaultGracePeriod. Spot
	// hosts get about 15 s whatever it says.
	GracePeriod *time.Duration
}

// RestartPolicy says what a failure costs. Preemption and other disruptions of
// a host always restart the job and are never counted.
type RestartPolicy struct {
	// MaxRestarts is how many crashes are forgiven before the job fails.
	MaxRestarts int
	// FatalExitCodes fail the job at once, from any host.
	FatalExitCodes []int32
}

// DefaultMaxRestarts leaves room for crashes that are really infrastructure:
// when a host goes, peers in other slices may exit before the disruption is
// seen, and that restart is counted.
const DefaultMaxRestarts = 3

// DefaultFatalExitCodes are what a shell or container runtime answers to a
// typo: usage error, not executable, not found. Exit 1 is not among them: an
// uncaught Python exception and a peer's death look the same.
var DefaultFatalExitCodes = []int32{2, 126, 127}

// DefaultRestart is the policy of a job that names none.
func DefaultRestart() RestartPolicy {
	return RestartPolicy{MaxRestarts: DefaultMaxRestarts, FatalExitCodes: DefaultFatalExitCodes}
}

// DefaultGracePeriod is Kubernetes' own.
const DefaultGracePeriod = 30 * time.Second

// Names inside the JobSet.
const (
	// SliceJob is the replicated job: one child Job per slice. Pod names carry
	// it, so it is short.
	SliceJob = "slice"
	// Container runs the user's program. Where a host's chips are shared by
	// several containers they are named Container-0, Container-1, ...
	Container = "train"

	ruleDisruption = "disruption"
	ruleFatalExit  = "fatalExitCode"
)

// Environment of the program.
const (
	EnvRunID     = "RUN_ID"
	EnvAttempt   = "ATTEMPT"
	EnvOutputDir = "OUTPUT_DIR"
)

// Labels and annotations of our own, on the JobSet and on its pods.
const (
	domain = "tpu-training.github.io/"

	LabelOwner      = domain + "owner"
	LabelExperiment = domain + "experiment"
	LabelRunID      = domain + "run-id"
	// AnnotationSpecHash identifies the Spec that made a JobSet: a job left by
	// an interrupted apply is recognised by it.
	AnnotationSpecHash = domain + "spec-hash"
	// AnnotationAccelerator is the name that the user chose for the shape.
	AnnotationAccelerator = domain + "accelerator"
)

// LabelRestartAttempt is JobSet's, on Jobs and pods: 0 for the first attempt.
const LabelRestartAttempt = "jobset.sigs.k8s.io/restart-attempt"

// runID is RunID or its default.
func (s Spec) runID() string {
	if s.RunID != "" {
		return s.RunID
	}
	return s.Name
}

// jobLabels are the labels that identify the run, on the JobSet and its pods.
func (s Spec) jobLabels() map[string]string {
	labels := map[string]string{
		queue.LabelManagedBy: queue.ManagedBy,
		LabelRunID:           s.runID(),
	}
	if s.Owner != "" {
		labels[LabelOwner] = s.Owner
	}
	if s.Experiment != "" {
		labels[LabelExperiment] = s.Experiment
	}
	return labels
}
