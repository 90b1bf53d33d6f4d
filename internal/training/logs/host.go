package logs

import (
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Host names hosts of a job.
type Host struct {
	Job   string // the replicated job; "" = the main one
	Slice int    // negative: every one
	Host  int    // negative: every one
}

// ParseHost reads SLICE/HOST, SLICE for all hosts of a slice, or JOB and
// JOB/POD for a further job.
func ParseHost(s string) (Host, error) {
	first, second, two := strings.Cut(s, "/")
	n, err := index(first)
	h := Host{Slice: n, Host: -1}
	if err != nil {
		if first == "" || strings.ContainsAny(first[:1], "-+0123456789") {
			return Host{}, badHost(s)
		}
		h = Host{Job: first, Slice: -1, Host: -1}
	}
	if !two {
		return h, nil
	}
	if h.Host, err = index(second); err != nil {
		return Host{}, badHost(s)
	}
	return h, nil
}

func badHost(s string) error {
	return fmt.Errorf("%q: want SLICE/HOST such as 0/3, SLICE for all hosts of a slice, or JOB or JOB/POD for a further job", s)
}

func index(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err
}

// String is how ParseHost reads it.
func (h Host) String() string {
	switch {
	case h.Job != "" && h.Host < 0:
		return h.Job
	case h.Job != "":
		return fmt.Sprintf("%s/%d", h.Job, h.Host)
	case h.Host < 0:
		return strconv.Itoa(h.Slice)
	}
	return fmt.Sprintf("%d/%d", h.Slice, h.Host)
}

func (h Host) matches(l Line) bool {
	if h.Job == "" {
		return l.trains() && (h.Slice < 0 || h.Slice == l.Slice) && (h.Host < 0 || h.Host == l.Host)
	}
	return l.Job == h.Job && (h.Host < 0 || h.Host == l.Host)
}

// trains tells whether a line is of the main job. JobSets that others made call
// it as they like; it has the chips.
func (l Line) trains() bool { return l.Job == training.SliceJob || l.chips }

// Name is how a line's host is called: SLICE/HOST, JOB/POD for a further job.
func (l Line) Name() string {
	name := fmt.Sprintf("%d/%d", l.Slice, l.Host)
	if !l.trains() {
		name = fmt.Sprintf("%s/%d", l.Job, l.Host)
	}
	if l.Several {
		name += "/" + l.Container
	}
	return name
}

// of is what all lines of a pod have in common.
func of(p *corev1.Pod) Line {
	job := p.Labels[jobset.ReplicatedJobNameKey]
	return Line{
		chips: p.Spec.NodeSelector[accelerator.LabelAccelerator] != "",
		Job:   job, Slice: number(p.Labels[jobset.JobIndexKey]),
		Host: number(p.Labels[batchv1.JobCompletionIndexAnnotation]), Attempt: number(p.Labels[training.LabelRestartAttempt]),
		Pod: p.Name, Several: len(p.Spec.Containers) > 1,
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// wants tells whether a pod is one of those asked for.
func (o Options) wants(l Line) bool {
	if o.Pod != "" && o.Pod != l.Pod {
		return false
	}
	for _, h := range o.Hosts {
		if h.matches(l) {
			return true
		}
	}
	return len(o.Hosts) == 0
}

// Wanted names what is asked for, beyond the job.
func (o Options) Wanted() string {
	var parts []string
	if len(o.Hosts) > 0 {
		names := make([]string, len(o.Hosts))
		for i, h := range o.Hosts {
			names[i] = h.String()
		}
		parts = append(parts, "host "+strings.Join(names, ", "))
	}
	if o.Container != "" {
		parts = append(parts, "container "+o.Container)
	}
	return strings.Join(parts, ", ")
}
