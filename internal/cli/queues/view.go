package queues

import (
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// view is a queue as json and yaml show it. Keys are ours to keep stable.
type view struct {
	Name     string       `json:"name"`
	Cohort   string       `json:"cohort,omitempty"`
	Active   bool         `json:"active"`
	Reason   string       `json:"reason,omitempty"`
	Message  string       `json:"message,omitempty"`
	Flavors  []flavorView `json:"flavors"`
	Jobs     jobCounts    `json:"jobs"`
	Admitted []jobView    `json:"admitted,omitempty"`
	Pending  []jobView    `json:"pending,omitempty"`
}

type jobCounts struct {
	Admitted int `json:"admitted"`
	Pending  int `json:"pending"`
}

type flavorView struct {
	Name        string  `json:"name"`
	Accelerator string  `json:"accelerator,omitempty"`
	Quota       amounts `json:"quota"`
	Used        amounts `json:"used"`
	Borrowed    amounts `json:"borrowed"`
}

type amounts struct {
	Slices int64 `json:"slices"`
	Chips  int64 `json:"chips"`
}

type jobView struct {
	Position  int        `json:"position,omitempty"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Kind      string     `json:"kind"`
	Slices    int64      `json:"slices"`
	Chips     int64      `json:"chips"`
	Priority  string     `json:"priority,omitempty"`
	Flavor    string     `json:"flavor,omitempty"`
	Created   time.Time  `json:"created"`
	Admitted  *time.Time `json:"admitted,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Message   string     `json:"message,omitempty"`
}

func viewOf(s queue.Status) view {
	v := view{Name: s.Name, Cohort: s.Cohort, Active: s.Active, Reason: s.Reason, Message: s.Message, Flavors: []flavorView{}, Jobs: jobCounts{s.AdmittedJobs, s.PendingJobs}}
	for _, f := range s.Flavors {
		in := func(chips int64) amounts { return amounts{f.Slices(chips), chips} }
		v.Flavors = append(v.Flavors, flavorView{f.Name, f.Slice.Name, in(f.Quota), in(f.Reserved), in(f.Borrowed)})
	}
	return v
}

// jobs adds those of one queue.
func (v *view) jobs(s queue.Status) {
	convert := func(jobs []queue.Job) []jobView {
		out := []jobView{}
		for _, j := range jobs {
			one := jobView{j.Position, j.Namespace, j.Name, j.Kind, j.Slices, j.Chips, j.PriorityClass, j.Flavor, j.Created.UTC(), nil, j.Reason, j.Message}
			if !j.Admitted.IsZero() {
				at := j.Admitted.UTC()
				one.Admitted = &at
			}
			out = append(out, one)
		}
		return out
	}
	v.Admitted, v.Pending = convert(s.Admitted), convert(s.Pending)
}
