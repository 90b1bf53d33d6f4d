package slicepool

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// warnOfTaken says of a deletion which node pools it left.
func warnOfTaken(ref gke.SlicePoolRef, taken []string, diags *diag.Diagnostics) {
	diags.AddWarning(fmt.Sprintf("%s of slice pool %s %s", count(len(taken), "node pool"), ref.Name, choose(len(taken), "stays", "stay")),
		fmt.Sprintf("%s of %s: another object with this name has taken over, by create_before_destroy, at another address or in another state, and deletes them when it is destroyed. "+
			"If there is no such object, because the run that made it was killed before it could save its state, apply the resource once more and destroy it then, or delete them: "+
			"gcloud container node-pools delete NAME --cluster %s --location %s --project %s",
			strings.Join(taken, ", "), ref.Cluster, ref.Cluster.Cluster, ref.Cluster.Location, ref.Cluster.Project))
}
