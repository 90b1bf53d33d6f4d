package slicepool

import (
	"slices"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// A node pool that the state knows by name may have been deleted and made again
// by somebody else: then it names another owner. The configuration's own name
// may change too: then it names the one before. Private state tells the two
// apart: it has the owners that the pool's slices were given from here; nil is not known.
const ownersKey = "owners"

// ownersAfter an update: an earlier one counts until every slice has the
// present one.
func (r *Resource) ownersAfter(m model, before []string) []string {
	switch {
	case m.Status.ValueString() == gke.PoolReady:
		return []string{r.data.Owner}
	case before == nil || slices.Contains(before, r.data.Owner):
		return before
	}
	return append(slices.Clone(before), r.data.Owner)
}

// ownerNow is the name that slices should carry. While it is not known yet it is
// the one that they have.
func (r *Resource) ownerNow(before []string) string {
	if r.data.Partial && r.data.Owner == "" && len(before) > 0 {
		return before[len(before)-1]
	}
	return r.data.Owner
}
