package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// Outside of what the GKE API serves (/v1/...), as faultsPath is.
const (
	capacityPath = "/sandbox/capacity"
	hostsPath    = "/sandbox/hosts"
)

// Hosts is how many hosts a node pool is to have from now on.
type Hosts struct {
	Pool  string `json:"pool"`            // PROJECT/LOCATION/CLUSTER/POOL, or as much of its end as only one has
	Left  int    `json:"left"`            // of each zone
	All   bool   `json:"all,omitempty"`   // as many as it was made with
	Until int    `json:"until,omitempty"` // of an answer: as many as it was made with
}

// PoolError says why a node pool cannot lose hosts or get them back.
type PoolError struct{ text string }

func (e *PoolError) Error() string { return e.text }

// capacityHandler lists (GET), sets (POST) and ends (DELETE, ?id=) limits.
func (s *Sandbox) capacityHandler() http.Handler {
	return s.guarded(func(w http.ResponseWriter, r *http.Request) {
		var out []Limit
		var err error
		switch r.Method {
		case http.MethodGet:
			out = s.limits.list()
		case http.MethodPost:
			var l Limit
			if err = decode(r, &l); err != nil {
				err = fmt.Errorf("%w: %w", ErrLimit, err)
				break
			}
			l, err = s.limits.set(l, s.fake)
			out = []Limit{l}
		case http.MethodDelete:
			out, err = s.limits.remove(r.URL.Query()["id"], s.fake)
		default:
			http.Error(w, "want GET, POST or DELETE", http.StatusMethodNotAllowed)
			return
		}
		var unknown *UnknownLimitError
		switch {
		case errors.As(err, &unknown):
			http.Error(w, err.Error(), http.StatusNotFound)
		case errors.Is(err, ErrLimit):
			http.Error(w, err.Error(), http.StatusBadRequest)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			s.log.Info("limits of capacity", "request", r.Method, "in force", len(s.limits.list()))
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(out)
		}
	})
}

// hostsHandler changes (POST) how many hosts of a node pool are up.
func (s *Sandbox) hostsHandler() http.Handler {
	return s.guarded(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "want POST", http.StatusMethodNotAllowed)
			return
		}
		var h Hosts
		if err := decode(r, &h); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		h, err := s.setHosts(h)
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		s.log.Info("hosts of a node pool", "pool", h.Pool, "up", h.Left, "of", h.Until)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(h)
	})
}

func decode(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func (s *Sandbox) setHosts(h Hosts) (Hosts, error) {
	path, p, err := s.poolNamed(h.Pool)
	if err != nil {
		return h, err
	}
	h.Pool, h.Until = short(path), int(p.InitialNodeCount)
	broken := p.Status == containerpb.NodePool_RUNNING_WITH_ERROR
	switch {
	case p.Status != containerpb.NodePool_RUNNING && !broken:
		return h, &PoolError{fmt.Sprintf("node pool %s is in %s: only one that is RUNNING loses hosts or gets them back", h.Pool, p.Status)}
	case h.All && !broken:
		return h, &PoolError{fmt.Sprintf("node pool %s has lost no hosts: it is RUNNING with all %d", h.Pool, h.Until)}
	case h.All:
		h.Left = h.Until
		if !s.fake.Mend(path) {
			return h, vanished(h.Pool)
		}
	case h.Left < 0 || h.Left >= h.Until:
		return h, &PoolError{fmt.Sprintf("node pool %s has %d hosts: %d cannot be what is left of them", h.Pool, h.Until, h.Left)}
	default:
		if !s.fake.Break(path, h.Left, fakegke.OutOfStock) {
			return h, vanished(h.Pool)
		}
	}
	return h, nil
}

func vanished(pool string) error {
	return &PoolError{fmt.Sprintf("node pool %s has just gone", pool)}
}

// poolNamed finds the one node pool whose path ends in name.
func (s *Sandbox) poolNamed(name string) (path string, pool *containerpb.NodePool, err error) {
	var found, all []string
	for _, c := range s.Status().Clusters {
		for _, p := range s.fake.NodePools(c.Path) {
			full := c.Path + "/nodePools/" + p.Name
			all = append(all, short(full))
			if full == name || strings.HasSuffix("/"+short(full), "/"+name) {
				found = append(found, short(full))
				path, pool = full, p
			}
		}
	}
	slices.Sort(all)
	switch {
	case len(found) == 1:
		return path, pool, nil
	case len(found) > 1:
		return "", nil, &PoolError{fmt.Sprintf("%s is the name of several node pools, say which: %s", name, strings.Join(found, ", "))}
	case len(all) == 0:
		return "", nil, &PoolError{fmt.Sprintf("there is no node pool %s, nor any other", name)}
	}
	return "", nil, &PoolError{fmt.Sprintf("there is no node pool %s; there are %s", name, strings.Join(all, ", "))}
}

// short is a node pool's path without the words: PROJECT/LOCATION/CLUSTER/POOL.
func short(path string) string {
	f := strings.Split(path, "/")
	return strings.Join([]string{f[1], f[3], f[5], f[7]}, "/")
}

const aboutCapacity = "capacity"

// LimitsOf lists the limits of the sandbox that runs in dir, which may be
// another process. *NotRunningError when none does.
func LimitsOf(ctx context.Context, dir string) ([]Limit, error) {
	return ask[[]Limit](ctx, dir, aboutCapacity, http.MethodGet, capacityPath, nil, nil)
}

// SetLimit puts a limit into force in the sandbox that runs in dir, in the
// place of one for the same thing.
func SetLimit(ctx context.Context, dir string, l Limit) ([]Limit, error) {
	return ask[[]Limit](ctx, dir, aboutCapacity, http.MethodPost, capacityPath, nil, l)
}

// RemoveLimits ends limits by id, or all of them, and returns those it ended.
func RemoveLimits(ctx context.Context, dir string, ids ...string) ([]Limit, error) {
	return ask[[]Limit](ctx, dir, aboutCapacity, http.MethodDelete, capacityPath, url.Values{"id": ids}, nil)
}

// SetHosts takes hosts of a node pool away or brings them back, in the sandbox
// that runs in dir.
func SetHosts(ctx context.Context, dir string, h Hosts) (Hosts, error) {
	return ask[Hosts](ctx, dir, "hosts", http.MethodPost, hostsPath, nil, h)
}
