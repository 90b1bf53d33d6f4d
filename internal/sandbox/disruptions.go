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
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/controlplane"
)

// Outside of what the GKE API serves (/v1/...), as faultsPath is.
const (
	disruptionsPath = "/sandbox/disruptions"
	exitsPath       = "/sandbox/exits"
)

// HostOf names hosts: one by its node's name, or those of a job.
type HostOf struct {
	Cluster string `json:"cluster,omitempty"` // as much of its path's end as tells it; "" = the only one
	Host    string `json:"host,omitempty"`
	// Without Host: of a JobSet, negative for every slice or host.
	Namespace string `json:"namespace,omitempty"`
	Job       string `json:"job,omitempty"`
	Slice     int    `json:"slice"`
	Index     int    `json:"index"`
}

// Disruption asks that something happens to hosts.
type Disruption struct {
	HostOf
	Kind string `json:"kind"`
	// For is when the hosts are back; 0 = when they are brought back.
	For time.Duration `json:"for,omitempty"`
}

// Disrupted is a host to which something happened.
type Disrupted struct {
	Cluster string `json:"cluster"` // path
	Host    string `json:"host"`
	Kind    string `json:"kind"`
}

// Exit asks that programs end.
type Exit struct {
	HostOf
	Code  int           `json:"code"`
	After time.Duration `json:"after,omitempty"`
	Log   string        `json:"log,omitempty"`
}

// Exited is a pod whose program ends.
type Exited struct {
	Cluster string `json:"cluster"`
	Pod     string `json:"pod"`
	Host    string `json:"host"`
}

// DisruptionError says why something cannot happen.
type DisruptionError struct{ text string }

func (e *DisruptionError) Error() string { return e.text }

// disruptable is a plane whose hosts things can happen to.
type disruptable interface {
	Disrupt(ctx context.Context, host string, d controlplane.Disruption) error
	Mend(ctx context.Context, host string) error
	Disrupted(ctx context.Context) ([]controlplane.Disrupted, error)
	PodsOf(ctx context.Context, namespace, job string, slice, host int) ([]controlplane.PodOf, error)
	Exit(ctx context.Context, e controlplane.Exit) ([]controlplane.PodOf, error)
	Print(ctx context.Context, p controlplane.Print) ([]controlplane.PodOf, error)
}

// clustersNamed are the running clusters whose path ends in name, by path.
func (s *Sandbox) clustersNamed(name string) (map[string]disruptable, error) {
	if s.planes == nil {
		return nil, &DisruptionError{"this sandbox runs without control planes: nothing runs on its hosts"}
	}
	found, all := map[string]disruptable{}, []string{}
	s.planes.mu.Lock()
	defer s.planes.mu.Unlock()
	for path, p := range s.planes.running {
		d, ok := p.(disruptable)
		if !ok {
			continue
		}
		all = append(all, path)
		if name == "" || path == name || strings.HasSuffix(path, "/"+name) {
			found[path] = d
		}
	}
	slices.Sort(all)
	switch {
	case len(all) == 0:
		return nil, &DisruptionError{"there is no cluster yet"}
	case len(found) == 0:
		return nil, &DisruptionError{fmt.Sprintf("there is no cluster %s; there are %s", name, strings.Join(all, ", "))}
	}
	return found, nil
}

// clusterNamed is the one cluster whose path ends in name.
func (s *Sandbox) clusterNamed(name string) (string, disruptable, error) {
	found, err := s.clustersNamed(name)
	if err != nil {
		return "", nil, err
	}
	if len(found) > 1 {
		var all []string
		for path := range found {
			all = append(all, path)
		}
		slices.Sort(all)
		return "", nil, &DisruptionError{"say which cluster: " + strings.Join(all, ", ")}
	}
	for path, d := range found {
		return path, d, nil
	}
	return "", nil, nil
}

func (s *Sandbox) disrupt(ctx context.Context, d Disruption) ([]Disrupted, error) {
	kind, err := controlplane.ParseDisruption(d.Kind)
	if err != nil {
		return nil, &DisruptionError{err.Error()}
	}
	path, plane, err := s.clusterNamed(d.Cluster)
	if err != nil {
		return nil, err
	}
	hosts := []string{d.Host}
	if d.Host == "" {
		pods, err := plane.PodsOf(ctx, d.Namespace, d.Job, d.Slice, d.Index)
		if err != nil {
			return nil, err
		}
		hosts = nil
		for _, p := range pods {
			if p.Node != "" && !slices.Contains(hosts, p.Node) {
				hosts = append(hosts, p.Node)
			}
		}
		if len(hosts) == 0 {
			return nil, &DisruptionError{fmt.Sprintf("the pods of job %s are on no host yet", strings.TrimPrefix(d.Namespace+"/"+d.Job, "/"))}
		}
	}
	var out []Disrupted
	for _, host := range hosts {
		if err := plane.Disrupt(ctx, host, kind); err != nil {
			return nil, err
		}
		out = append(out, Disrupted{path, host, d.Kind})
		if d.For > 0 {
			time.AfterFunc(d.For, func() {
				ctx, cancel := context.WithTimeout(context.Background(), mendTimeout)
				defer cancel()
				if err := plane.Mend(ctx, host); err != nil {
					s.log.Warn("a host was to be back", "error", err)
				}
			})
		}
	}
	return out, nil
}

