package gke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// What GKE cannot change of a node pool needs another one under the same name,
// and there cannot be two. So that the pods always have nodes, and so that
// nothing is taken down for a pool that GKE then refuses, a stand-in comes
// first: like the new pool but for its name. Its labels say for which pool it
// stands in; every run removes those that are left once they are not needed.

// standInSuffix ends the names of stand-ins.
const standInSuffix = "-stand-in"

// standInName is a name for a pool that stands in for another one. Where that
// is too long, or taken, a digest tells it from others.
func (u *cpuUpdate) standInName(pool string) string {
	name := pool + standInSuffix
	for i := 0; ; i++ {
		_, wanted := u.t.CPUPools[name]
		_, there := u.have[name]
		if len(name) <= MaxName && !wanted && !there {
			return name
		}
		digest := SpecHash([]any{pool, i})[len(specVersion):][:6]
		name = strings.TrimRight(pool[:min(len(pool), MaxName-len(standInSuffix)-len(digest)-1)], "-") + "-" + digest + standInSuffix
	}
}

// standIn is the pool that stands in for another one, if there is any.
func (u *cpuUpdate) standIn(pool string) *containerpb.NodePool {
	for name, np := range u.have {
		_, wanted := u.t.CPUPools[name] // then the user keeps it
		if o := OwnershipOf(np.GetConfig().GetResourceLabels()); madeAsCPUPool(np) && o.Pool == pool && !wanted {
			return np
		}
	}
	return nil
}

// remake makes a pool anew as spec says: stand-in first.
func (u *cpuUpdate) remake(ctx context.Context, np *containerpb.NodePool, spec CPUPool, fixed []string) error {
	name, n := np.GetName(), u.t.Name
	because := fmt.Sprintf("GKE cannot change %s of a node pool, so %s is made anew: first a pool that stands in for it, then the pool itself.", strings.Join(fixed, " and "), name)
	stand, err := u.stand(ctx, name, spec)
	if err != nil {
		return explain(err, fmt.Sprintf("%s The stand-in could not be made, and %s is as it was. There has to be room for both; if its pods may wait meanwhile, delete it by hand and apply again: "+
			"gcloud container node-pools delete %s --cluster %s --location %s --project %s", because, name, name, n.Cluster, n.Location, n.Project))
	}
	if err := u.c.DeleteNodePool(ctx, n, name); err != nil {
		return explain(err, fmt.Sprintf("%s The stand-in, %s, is there. Apply again to go on.", because, stand))
	}
	delete(u.have, name)
	if err := u.create(ctx, name, spec, ""); err != nil {
		return explain(err, fmt.Sprintf("%s The old pool is deleted, and its pods run on the stand-in, %s. Apply again to make %s; or keep the stand-in: name it in cpu_pools instead.", because, stand, name))
	}
	// A failure leaves it to the next apply, which finds it by its labels.
	return u.c.DeleteNodePool(ctx, n, stand)
}

func explain(err error, state string) error {
	return amend(err, func(e *Error) { e.State = state })
}

// stand sees to it that a pool like spec stands in for another one, and returns
// its name. One that an earlier run left serves if it is the same.
func (u *cpuUpdate) stand(ctx context.Context, pool string, spec CPUPool) (string, error) {
	if np := u.standIn(pool); np != nil {
		stand := np.GetName()
		np, err := u.c.settledPool(ctx, u.t.Name, stand, np.GetLocations())
		if err != nil {
			return "", err
		}
		if np != nil && np.GetStatus() != containerpb.NodePool_ERROR && spec.same(CPUPoolOf(np)) {
			return stand, nil
		}
		if np != nil {
			if err := u.c.DeleteNodePool(ctx, u.t.Name, stand); err != nil {
				return "", err
			}
		}
		delete(u.have, stand)
	}
	name := u.standInName(pool)
	err := u.create(ctx, name, spec, pool)
	if err != nil && !lost(err) && !errors.Is(err, AlreadyExists) {
		// It is of no use. Where this fails too, the next plan shows it.
		_ = u.c.DeleteNodePool(ctx, u.t.Name, name)
	}
	return name, err
}

// same tells whether another pool is all that p asks for.
func (p CPUPool) same(have CPUPool) bool {
	return !slices.ContainsFunc(cpuFacets, func(f cpuFacet) bool { return !f.same(p, have) })
}
