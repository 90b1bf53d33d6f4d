package fakegke

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// computeTime is how long an operation on a resource policy takes, about.
const computeTime = 3 * time.Second

// maxPolicyName is Compute Engine's limit for names.
const maxPolicyName = 63

// resourcePolicy is a resource policy. Of its kinds only the workload policy is faked:
// the one that GKE asks for on TPUs.
type resourcePolicy struct {
	Kind              string         `json:"kind"`
	ID                string         `json:"id"`
	CreationTimestamp string         `json:"creationTimestamp"`
	Name              string         `json:"name"`
	Description       string         `json:"description,omitempty"`
	Region            string         `json:"region"`
	SelfLink          string         `json:"selfLink"`
	Status            string         `json:"status"`
	WorkloadPolicy    workloadPolicy `json:"workloadPolicy"`
}

type workloadPolicy struct {
	Type                string `json:"type,omitempty"`
	AcceleratorTopology string `json:"acceleratorTopology,omitempty"`
	MaxTopologyDistance string `json:"maxTopologyDistance,omitempty"`
}

// computeOperation is an operation of Compute Engine. It ends by the clock
// alone, so that nothing has to run for it.
type computeOperation struct {
	Policy string    `json:"policy"` // path
	Type   string    `json:"type"`   // insert or delete
	Begin  time.Time `json:"begin"`
	Name   string    `json:"name"`
}

func policyPath(project, region, name string) string {
	return "projects/" + project + "/regions/" + region + "/resourcePolicies/" + name
}

func (s *Server) computeEnd(op computeOperation) time.Time {
	return op.Begin.Add(time.Duration(float64(computeTime) * s.opts.scale))
}

// changing is the operation that a policy is in the middle of, or nil.
func (s *Server) changing(st state, path string) *computeOperation {
	for _, op := range st.computeOps {
		if op.Policy == path && time.Now().Before(s.computeEnd(*op)) {
			return op
		}
	}
	return nil
}

// policyNow is a policy as a caller sees it at this moment; nil when it is gone.
func (s *Server) policyNow(st state, path string) *resourcePolicy {
	p := st.policies[path]
	if p == nil {
		return nil
	}
	now := *p
	op := s.changing(st, path)
	switch {
	case op == nil && p.Status == "DELETING":
		return nil
	case op == nil:
		now.Status = "READY"
	}
	return &now
}

func (s *Server) getPolicy(c computeCall) (any, error) {
	path := policyPath(c.project, c.region, c.name)
	if p := s.policyNow(s.view(), path); p != nil {
		return p, nil
	}
	return nil, computeNotFound(path)
}

func (s *Server) listPolicies(c computeCall) (any, error) {
	st, items := s.view(), []*resourcePolicy{}
	prefix := policyPath(c.project, c.region, "")
	for _, path := range slices.Sorted(maps.Keys(st.policies)) {
		if p := s.policyNow(st, path); p != nil && strings.HasPrefix(path, prefix) {
			items = append(items, p)
		}
	}
	return map[string]any{"kind": "compute#resourcePolicyList", "items": items}, nil
}

// readPolicy reads and checks the body of an insert.
func readPolicy(c computeCall) (*resourcePolicy, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, c.Body, 1<<20))
	if err != nil {
		return nil, computeInvalid("Parse error: %v", err)
	}
	var in resourcePolicy
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, computeInvalid("Invalid JSON payload received. %v", err)
	}
	if len(in.Name) > maxPolicyName || !namePattern.MatchString(in.Name) {
		return nil, computeInvalid("Invalid value for field 'resource.name': '%s'. Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'", in.Name)
	}
	w := in.WorkloadPolicy
	if w.Type != "HIGH_THROUGHPUT" && w.Type != "HIGH_AVAILABILITY" {
		return nil, computeInvalid("Invalid value for field 'resource.workloadPolicy.type': '%s'.", w.Type)
	}
	if w.AcceleratorTopology != "" {
		if _, err := accelerator.ParseTopology(w.AcceleratorTopology); err != nil || w.Type != "HIGH_THROUGHPUT" {
			return nil, computeInvalid("Invalid value for field 'resource.workloadPolicy.acceleratorTopology': '%s'.", w.AcceleratorTopology)
		}
	}
	in.Kind, in.Region = "compute#resourcePolicy", computeLink("projects/"+c.project+"/regions/"+c.region)
	in.CreationTimestamp, in.Status = time.Now().Format(time.RFC3339), "CREATING"
	return &in, nil
}

