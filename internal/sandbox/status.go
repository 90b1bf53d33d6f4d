package sandbox

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// statusPath is outside of what the GKE API serves (/v1/...).
const statusPath = "/sandbox/status"

// Status is what a sandbox consists of at one moment.
type Status struct {
	Pid       int       `json:"pid"` // of the sandbox itself
	Dir       string    `json:"dir"`
	Endpoint  string    `json:"endpoint"`
	Started   time.Time `json:"started"`
	Clusters  []Cluster `json:"clusters"`
	Processes []Process `json:"processes"` // its children
}

// Cluster is one cluster of the fake GKE API.
type Cluster struct {
	Path      string     `json:"path"` // projects/P/locations/L/clusters/C
	Status    string     `json:"status"`
	Message   string     `json:"message,omitempty"`  // what is wrong with it
	Endpoint  string     `json:"endpoint,omitempty"` // host:port of its API server
	Context   string     `json:"context,omitempty"`  // its name in the sandbox's kubeconfig
	NodePools []NodePool `json:"nodePools"`
}

// NodePool is a pool with its count of simulated hosts.
type NodePool struct {
	Name        string `json:"name"`
	Status      string `json:"status"`
	MachineType string `json:"machineType,omitempty"`
	Nodes       int    `json:"nodes"`
}

// Process is one child.
type Process struct {
	Pid     int    `json:"pid"`
	Name    string `json:"name"`
	Cluster string `json:"cluster,omitempty"` // path of the cluster that it is part of
	Log     string `json:"log"`
}

// Status tells what runs now.
func (s *Sandbox) Status() Status {
	st := Status{
		Pid: os.Getpid(), Dir: s.Dir(), Endpoint: s.Endpoint(), Started: s.started.UTC().Round(time.Second),
		Clusters: []Cluster{}, Processes: []Process{},
	}
	clusterOf := map[string]string{} // by folder
	for _, c := range s.fake.Clusters() {
		path := fmt.Sprintf("projects/%s/locations/%s/clusters/%s", projectOf(c.SelfLink), c.Location, c.Name)
		cluster := Cluster{
			Path: path, Status: c.Status.String(), Message: c.StatusMessage, Endpoint: c.Endpoint,
			NodePools: []NodePool{},
		}
		if s.planes != nil {
			clusterOf[s.planes.folderOf(path)] = path
			if s.planes.get(path) != nil {
				cluster.Context = ContextName(path)
			}
		}
		count := map[string]int{}
		for _, n := range s.fake.Nodes(path) {
			count[n.Labels["cloud.google.com/gke-nodepool"]]++
		}
		for _, p := range c.NodePools {
			cluster.NodePools = append(cluster.NodePools, NodePool{
				Name: p.Name, Status: p.Status.String(), MachineType: p.GetConfig().GetMachineType(), Nodes: count[p.Name],
			})
		}
		st.Clusters = append(st.Clusters, cluster)
	}
	for _, p := range process.List(s.folder.path(clustersFolder)) {
		st.Processes = append(st.Processes, Process{Pid: p.Pid, Name: p.Name, Cluster: clusterOf[p.Dir], Log: filepath.Join(p.Dir, "logs", p.Name+".log")})
	}
	return st
}

// projectOf is the project in a resource's link (.../projects/P/...): the only
// place of a Cluster that names it.
func projectOf(link string) string {
	_, rest, _ := strings.Cut(link, "/projects/")
	project, _, _ := strings.Cut(rest, "/")
	return project
}

func (s *Sandbox) statusHandler() http.Handler {
	return s.guarded(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.Status())
	})
}

// guarded lets only those in who have the sandbox's token.
func (s *Sandbox) guarded(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.token)) != 1 {
			http.Error(w, "the sandbox's token is needed", http.StatusUnauthorized)
			return
		}
		next(w, r)
	})
}

// StatusOf asks the sandbox that runs in dir, which may be another process.
// *NotRunningError when none does.
func StatusOf(ctx context.Context, dir string) (*Status, error) {
	env, err := EnvironmentOf(dir)
	if err != nil {
		return nil, err
	}
	vars := env.Map()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, vars["TPU_GKE_ENDPOINT"]+statusPath, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+vars["GOOGLE_OAUTH_ACCESS_TOKEN"])
	// Never through a proxy: it is on this machine.
	client := &http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the sandbox in %s for its status: %w: its log is %s", dir, err, filepath.Join(dir, logFile))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return nil, fmt.Errorf("asking the sandbox in %s for its status: it answered %s: %s", dir, resp.Status, b)
	}
	var st Status
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil {
		return nil, fmt.Errorf("reading the sandbox's status: %w", err)
	}
	return &st, nil
}
