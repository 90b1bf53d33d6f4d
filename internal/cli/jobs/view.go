package jobs

import (
	"fmt"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// runView is a run as json and yaml show it. Keys are ours to keep stable.
type runView struct {
	Name         string            `json:"name"`
	Namespace    string            `json:"namespace"`
	UID          string            `json:"uid"`
	State        training.State    `json:"state"`
	Reason       string            `json:"reason,omitempty"`
	Message      string            `json:"message,omitempty"`
	Owner        string            `json:"owner,omitempty"`
	Experiment   string            `json:"experiment,omitempty"`
	RunID        string            `json:"run_id,omitempty"`
	Accelerator  string            `json:"accelerator,omitempty"`
	Topology     string            `json:"topology,omitempty"`
	Slices       int               `json:"slices"`
	Chips        int               `json:"chips"`
	Hosts        hostsView         `json:"hosts"`
	Queue        string            `json:"queue,omitempty"`
	ClusterQueue string            `json:"cluster_queue,omitempty"`
	Flavor       string            `json:"flavor,omitempty"`
	Priority     string            `json:"priority,omitempty"`
	ProxyAddress string            `json:"proxy_address,omitempty"`
	Restarts     restartsView      `json:"restarts"`
	Times        timesView         `json:"times"`
	SliceRuns    []sliceView       `json:"slice_status,omitempty"`
	Conditions   []conditionView   `json:"conditions,omitempty"`
	Note         string            `json:"note,omitempty"`
	Tags         []string          `json:"tags,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"` // that users gave it, without the note
	Console      string            `json:"console,omitempty"`     // where Google's console shows its logs
}

type hostsView struct {
	Wanted int `json:"wanted"`
	Ready  int `json:"ready"`
	Done   int `json:"done"`
}

type restartsView struct {
	Total   int `json:"total"`
	Counted int `json:"counted"` // those that max limits
	Max     int `json:"max"`
}

type timesView struct {
	Created  *time.Time `json:"created,omitempty"`
	Admitted *time.Time `json:"admitted,omitempty"`
	Started  *time.Time `json:"started,omitempty"`
	Finished *time.Time `json:"finished,omitempty"`
}

type sliceView struct {
	Index    int            `json:"index"`
	State    training.State `json:"state"`
	NodePool string         `json:"node_pool,omitempty"`
	Hosts    hostsView      `json:"hosts"`
	Failed   int            `json:"failed"`
	Message  string         `json:"message,omitempty"`
}

type conditionView struct {
	Of      string    `json:"of"`
	Type    string    `json:"type"`
	Status  bool      `json:"status"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// view converts a run. Conditions and slices are details of one run.
func view(r training.Run, details bool) runView {
	v := runView{
		Name: r.Name, Namespace: r.Namespace, UID: r.UID,
		State: r.State, Reason: r.Reason, Message: r.Message,
		Owner: r.Owner, Experiment: r.Experiment, RunID: r.RunID,
		Accelerator: r.Accelerator, Topology: r.Slice.Topology.String(), Slices: r.Slices, Chips: r.Chips(),
		Hosts: hostsView{r.HostsWanted, r.HostsReady, r.HostsDone},
		Queue: r.Queue, ClusterQueue: r.ClusterQueue, Flavor: r.Flavor, Priority: r.Priority, ProxyAddress: r.ProxyAddress,
		Restarts: restartsView{r.Restarts, r.CountedRestarts, r.MaxRestarts},
		Times:    timesView{utc(r.Created), utc(r.AdmittedAt), utc(r.Started), utc(r.Finished)},
		Labels:   r.Labels,
		Note:     r.Annotations[jobfile.AnnotationNote], Tags: jobfile.TagsOf(r.Labels), Annotations: annotations(r),
	}
	if !details {
		return v
	}
	for _, s := range r.SliceRuns {
		v.SliceRuns = append(v.SliceRuns, sliceView{s.Index, s.State, s.NodePool, hostsView{s.HostsWanted, s.HostsReady, s.HostsDone}, s.HostsFailed, s.Message})
	}
	for _, c := range r.Conditions {
		v.Conditions = append(v.Conditions, conditionView{c.Of, c.Type, c.Status, c.Reason, c.Message, c.Since.UTC()})
	}
	return v
}

// annotations are those that somebody gave the job, without its note.
func annotations(r training.Run) map[string]string {
	own := training.Unreserved(r.Annotations)
	delete(own, jobfile.AnnotationNote)
	return own
}

func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// shape is "2 x v5litepod-16".
func shape(r training.Run) string {
	name := r.Accelerator
	if name == "" {
		name = "?"
	}
	return fmt.Sprintf("%d x %s", r.Slices, name)
}

// hosts is "ready/wanted"; hosts that are done were ready.
func hosts(ready, done, wanted int) string {
	return fmt.Sprintf("%d/%d", min(ready+done, wanted), wanted)
}
