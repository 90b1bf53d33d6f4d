package jobstatus

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// run is a job as both data sources show it.
type run struct {
	ID          string            `tfsdk:"id"`
	Namespace   string            `tfsdk:"namespace"`
	Name        string            `tfsdk:"name"`
	UID         string            `tfsdk:"uid"`
	RunID       string            `tfsdk:"run_id"`
	Owner       string            `tfsdk:"owner"`
	Experiment  string            `tfsdk:"experiment"`
	Labels      map[string]string `tfsdk:"labels"`
	Queue       string            `tfsdk:"queue"`
	Cluster     string            `tfsdk:"cluster_queue"`
	Flavor      string            `tfsdk:"flavor"`
	Priority    string            `tfsdk:"priority"`
	Accelerator string            `tfsdk:"accelerator"`
	Slices      int               `tfsdk:"slices"`
	Chips       int               `tfsdk:"chips"`

	Status          string `tfsdk:"status"`
	Reason          string `tfsdk:"reason"`
	Message         string `tfsdk:"message"`
	Finished        bool   `tfsdk:"finished"`
	HostsWanted     int    `tfsdk:"hosts_wanted"`
	HostsReady      int    `tfsdk:"hosts_ready"`
	HostsDone       int    `tfsdk:"hosts_done"`
	Restarts        int    `tfsdk:"restarts"`
	CountedRestarts int    `tfsdk:"counted_restarts"`
	MaxRestarts     int    `tfsdk:"max_restarts"`

	Proxy      string       `tfsdk:"proxy_address"`
	CreatedAt  types.String `tfsdk:"created_at"`
	AdmittedAt types.String `tfsdk:"admitted_at"`
	StartedAt  types.String `tfsdk:"started_at"`
	FinishedAt types.String `tfsdk:"finished_at"`
}

// detail is what one job's status has besides.
type detail struct {
	Job types.String `tfsdk:"job"`
	run
	Conditions []condition `tfsdk:"conditions"`
	SliceRuns  []sliceRun  `tfsdk:"slice_runs"`
}

type condition struct {
	Of      string       `tfsdk:"of"`
	Type    string       `tfsdk:"type"`
	Status  bool         `tfsdk:"status"`
	Reason  string       `tfsdk:"reason"`
	Message string       `tfsdk:"message"`
	Since   types.String `tfsdk:"since"`
}

type sliceRun struct {
	Index       int    `tfsdk:"index"`
	Status      string `tfsdk:"status"`
	NodePool    string `tfsdk:"node_pool"`
	HostsWanted int    `tfsdk:"hosts_wanted"`
	HostsReady  int    `tfsdk:"hosts_ready"`
	HostsDone   int    `tfsdk:"hosts_done"`
	HostsFailed int    `tfsdk:"hosts_failed"`
	Message     string `tfsdk:"message"`
}

func shown(cluster string, r training.Run) run {
	labels := r.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return run{
		ID: cluster + "/namespaces/" + r.Namespace + "/jobsets/" + r.Name, Namespace: r.Namespace, Name: r.Name, UID: r.UID, RunID: r.RunID,
		Owner: r.Owner, Experiment: r.Experiment, Labels: labels, Queue: r.Queue, Cluster: r.ClusterQueue, Flavor: r.Flavor, Priority: r.Priority,
		Accelerator: r.Accelerator, Slices: r.Slices, Chips: r.Chips(),
		Status: string(r.State), Reason: r.Reason, Message: r.Message, Finished: r.State.Finished(),
		HostsWanted: r.HostsWanted, HostsReady: r.HostsReady, HostsDone: r.HostsDone,
		Restarts: r.Restarts, CountedRestarts: r.CountedRestarts, MaxRestarts: r.MaxRestarts, Proxy: r.ProxyAddress,
		CreatedAt: stamp(r.Created), AdmittedAt: stamp(r.AdmittedAt), StartedAt: stamp(r.Started), FinishedAt: stamp(r.Finished),
	}
}

func (d *detail) fill(cluster string, r training.Run) {
	d.run = shown(cluster, r)
	d.Conditions, d.SliceRuns = []condition{}, []sliceRun{}
	for _, c := range r.Conditions {
		d.Conditions = append(d.Conditions, condition{Of: c.Of, Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, Since: stamp(c.Since)})
	}
	for _, s := range r.SliceRuns {
		d.SliceRuns = append(d.SliceRuns, sliceRun{Index: s.Index, Status: string(s.State), NodePool: s.NodePool, HostsWanted: s.HostsWanted,
			HostsReady: s.HostsReady, HostsDone: s.HostsDone, HostsFailed: s.HostsFailed, Message: s.Message})
	}
}

func stamp(t time.Time) types.String {
	if t.IsZero() {
		return types.StringNull()
	}
	return types.StringValue(t.UTC().Format(time.RFC3339))
}
