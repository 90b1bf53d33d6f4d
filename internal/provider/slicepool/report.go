package slicepool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// report says what an apply came to. A request that GKE refused is an error in
// an update; in a create it would taint healthy slices, and is a warning.
func report(diags *diag.Diagnostics, p gke.SlicePool, res gke.SlicePoolResult, update bool) {
	if n := len(res.Adopted); n > 0 {
		slices.Sort(res.Adopted)
		diags.AddWarning(fmt.Sprintf("Slice pool %s takes over %s", p.Name, count(n, "node pool")),
			gke.TakenOver(strings.Join(res.Adopted, ", "), p.Owner))
	}
	spared := func(list []gke.Spared, what, reason string) {
		if len(list) > 0 {
			diags.AddWarning("Slice pool "+p.Name+what, gke.ListSpared(list)+"\n\n"+reason+"Apply again when "+
				choose(len(list), "it is", "they are")+" idle, or set force = true, which kills what runs there.")
		}
	}
	spared(res.Surplus, fmt.Sprintf(" keeps %s more than it should have", count(len(res.Surplus), "slice")), "")
	n := len(res.Broken)
	spared(res.Broken, fmt.Sprintf(": %s not made again", count(n, "broken slice")+choose(n, " is", " are")),
		"Making a slice again takes all of its hosts away, also those that are still up. ")
	n = len(res.Outdated)
	spared(res.Outdated, fmt.Sprintf(": %s new settings", count(n, "slice")+choose(n, " has not got its", " have not got their")),
		"The change needs new nodes. ")

	left := leftOf(p, res)
	if len(left.failures) == 0 {
		return
	}
	summary := fmt.Sprintf("Slice pool %s: %s", p.Name, left)
	switch res.Ended {
	case gke.Interrupted:
		diags.AddWarning(summary+", and the run was interrupted",
			"GKE goes on with what it was asked for. The next plan shows an update, and the next apply goes on from here.")
		return
	case gke.TimedOut:
		summary += " after the timeout"
	}
	brief, detail, refused := causes(left.failures)
	summary += because(": ", brief)
	detail += "\n\n" + left.next()
	if update && refused {
		diags.AddError(summary, detail)
		return
	}
	diags.AddWarning(summary, detail)
}

// leftover is what an apply did not get done, by kind: numbers of slices.
type leftover struct {
	wanted, ready                 int
	missing, unchanged, stillHere int
	failures                      map[int]error // those that matter still
}

// leftOf sorts the failures. One whose slice is as it should be by the last
// look, such as that of a wait that ended too early, is none.
func leftOf(p gke.SlicePool, res gke.SlicePoolResult) leftover {
	l := leftover{wanted: p.Count, failures: map[int]error{}}
	up := func(s gke.Slice) bool { return s.Status == gke.SliceRunning && !s.Hostless }
	for i, s := range res.Slices {
		kept := slices.ContainsFunc(res.Surplus, func(k gke.Spared) bool { return k.NodePool == s.NodePool })
		if up(s) && !kept && !res.Gone[i] {
			l.ready++
		}
	}
	for i, err := range res.Failures {
		s, there := res.Slices[i]
		switch {
		case res.Gone[i] && there:
			l.stillHere++
		case res.Gone[i]:
			continue
		case !up(s):
			l.missing++
		case len(s.Outdated) > 0:
			l.unchanged++
		default:
			continue
		}
		l.failures[i] = err
	}
	return l
}

func (l leftover) String() string {
	var parts []string
	if l.missing > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s ready", l.ready, count(l.wanted, "slice")+choose(l.wanted, " is", " are")))
	}
	if n := l.unchanged; n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s not got %s changes", n, count(l.wanted, "slice")+choose(n, " has", " have"), choose(n, "its", "their")))
	}
	if n := l.stillHere; n > 0 {
		parts = append(parts, count(n, "slice")+" too many "+choose(n, "is", "are")+" still there")
	}
	return strings.Join(parts, ", ")
}

// next says what becomes of it.
func (l leftover) next() string {
	var does []string
	if l.missing > 0 {
		does = append(does, "makes what is missing")
	}
	if l.unchanged > 0 {
		does = append(does, "makes the changes that are left")
	}
	if l.stillHere > 0 {
		does = append(does, "removes what is too many")
	}
	last := len(does) - 1
	text := "The next apply " + does[last] + "."
	if last > 0 {
		text = "The next apply " + strings.Join(does[:last], ", ") + " and " + does[last] + "."
	}
	if l.missing > 0 && l.ready > 0 {
		text = "The slices that are ready stay as they are. " + text
	}
	return text
}

// count writes a number of things: 1 slice, 2 slices.
func count(n int, thing string) string { return fmt.Sprintf("%d %s%s", n, thing, choose(n, "", "s")) }

func choose(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
