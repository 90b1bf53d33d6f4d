package fakegke

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
)

func TestTheCreationOfAClusterShowsItsProgress(t *testing.T) {
	for location, configuring := range map[string]int{"us-west4-a": 8, "us-west4": 9} { // of 20 and 21 steps
		inTime(t, func(t *testing.T, api *service) {
			ctx := context.Background()
			parent := "projects/acme/locations/" + location
			op := must[*containerpb.Operation](t)(api.CreateCluster(ctx, &containerpb.CreateClusterRequest{Parent: parent, Cluster: cluster("other")}))
			var seen []string
			for _, d := range []time.Duration{0, 2 * time.Minute, 3 * time.Minute, time.Minute} {
				pass(d)
				now := must[*containerpb.Operation](t)(api.GetOperation(ctx, &containerpb.GetOperationRequest{Name: parent + "/operations/" + op.Name}))
				line := now.Status.String()
				for _, m := range now.Progress.GetMetrics() {
					line += fmt.Sprintf(" %s=%d", m.Name, m.GetIntValue())
				}
				seen = append(seen, line)
			}
			line := func(status string, c, d, h int) string {
				return fmt.Sprintf("%s CLUSTER_CONFIGURING=%d CLUSTER_CONFIGURING_TOTAL=%d CLUSTER_DEPLOYING=%d CLUSTER_DEPLOYING_TOTAL=11 CLUSTER_HEALTHCHECKING=%d CLUSTER_HEALTHCHECKING_TOTAL=2", status, c, configuring, d, h)
			}
			want := []string{"PENDING", line("RUNNING", configuring-2, 0, 0), line("RUNNING", configuring, 8, 0), line("DONE", configuring, 11, 1)}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Errorf("in %s (-want +got):\n%s", location, diff)
			}
			if list := must[*containerpb.ListOperationsResponse](t)(api.ListOperations(ctx, &containerpb.ListOperationsRequest{Parent: parent})); list.Operations[len(list.Operations)-1].Progress == nil {
				t.Error("a list shows no progress")
			}
		})
	}
}
