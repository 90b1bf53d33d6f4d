package fakegke

import (
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// Whoever looks at held operations sees them under way, and they end once they
// are let go.
func TestHoldKeepsOperationsUnderWay(t *testing.T) {
	s, err := New(WithTimeScale(0))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	release := s.Hold()
	svc := &service{Server: s}
	op, err := svc.CreateCluster(t.Context(), &containerpb.CreateClusterRequest{
		Parent:  "projects/p/locations/us-west4-a",
		Cluster: &containerpb.Cluster{Name: "c", InitialNodeCount: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	name := "projects/p/locations/us-west4-a/operations/" + op.Name
	now := func() containerpb.Operation_Status {
		op, err := svc.GetOperation(t.Context(), &containerpb.GetOperationRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return op.Status
	}
	if got := now(); got == containerpb.Operation_DONE {
		t.Error("a held operation is done")
	}
	release()
	release()
	for deadline := time.Now().Add(10 * time.Second); now() != containerpb.Operation_DONE; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still %s after it was let go", now())
		}
	}
}
