package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/tpu-training/terraform-provider-tpu/internal/faults"
)

// faultsPath is outside of what the GKE API serves (/v1/...).
const faultsPath = "/sandbox/faults"

// Faults are the rules by which requests to the GKE API and, through it, to
// the clusters go wrong. They survive a restart in the same folder.
func (s *Sandbox) Faults() *faults.Set { return s.faults }

// faultsHandler lists (GET), adds (POST) and removes (DELETE, ?id=) rules.
func (s *Sandbox) faultsHandler() http.Handler {
	return s.guarded(func(w http.ResponseWriter, r *http.Request) {
		var out []faults.Rule
		var err error
		switch r.Method {
		case http.MethodGet:
			out = s.faults.List()
		case http.MethodPost:
			var rules []faults.Rule
			d := json.NewDecoder(r.Body)
			d.DisallowUnknownFields()
			if err = d.Decode(&rules); err != nil {
				err = fmt.Errorf("%w: %w", faults.ErrRule, err)
				break
			}
			out, err = s.faults.Add(rules...)
		case http.MethodDelete:
			out, err = s.faults.Remove(r.URL.Query()["id"]...)
		default:
			http.Error(w, "want GET, POST or DELETE", http.StatusMethodNotAllowed)
			return
		}
		var unknown *faults.UnknownRuleError
		switch {
		case errors.As(err, &unknown):
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		case errors.Is(err, faults.ErrRule):
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.log.Info("fault rules", "request", r.Method, "in force", len(s.faults.List()))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	})
}

// FaultsOf lists the rules of the sandbox that runs in dir, which may be
// another process. *NotRunningError when none does.
func FaultsOf(ctx context.Context, dir string) ([]faults.Rule, error) {
	return askFaults(ctx, dir, http.MethodGet, nil, nil)
}

// AddFaults puts rules into force in the sandbox that runs in dir.
func AddFaults(ctx context.Context, dir string, rules ...faults.Rule) ([]faults.Rule, error) {
	return askFaults(ctx, dir, http.MethodPost, nil, rules)
}

// RemoveFaults ends rules by id, or all of them, and returns those it ended.
func RemoveFaults(ctx context.Context, dir string, ids ...string) ([]faults.Rule, error) {
	return askFaults(ctx, dir, http.MethodDelete, url.Values{"id": ids}, nil)
}

func askFaults(ctx context.Context, dir, method string, query url.Values, body any) ([]faults.Rule, error) {
	return ask[[]faults.Rule](ctx, dir, "fault rules", method, faultsPath, query, body)
}