func (s *Sandbox) disrupted(ctx context.Context) ([]Disrupted, error) {
	out := []Disrupted{}
	planes, err := s.clustersNamed("")
	if err != nil {
		return nil, err
	}
	for path, p := range planes {
		hosts, err := p.Disrupted(ctx)
		if err != nil {
			return nil, err
		}
		for _, h := range hosts {
			out = append(out, Disrupted{path, h.Host, string(h.Kind)})
		}
	}
	slices.SortFunc(out, func(a, b Disrupted) int { return strings.Compare(a.Cluster+a.Host, b.Cluster+b.Host) })
	return out, nil
}

// mend brings hosts back by name, or all of them.
func (s *Sandbox) mend(ctx context.Context, names []string) ([]Disrupted, error) {
	all, err := s.disrupted(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(d Disrupted) bool { return d.Host == name }) {
			return nil, &DisruptionError{fmt.Sprintf("nothing lasts on host %s", name)}
		}
	}
	out := []Disrupted{}
	for _, d := range all {
		if len(names) > 0 && !slices.Contains(names, d.Host) {
			continue
		}
		_, plane, err := s.clusterNamed(d.Cluster)
		if err != nil {
			return nil, err
		}
		if err := plane.Mend(ctx, d.Host); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// disruptionsHandler lists (GET) disruptions that last, makes one (POST) and
// ends them (DELETE, ?host=).
func (s *Sandbox) disruptionsHandler() http.Handler {
	return s.guarded(func(w http.ResponseWriter, r *http.Request) {
		var out []Disrupted
		var err error
		switch r.Method {
		case http.MethodGet:
			out, err = s.disrupted(r.Context())
		case http.MethodPost:
			var d Disruption
			if err = decode(r, &d); err == nil {
				out, err = s.disrupt(r.Context(), d)
			}
		case http.MethodDelete:
			out, err = s.mend(r.Context(), r.URL.Query()["host"])
		default:
			http.Error(w, "want GET, POST or DELETE", http.StatusMethodNotAllowed)
			return
		}
		answerHosts(w, out, err)
	})
}

// exitsHandler ends programs (POST).
func (s *Sandbox) exitsHandler() http.Handler {
	return s.guarded(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "want POST", http.StatusMethodNotAllowed)
			return
		}
		var e Exit
		var out []Exited
		err := decode(r, &e)
		if err == nil {
			out, err = s.exit(r.Context(), e)
		}
		answerHosts(w, out, err)
	})
}

func (s *Sandbox) exit(ctx context.Context, e Exit) ([]Exited, error) {
	path, plane, err := s.clusterNamed(e.Cluster)
	if err != nil {
		return nil, err
	}
	pods, err := plane.Exit(ctx, controlplane.Exit{
		Namespace: e.Namespace, Job: e.Job, Slice: e.Slice, Host: e.Index, Code: e.Code, After: e.After, Log: e.Log,
	})
	if err != nil {
		return nil, err
	}
	var out []Exited
	for _, p := range pods {
		out = append(out, Exited{path, p.Name, p.Node})
	}
	return out, nil
}

func answerHosts(w http.ResponseWriter, out any, err error) {
	switch {
	case errors.As(err, new(*DisruptionError)), errors.As(err, new(*controlplane.HostError)):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	}
}

// mendTimeout is longer than a host takes to be back.
const mendTimeout = 2 * time.Minute

const aboutHosts = "hosts"

// DisruptedHosts lists the hosts to which something happened that lasts, in the
// sandbox that runs in dir, which may be another process. *NotRunningError when
// none does.
func DisruptedHosts(ctx context.Context, dir string) ([]Disrupted, error) {
	return ask[[]Disrupted](ctx, dir, aboutHosts, http.MethodGet, disruptionsPath, nil, nil)
}

// Disrupt lets something happen to hosts of the sandbox that runs in dir, and
// tells to which.
func Disrupt(ctx context.Context, dir string, d Disruption) ([]Disrupted, error) {
	return askWithin[[]Disrupted](ctx, mendTimeout, dir, aboutHosts, http.MethodPost, disruptionsPath, nil, d)
}

// Mend brings hosts back by name, or all of them, and tells which.
func Mend(ctx context.Context, dir string, hosts ...string) ([]Disrupted, error) {
	return askWithin[[]Disrupted](ctx, mendTimeout, dir, aboutHosts, http.MethodDelete, disruptionsPath, url.Values{"host": hosts}, nil)
}

// EndPrograms lets the programs of a job end, and tells in which pods.
func EndPrograms(ctx context.Context, dir string, e Exit) ([]Exited, error) {
	return askWithin[[]Exited](ctx, mendTimeout, dir, "programs", http.MethodPost, exitsPath, nil, e)
}
