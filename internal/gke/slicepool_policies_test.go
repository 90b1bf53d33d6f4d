package gke

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// placed are node pools as somebody made them by hand: two large tpu7x slices
// and a CPU pool, which have placement policies, and a slice that says what it is.
const placed = `{"nodePools": [
	{"name": "iron-0", "status": "RUNNING", "config": {"machineType": "tpu7x-standard-4t"}, "initialNodeCount": 32, "placementPolicy": {"policyName": "wide"}},
	{"name": "iron-1", "status": "RUNNING", "config": {"machineType": "tpu7x-standard-4t"}, "initialNodeCount": 32, "placementPolicy": {"policyName": "wide"}},
	{"name": "cpu", "status": "RUNNING", "config": {"machineType": "c4-standard-8"}, "placementPolicy": {"policyName": "dense"}},
	{"name": "v5e", "status": "RUNNING", "config": {"machineType": "ct5lp-hightpu-4t"}, "initialNodeCount": 4, "placementPolicy": {"tpuTopology": "4x4"}}]}`

// A slice that only its workload policy describes is listed as what the policy
// says, with one question for each policy, and none about machines without TPUs.
// Without an answer it is still listed; without a sure one there is no list.
func TestListOfSlicesPlacedByAPolicy(t *testing.T) {
	for name, tt := range map[string]struct {
		topology string
		err      error
		want     map[string]string // type name by node pool
	}{
		"known":     {"4x4x8", nil, map[string]string{"iron-0": "tpu7x-256", "iron-1": "tpu7x-256", "v5e": "v5litepod-16"}},
		"gone":      {"", NotFound, map[string]string{"iron-0": "", "iron-1": "", "v5e": "v5litepod-16"}},
		"forbidden": {"", Permission, map[string]string{"iron-0": "", "iron-1": "", "v5e": "v5litepod-16"}},
		"no answer": {"", Unreachable, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, placed) }))
			var asked []string
			found, err := c.ListSlicePools(t.Context(), listCluster, func(_ context.Context, policy string) (string, error) {
				asked = append(asked, policy)
				return tt.topology, tt.err
			})
			if tt.want == nil {
				if !errors.Is(err, tt.err) {
					t.Errorf("got %v, %v", found, err)
				}
				return
			}
			got := map[string]string{}
			for _, p := range found {
				got[p.Name] = p.Shape.Name
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if strings.Join(asked, " ") != "wide" {
				t.Errorf("asked for %v", asked)
			}
		})
	}
}
