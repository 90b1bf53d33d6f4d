package queuestatus

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	kq "github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

type model struct {
	Queue        types.String `tfsdk:"queue"`
	Status       string       `tfsdk:"status"`
	Message      string       `tfsdk:"message"`
	Cohort       string       `tfsdk:"cohort"`
	Share        int64        `tfsdk:"weighted_share"`
	Flavors      []flavor     `tfsdk:"flavors"`
	Resources    []host       `tfsdk:"resources"`
	Pending      []waiting    `tfsdk:"pending"`
	PendingCount int64        `tfsdk:"pending_count"`
	PendingOrder string       `tfsdk:"pending_order"`
	Admitted     []running    `tfsdk:"admitted"`
}

type flavor struct {
	Name           string `tfsdk:"name"`
	Accelerator    string `tfsdk:"accelerator"`
	Slices         int64  `tfsdk:"slices"`
	UsedSlices     int64  `tfsdk:"used_slices"`
	BorrowedSlices int64  `tfsdk:"borrowed_slices"`
	Chips          int64  `tfsdk:"chips"`
	UsedChips      int64  `tfsdk:"used_chips"`
	BorrowedChips  int64  `tfsdk:"borrowed_chips"`
}

type host struct {
	Flavor   string `tfsdk:"flavor"`
	Name     string `tfsdk:"name"`
	Quota    string `tfsdk:"quota"`
	Used     string `tfsdk:"used"`
	Borrowed string `tfsdk:"borrowed"`
}

type waiting struct {
	Position      int64  `tfsdk:"position"`
	Namespace     string `tfsdk:"namespace"`
	Name          string `tfsdk:"name"`
	Kind          string `tfsdk:"kind"`
	Workload      string `tfsdk:"workload"`
	Priority      int64  `tfsdk:"priority"`
	PriorityClass string `tfsdk:"priority_class"`
	Slices        int64  `tfsdk:"slices"`
	Chips         int64  `tfsdk:"chips"`
	Created       string `tfsdk:"created"`
	Reason        string `tfsdk:"reason"`
	Message       string `tfsdk:"message"`
}

type running struct {
	Namespace     string `tfsdk:"namespace"`
	Name          string `tfsdk:"name"`
	Kind          string `tfsdk:"kind"`
	Workload      string `tfsdk:"workload"`
	Priority      int64  `tfsdk:"priority"`
	PriorityClass string `tfsdk:"priority_class"`
	Slices        int64  `tfsdk:"slices"`
	Chips         int64  `tfsdk:"chips"`
	Created       string `tfsdk:"created"`
	Reason        string `tfsdk:"reason"`
	Message       string `tfsdk:"message"`
	Flavor        string `tfsdk:"flavor"`
	Admitted      string `tfsdk:"admitted"`
}

// fill takes over what the cluster says. Quota that a job holds while it waits
// for an admission check is used: nobody else gets it.
func (m *model) fill(s kq.Status) {
	m.Status, m.Message, m.Cohort, m.Share = kueue.ClusterQueueActive, s.Message, s.Cohort, s.Share
	if !s.Active {
		m.Status = s.Reason
	}
	m.PendingCount, m.PendingOrder = int64(len(s.Pending)), "Estimate"
	if s.Ordered {
		m.PendingOrder = "Kueue"
	}
	m.Flavors, m.Resources, m.Pending, m.Admitted = []flavor{}, []host{}, []waiting{}, []running{}
	for _, f := range s.Flavors {
		m.Flavors = append(m.Flavors, flavor{
			Name: f.Name, Accelerator: f.Slice.Name,
			Slices: f.Slices(f.Quota), UsedSlices: f.Slices(f.Reserved), BorrowedSlices: f.Slices(f.Borrowed),
			Chips: f.Quota, UsedChips: f.Reserved, BorrowedChips: f.Borrowed,
		})
	}
	for i := range s.Hosts {
		h := &s.Hosts[i]
		m.Resources = append(m.Resources, host{h.Flavor, h.Resource, h.Quota.String(), h.Reserved.String(), h.Borrowed.String()})
	}
	for _, j := range s.Pending {
		m.Pending = append(m.Pending, waiting{
			Position: int64(j.Position), Namespace: j.Namespace, Name: j.Name, Kind: j.Kind, Workload: j.Workload,
			Priority: int64(j.Priority), PriorityClass: j.PriorityClass, Slices: j.Slices, Chips: j.Chips,
			Created: when(j.Created), Reason: j.Reason, Message: j.Message,
		})
	}
	for _, j := range s.Admitted {
		m.Admitted = append(m.Admitted, running{
			Namespace: j.Namespace, Name: j.Name, Kind: j.Kind, Workload: j.Workload,
			Priority: int64(j.Priority), PriorityClass: j.PriorityClass, Slices: j.Slices, Chips: j.Chips,
			Created: when(j.Created), Reason: j.Reason, Message: j.Message, Flavor: j.Flavor, Admitted: when(j.Admitted),
		})
	}
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
