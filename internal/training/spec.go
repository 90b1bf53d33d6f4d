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

	"k8s.io/apimachinery/pkg/api/resource"

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
	// Placement narrows down which slices of the kind. ContainersPerHost share a
	// host's chips; 0 = as many as the generation wants.
	Placement         Placement `json:",omitzero"`
	ContainersPerHost int       `json:",omitempty"`

	Image   string
	Command []string // argv[0]...; empty = the image's own
	Args    []string
	Shell   string            `json:",omitempty"` // a script instead of Command and Args
	Env     map[string]string // by name
	EnvFrom []EnvSource       `json:",omitempty"`

	// Files are small files, by absolute path, and Volumes storage. Every
	// container has the files; further jobs have the volumes that do not need
	// a TPU host.
	Files     map[string]string `json:",omitempty"`
	Volumes   []Volume          `json:",omitempty"`
	Resources Resources         `json:",omitzero"` // of each container

	// Jobs are the further jobs, and DependsOn what of them must be there
	// before the main job starts.
	Jobs      []Job        `json:",omitempty"`
	DependsOn []Dependency `json:",omitempty"`

	// Pathways: the program runs once, in a head, and what is said of it here
	// holds there.
	Pathways *Pathways `json:",omitempty"`

	ServiceAccount string // Kubernetes service account; "" = the namespace's default

	// RunID names the run over all its attempts, and over later jobs that
	// continue it; "" = Name. OutputDir, if set, is handed to the program with
	// the RunID appended.
	RunID     string
	OutputDir string
	// FirstAttempt is the ATTEMPT that a job begins with which goes on with a
	// run: those of the jobs before it come before.
	FirstAttempt int `json:",omitempty"`

	Owner       string // who submitted it, as a label value
	Experiment  string
	Labels      map[string]string // further labels of the JobSet
	Annotations map[string]string // further annotations of the JobSet
	// PodAnnotations are for what works on pods: storage drivers, sidecars.
	PodAnnotations map[string]string

	Restart RestartPolicy

	// MaxRunTime ends a run that was admitted for longer, as failed; nil = none.
	MaxRunTime    *time.Duration `json:",omitempty"`
	SchedulerName string         `json:",omitempty"`
	HostNetwork   bool           `json:",omitempty"`

	// Overrides are merged into the rendered JobSet; see Merge. JSON, or "".
	Overrides string `json:",omitempty"`

	// Held: submit it without starting it; SetActive starts it.
	Held bool `json:"-"`

	// TTL is how long the finished JobSet is kept; nil = for ever.
	TTL *time.Duration
	// GracePeriod between SIGTERM and SIGKILL; nil = DefaultGracePeriod. Spot
	// hosts get about 15 s whatever it says.
	GracePeriod *time.Duration
}

// Resources are what each container asks for beside its chips; nil = nothing.
type Resources struct {
	CPU              *resource.Quantity `json:",omitempty"`
	Memory           *resource.Quantity `json:",omitempty"`
	EphemeralStorage *resource.Quantity `json:",omitempty"`
}

// EnvSource takes every key of a Secret or a ConfigMap of the job's namespace
// into the environment. One of the two is set.
type EnvSource struct {
	Secret    string `json:",omitempty"`
	ConfigMap string `json:",omitempty"`
	Prefix    string `json:",omitempty"` // before each name
	Optional  bool   `json:",omitempty"` // it need not exist
}

// OnPreemption says what a disruption of a host (preemption, eviction, loss)
// does.
type OnPreemption string

// What a disruption can do. "" is PreemptionRestarts.
const (
	PreemptionRestarts OnPreemption = "restart" // the job restarts, and it is not counted
	PreemptionCounts   OnPreemption = "count"   // it restarts and is counted, as a crash is
	PreemptionFails    OnPreemption = "fail"    // the job fails
)

// OnPreemptions lists them, the default first.
var OnPreemptions = []string{string(PreemptionRestarts), string(PreemptionCounts), string(PreemptionFails)}

// RestartPolicy says what a failure costs. Preemption and other disruptions of
// a host restart the job and are not counted, unless OnPreemption says so.
type RestartPolicy struct {
	// MaxRestarts is how many crashes are forgiven before the job fails.
	MaxRestarts int
	// FatalExitCodes fail the job at once, from any host.
	FatalExitCodes []int32
	OnPreemption   OnPreemption `json:",omitempty"`
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
	ruleFurtherJob = "furtherJob"

	volumeShm   = "shm"
	volumeFiles = "files"
)

// Environment of the program.
const (
	EnvRunID     = "RUN_ID"
	EnvAttempt   = "ATTEMPT"
	EnvOutputDir = "OUTPUT_DIR"
	// EnvFirstAttempt is there in a job that goes on with a run.
	EnvFirstAttempt = "FIRST_ATTEMPT"
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
	// AnnotationSlices is how many slices the job has, for lists that read no
	// more than metadata.
	AnnotationSlices = domain + "slices"
	// AnnotationCancelled is when the job was cancelled (RFC 3339).
	AnnotationCancelled = domain + "cancelled"
	// AnnotationSpec is the Spec itself as JSON, for reading a job back: an
	// import, or a job like it.
	AnnotationSpec = domain + "spec"
)

// LabelRestartAttempt is JobSet's, on Jobs and pods: 0 for the first attempt.
const LabelRestartAttempt = "jobset.sigs.k8s.io/restart-attempt"

// labelMaxRunTime is Kueue's: seconds of execution after which it deactivates
// the Workload.
const labelMaxRunTime = "kueue.x-k8s.io/max-exec-time-seconds"

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
