package gke

import (
	"context"
	"errors"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// aftermath is how long the last look may take when the run was interrupted:
// Terraform expects an answer soon.
const aftermath = 1200 * time.Millisecond

// result looks once more and adds what GKE may still be making.
func (a *slicePoolApply) result(ctx context.Context, ref SlicePoolRef, before map[int]*containerpb.NodePool) (Slices, map[string]string) {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), aftermath)
		defer cancel()
	}
	out := Slices{}
	mine, _, err := a.c.slicesOf(ctx, ref, listNow)
	if err != nil { // what was known is better than nothing: the next refresh corrects it
		mine = before
	}
	for i, np := range mine {
		out[i] = a.p.slice(np)
	}
	for _, i := range a.wanted {
		if _, ok := out[i]; ok {
			continue
		}
		switch why := a.failures[i]; {
		case why == nil: // done, and the list is behind or could not be read
			out[i] = Slice{NodePool: a.p.NodePoolName(i), Status: SliceRunning}
		case a.sent[i] && (errors.Is(why, Interrupted) || errors.Is(why, TimedOut) || errors.Is(why, Unreachable)):
			out[i] = Slice{NodePool: a.p.NodePoolName(i), Status: SliceProvisioning}
		}
	}
	return out, a.operations(ctx, out)
}

// operations are those that GKE has not finished on slices that are not up.
func (a *slicePoolApply) operations(ctx context.Context, now Slices) map[string]string {
	var targets []string
	for _, s := range now {
		if s.Status == SliceProvisioning || s.Status == SliceStopping {
			targets = append(targets, s.NodePool)
		}
	}
	if len(targets) == 0 {
		return nil
	}
	all, err := a.c.ListOperations(ctx, a.p.Cluster.Parent())
	if err != nil { // the node pools' own status serves too
		return nil
	}
	out := map[string]string{}
	for _, op := range all {
		for _, t := range targets { // a link names the project by number
			if op.GetStatus() != containerpb.Operation_DONE && strings.HasSuffix(op.GetTargetLink(), "/clusters/"+a.p.Cluster.Cluster+"/nodePools/"+t) {
				out[t] = op.GetName()
			}
		}
	}
	return out
}

// refusal is the error of an apply that left nothing behind: the first
// failure. With anything to show for it, failures are part of the result.
func (a *slicePoolApply) refusal(before int, after Slices) error {
	if before > 0 || len(after) > 0 {
		return nil
	}
	for _, i := range a.wanted {
		if err := a.failures[i]; err != nil {
			return err
		}
	}
	return nil
}
