package jobs

import (
	"fmt"
	"io"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// progress tells somebody who waits of each new reading of a run.
type progress struct {
	w    io.Writer
	said string
	// quiet leaves out that a job runs, where it did from the beginning.
	quiet bool
}

func (p *progress) tell(r training.Run) {
	sign := progressLine(r)
	if r.Hindrance != "" {
		// What the kubelet says goes to and fro; the reason and how far the
		// hosts are is news.
		sign = fmt.Sprint(r.State, r.Reason, r.Hindrance, r.HostsReady, r.HostsDone)
	}
	if sign == p.said || p.quiet && p.said == "" && r.State == training.Running {
		return
	}
	p.said = sign
	fmt.Fprintln(p.w, progressLine(r))
}

// progressLine is one reading of a run for somebody who waits.
func progressLine(r training.Run) string {
	line := fmt.Sprintf("%s: %s", pathOf(r), r.State)
	if r.State == training.Starting || r.State == training.Restarting {
		line += fmt.Sprintf(", %s hosts", hosts(r.HostsReady, r.HostsDone, r.HostsWanted))
	}
	if r.Reason != "" {
		line += " (" + r.Reason + ")"
	}
	if r.Message != "" && (r.State == training.Pending || r.State == training.Failed || r.Hindrance != "") {
		line += ": " + r.Message
	}
	return line
}