func computeLink(path string) string { return "https://www.googleapis.com" + computePrefix + path }

func (s *Server) insertPolicy(c computeCall) (any, error) {
	in, err := readPolicy(c)
	if err != nil {
		return nil, err
	}
	path := policyPath(c.project, c.region, in.Name)
	in.SelfLink, in.ID = computeLink(path), fmt.Sprint(projectNumber(path))
	return s.changePolicy(c, "insert", path, func(next state) error {
		if s.policyNow(next, path) != nil {
			return computeExists(path)
		}
		next.policies[path] = in
		return nil
	})
}

func (s *Server) deletePolicy(c computeCall) (any, error) {
	path := policyPath(c.project, c.region, c.name)
	return s.changePolicy(c, "delete", path, func(next state) error {
		now := s.policyNow(next, path)
		if now == nil || now.Status == "DELETING" {
			return computeNotFound(path)
		}
		if user := next.userOf(path); user != "" {
			return computeInUse(path, user)
		}
		now.Status = "DELETING"
		next.policies[path] = now
		return nil
	})
}

func (s *Server) changePolicy(c computeCall, kind, path string, change func(next state) error) (any, error) {
	var id [12]byte
	_, _ = rand.Read(id[:])
	op := &computeOperation{Policy: path, Type: kind, Begin: time.Now(), Name: fmt.Sprintf("operation-%d-%x", time.Now().UnixMilli(), id)}
	if err := s.update(func(next state) error {
		for name, old := range next.computeOps { // nobody waits for these any more
			if time.Since(old.Begin) > time.Hour {
				delete(next.computeOps, name)
			}
		}
		if err := change(next); err != nil {
			return err
		}
		next.computeOps["projects/"+c.project+"/regions/"+c.region+"/operations/"+op.Name] = op
		return nil
	}); err != nil {
		return nil, err
	}
	return s.shownOperation(op), nil
}

func (s *Server) shownOperation(op *computeOperation) any {
	out := map[string]any{
		"kind": "compute#operation", "name": op.Name, "operationType": op.Type, "status": "RUNNING", "progress": 0,
		"targetLink": computeLink(op.Policy), "insertTime": op.Begin.Format(time.RFC3339Nano), "startTime": op.Begin.Format(time.RFC3339Nano),
	}
	if end := s.computeEnd(*op); !time.Now().Before(end) {
		out["status"], out["progress"], out["endTime"] = "DONE", 100, end.Format(time.RFC3339Nano)
	}
	return out
}

func (s *Server) getComputeOperation(c computeCall) (any, error) {
	path := "projects/" + c.project + "/regions/" + c.region + "/operations/" + c.name
	if op := s.view().computeOps[path]; op != nil {
		return s.shownOperation(op), nil
	}
	return nil, computeNotFound(path)
}

// waitComputeOperation answers when the operation is done, or after two
// minutes as it is.
func (s *Server) waitComputeOperation(c computeCall) (any, error) {
	path := "projects/" + c.project + "/regions/" + c.region + "/operations/" + c.name
	op := s.view().computeOps[path]
	if op == nil {
		return nil, computeNotFound(path)
	}
	t := time.NewTimer(min(time.Until(s.computeEnd(*op)), 2*time.Minute))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.Context().Done():
	case <-s.ctx.Done():
	}
	return s.shownOperation(op), nil
}

// Policies names the resource policies that there are, by path
// (projects/P/regions/R/resourcePolicies/NAME).
func (s *Server) Policies() []string {
	st := s.view()
	var out []string
	for _, path := range slices.Sorted(maps.Keys(st.policies)) {
		if s.policyNow(st, path) != nil {
			out = append(out, path)
		}
	}
	return out
}
