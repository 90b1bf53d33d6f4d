package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Print is what the programs of a job print, on some of its hosts.
type Print struct {
	Namespace string
	Job       string // a JobSet
	// Slice and Host narrow it down; negative means every one.
	Slice, Host int

	Text string // lines, printed now
	// File is one whose lines they print, as LogFileAnnotation says.
	File string
}

// maxPrinted bounds what annotations hold: all of an object's may have 256 KiB.
const maxPrinted = 128 << 10

// Print lets the programs of a job print, and tells in which pods.
func (cp *ControlPlane) Print(ctx context.Context, p Print) ([]PodOf, error) {
	out, err := cp.print(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("printing from the program of job %s in %s: %w", jobPath(p.Namespace, p.Job), cp.cfg.Name, err)
	}
	return out, nil
}

func (cp *ControlPlane) print(ctx context.Context, p Print) ([]PodOf, error) {
	switch {
	case p.Text == "" && p.File == "":
		return nil, &HostError{"there is nothing to print"}
	case p.File != "" && !filepath.IsAbs(p.File):
		return nil, &HostError{fmt.Sprintf("%s is no absolute path", p.File)}
	}
	pods, err := cp.podsOf(ctx, p.Namespace, p.Job, p.Slice, p.Host)
	if err != nil {
		return nil, err
	}
	var out []PodOf
	for i := range pods {
		pod := &pods[i]
		a := map[string]any{}
		if p.Text != "" {
			printed := pod.Annotations[PrintedAnnotation] + stamped(p.Text, time.Now())
			if len(printed) > maxPrinted {
				return nil, &HostError{fmt.Sprintf("pod %s has printed %d bytes already: let it print a file", pod.Name, len(pod.Annotations[PrintedAnnotation]))}
			}
			a[PrintedAnnotation] = printed
		}
		if p.File != "" {
			a[LogFileAnnotation] = p.File
		}
		if err := cp.patchPod(ctx, pod, "", map[string]any{"metadata": map[string]any{"annotations": a}}); err != nil {
			return nil, err
		}
		out = append(out, PodOf{pod.Name, pod.Spec.NodeName})
	}
	return out, nil
}

// stamped are the lines of text with this time before each; the kubelet tells
// lines of one instant apart by their order.
func stamped(text string, at time.Time) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		b.WriteString(at.UTC().Format(time.RFC3339Nano) + " " + line + "\n")
		at = at.Add(time.Microsecond)
	}
	return b.String()
}
