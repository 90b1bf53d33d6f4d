package fakegke

import (
	"testing"
	"time"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestFaultsOnBothClients(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s *Server, c *container.ClusterManagerClient) {
		createCluster(t, c)
		create := func(name string) error {
			_, err := c.CreateNodePool(t.Context(), &containerpb.CreateNodePoolRequest{Parent: testCluster, NodePool: slicePool(name)})
			return err
		}
		exists := func(name string) bool {
			for _, p := range s.NodePools(testCluster) {
				if p.Name == name {
					return true
				}
			}
			return false
		}
		settled := func() {
			t.Helper()
			for _, op := range s.Operations() {
				done(t, c, op, nil)
			}
		}

		remove := s.Fail(Fault{Method: "CreateNodePool", Call: 2, Code: codes.Unavailable, Message: "try later"})
		if err := create("a"); err != nil {
			t.Errorf("the first call: %v", err)
		}
		if err := create("b"); err == nil || message(err) != "try later" || exists("b") {
			t.Errorf("the second call: %v; pool exists: %v", err, exists("b"))
		}
		if err := create("b"); err != nil {
			t.Errorf("the third call: %v", err)
		}
		remove()
		settled()

		remove = s.Fail(Fault{Method: "CreateNodePool", Code: codes.Internal, Message: "lost", AfterEffect: true})
		if err := create("c"); err == nil || !exists("c") {
			t.Errorf("a lost reply: %v; pool exists: %v", err, exists("c"))
		}
		remove()
		settled()

		remove = s.Fail(Fault{Method: "CreateNodePool", Reset: true, AfterEffect: true})
		if err := create("d"); err == nil || !exists("d") {
			t.Errorf("a reset after the effect: %v; pool exists: %v", err, exists("d"))
		}
		remove()
		remove = s.Fail(Fault{Method: "CreateNodePool", Reset: true})
		if err := create("e"); err == nil || exists("e") {
			t.Errorf("a reset: %v; pool exists: %v", err, exists("e"))
		}
		remove()
		settled()

		remove = s.Fail(Fault{Delay: 10 * time.Millisecond})
		start := time.Now()
		if err := create("e"); err != nil || time.Since(start) < 10*time.Millisecond {
			t.Errorf("a slow reply: %v after %s", err, time.Since(start))
		}
		remove()
		if got := s.Calls()["CreateNodePool"]; got != 7 {
			t.Errorf("%d calls were counted, want 7", got)
		}
	})
}

func TestTheNamesOfStatusCodes(t *testing.T) {
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		// The codes package reads exactly Google's names.
		var parsed codes.Code
		if err := parsed.UnmarshalJSON([]byte(`"` + statusName(c) + `"`)); err != nil || parsed != c {
			t.Errorf("%s is named %s: %v", c, statusName(c), err)
		}
	}
	if status.Code(notFound("projects/p/locations/l")) != codes.NotFound {
		t.Error("not found")
	}
}
