package slicepool

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// A node pool that the state knows by name may have been deleted and made again
// by somebody else: then it names another owner. The configuration's own name
// may change too: then it names the one before. Private state tells the two
// apart: it has the owners that the pool's slices were given from here.
const ownersKey = "owners"

func rememberOwners(ctx context.Context, p private, owners []string) diag.Diagnostics {
	data, err := json.Marshal(owners)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Internal error", "writing the owners of slices: "+err.Error())}
	}
	return p.SetKey(ctx, ownersKey, data)
}

// recallOwners reads what rememberOwners wrote. nil is not known: the state was
// imported just now, moved here, or written by an earlier version.
func recallOwners(ctx context.Context, p private) (owners []string, diags diag.Diagnostics) {
	data, diags := p.GetKey(ctx, ownersKey)
	if len(data) > 0 {
		_ = json.Unmarshal(data, &owners)
	}
	return owners, diags
}

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
