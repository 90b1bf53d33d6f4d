package queues

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

type fake []queue.Status

func (f fake) List(context.Context) ([]queue.Status, error) { return f, nil }

func (f fake) Get(_ context.Context, name string) (queue.Status, error) {
	for _, s := range f {
		if s.Name == name {
			return s, nil
		}
	}
	return queue.Status{}, &queue.ErrNoQueue{Name: name, Cluster: "c"}
}

func sample(t *testing.T) fake {
	t.Helper()
	slice, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	research := queue.Status{
		Name: "research", Cohort: "lab", Active: true, Ordered: true, AdmittedJobs: 1, PendingJobs: 2,
		Flavors:  []queue.FlavorStatus{{Name: "v5e-4x4", Slice: slice, Quota: 64, Used: 80, Reserved: 80, Borrowed: 16}, {Name: "v5e-spot", Slice: slice, Quota: 32}},
		Admitted: []queue.Job{{Namespace: "research", Name: "train", Kind: "JobSet", Chips: 80, Slices: 5, Flavor: "v5e-4x4", PriorityClass: "high", Created: now.Add(-3 * time.Hour), Admitted: now.Add(-2 * time.Hour)}},
		Pending: []queue.Job{
			{Namespace: "research", Name: "next", Kind: "JobSet", Position: 1, Chips: 32, Slices: 2, PriorityClass: "high", Created: now.Add(-time.Minute), Reason: "WaitingForQuota"},
			{Namespace: "vision", Name: "later", Kind: "JobSet", Position: 2, Chips: 16, Slices: 1, Created: now.Add(-time.Hour), Reason: "WaitingForQuota"},
		},
	}
	stopped := queue.Status{Name: "stopped", Reason: "Stopped", Message: "the queue is stopped", Flavors: []queue.FlavorStatus{{Name: "unknown", Quota: 8}}}
	return fake{research, stopped}
}

func run(t *testing.T, f fake, width int, color bool, line string) (string, error) {
	t.Helper()
	s, out, _ := clitest.Streams(width, color)
	d := Deps{Streams: s, Now: func() time.Time { return now }, Open: func(context.Context, target.Options) (Source, error) { return f, nil }}
	err := clitest.Run(newQueues(d), strings.Fields(line)...)
	return out.String(), err
}

func TestOutputs(t *testing.T) {
	for golden, tt := range map[string]struct {
		width int
		color bool
		line  string
	}{
		"list.txt":      {0, false, ""},
		"list-wide.txt": {0, false, "-o wide"},
		"list-60.txt":   {60, true, ""},
		"list.json":     {0, false, "-o json"},
		"list-name.txt": {0, false, "-o name"},
		"one.txt":       {0, false, "research"},
		"one-70.txt":    {70, false, "research"},
		"one.json":      {0, false, "research -o json"},
		"stopped.txt":   {0, false, "stopped"},
	} {
		t.Run(golden, func(t *testing.T) {
			out, err := run(t, sample(t), tt.width, tt.color, tt.line)
			if err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, golden, out)
		})
	}
}

func TestWrongQueues(t *testing.T) {
	for line, want := range map[string]string{
		"reserch":        "cluster c has no queue reserch; it has research, stopped",
		"research-lab":   "cluster c has no queue research-lab; it has research",
		"a b":            "want the name of one queue",
		"research -o x":  "want one of table",
		"--cluster-name": "unknown flag",
	} {
		if _, err := run(t, sample(t), 0, false, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("queues %s: %v, want %q", line, err, want)
		}
	}
	if _, err := run(t, nil, 0, false, "x"); err == nil || !strings.Contains(err.Error(), "and no other") {
		t.Errorf("without queues: %v", err)
	}
	if out, err := run(t, nil, 0, false, ""); err != nil || out != "No queues: tpu_kueue_queue makes one.\n" {
		t.Errorf("%q, %v", out, err)
	}
}
