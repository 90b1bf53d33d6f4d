package slicepool

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// With create_before_destroy, or when a resource gets another address, two
// objects in the state name the same node pools for a while: the old one and
// the one that took them over. A run may end in that while, and the next one
// deletes the old object without knowing of the other, for Terraform tells
// neither. So each object has an id, in private state and in the labels of its
// node pools, and a deletion leaves what names another.
const objectKey = "object"

func newObject() string { return strings.ToLower(rand.Text()[:16]) }

func rememberObject(ctx context.Context, p private, id string) diag.Diagnostics {
	data, err := json.Marshal(id)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Internal error", "writing the id of a slice pool: "+err.Error())}
	}
	return p.SetKey(ctx, objectKey, data)
}

// recallObject reads what rememberObject wrote; "" is none: the state was
// imported just now, moved here, or written by an earlier version.
func recallObject(ctx context.Context, p private) (id string, diags diag.Diagnostics) {
	data, diags := p.GetKey(ctx, objectKey)
	if len(data) > 0 {
		_ = json.Unmarshal(data, &id) // what cannot be read names nothing
	}
	return id, diags
}

// warnOfTaken says of a deletion which node pools it left.
func warnOfTaken(ref gke.SlicePoolRef, taken []string, diags *diag.Diagnostics) {
	diags.AddWarning(fmt.Sprintf("%s of slice pool %s %s", count(len(taken), "node pool"), ref.Name, choose(len(taken), "stays", "stay")),
		fmt.Sprintf("%s of %s: another object with this name has taken over, by create_before_destroy, at another address or in another state, and deletes them when it is destroyed. "+
			"If there is no such object, because the run that made it was killed before it could save its state, apply the resource once more and destroy it then, or delete them: "+
			"gcloud container node-pools delete NAME --cluster %s --location %s --project %s",
			strings.Join(taken, ", "), ref.Cluster, ref.Cluster.Cluster, ref.Cluster.Location, ref.Cluster.Project))
}
