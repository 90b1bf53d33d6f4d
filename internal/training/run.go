package training

import (
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// State is where a run stands.
type State string

// The states of a run, in the usual order.
const (
	Pending    State = "Pending"    // waits for quota or an admission check
	Admitted   State = "Admitted"   // quota is reserved; no pod exists yet
	Starting   State = "Starting"   // pods exist; not every host is ready
	Running    State = "Running"    // every host is ready or done
	Restarting State = "Restarting" // after a failure or a disruption, until every host is ready again
	Suspended  State = "Suspended"  // by a user, or deactivated by Kueue
	Succeeded  State = "Succeeded"
	Failed     State = "Failed"
	Gone       State = "GONE" // the object is gone and its result not known
)

// States lists every state.
var States = []State{Pending, Admitted, Starting, Running, Restarting, Suspended, Succeeded, Failed, Gone}

// Finished tells whether the run will not change any more.
func (s State) Finished() bool { return s == Succeeded || s == Failed || s == Gone }

// Reasons that are ours; others are Kueue's or JobSet's own, as they are.
const (
	ReasonNotQueued       = "NotSeenByKueue"  // the Workload does not exist yet; Get looks why
	ReasonUserSuspended   = "SuspendedByUser" // Workload.spec.active is false
	ReasonCancelled       = "Cancelled"       // so too, and for good; see Cancel
	ReasonTimedOut        = "MaximumExecutionTimeExceeded"
	ReasonFatalExitCode   = "FatalExitCode"
	ReasonTooManyRestarts = "TooManyRestarts"
	ReasonDisruption      = "Disruption"
	ReasonFurtherJob      = "FurtherJobFailed" // one whose failure fails the run
	ReasonCrash           = "Crash"
	ReasonNotFound        = "NotFound"
)

// Run is a job as it stands: one reading of its JobSet and Workload.
type Run struct {
	Namespace, Name, UID string
	Owner, Experiment    string
	RunID                string

	Queue        string // LocalQueue; "" = not queued
	ClusterQueue string // that admitted it
	Priority     string // class name
	Flavor       string // that it was admitted to

	Accelerator   string // type name; "" when the pods ask for no known shape
	Slice         accelerator.Slice
	Slices        int
	HostsPerSlice int

	Parts []Part // the JobSet's replicated jobs, in its order

	State    State
	Deleting bool   // somebody asked for its deletion
	Reason   string // one CamelCase word, "" while all is well
	Message  string // in full sentences, as the controller said it
	// Hindrance is the reason why its pods are not made or do not start, found
	// by Get; "" while nothing is known to be in their way.
	Hindrance string

	HostsWanted, HostsReady, HostsDone int

	// ProxyAddress is where a Pathways job takes clients; "" for other jobs.
	ProxyAddress string

	// Failure is filled by Get for a failed run whose pods are still there.
	Failure *Failure

	Restarts        int // all of them
	CountedRestarts int // those that MaxRestarts limits
	MaxRestarts     int

	// Zero when not reached (or not known any more).
	Created, AdmittedAt, Started, Finished time.Time

	Conditions []Condition // of the Workload, then of the JobSet
	// SliceRuns is filled by Get, not by List: it takes the child Jobs.
	SliceRuns []SliceRun

	// Labels and Annotations of the JobSet.
	Labels, Annotations map[string]string
	TTL                 *time.Duration
}

// Over tells whether nothing more will come of the run: it has finished, or was
// cancelled.
func (r Run) Over() bool {
	return r.State.Finished() || r.State == Suspended && r.Reason == ReasonCancelled
}

// Chips is what the run occupies when admitted.
func (r Run) Chips() int { return r.Slices * r.Slice.Chips }

// Condition is a condition of the JobSet or its Workload.
type Condition struct {
	Of              string // "Workload" or "JobSet"
	Type            string
	Status          bool
	Reason, Message string
	Since           time.Time
}

// Part is a replicated job of a run.
type Part struct {
	Name string
	Pods int  // of each of its Jobs: hosts of a slice
	Main bool // it has the slices
}

// SliceRun is one slice of a run.
type SliceRun struct {
	Index                              int
	State                              State
	NodePool                           string // "" until its pods are placed
	HostsWanted, HostsReady, HostsDone int
	HostsFailed                        int // pods that failed in this attempt
	Message                            string
}
