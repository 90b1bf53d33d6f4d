package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// model is what must exist when an apply has come to its end, and what may
// have been done on the way there.
type model struct {
	cluster  string // "" is none
	pools    []string
	cpu      []string // those of them that are no slices
	machine  string   // of every slice
	diskGB   int32    // of every slice, when not 0
	policies int
	// made may be created, once, and removed may be deleted. Whatever else
	// there was before keeps its identity.
	made, removed []string
	// rounds is how often each of those may happen, if more than once.
	rounds int
}

// verdict is how a world differs from its model.
type verdict struct {
	orphans    []string // GKE has it, Terraform's state does not know it
	duplicates []string // more than the configuration says, or made twice
	losses     []string // the configuration says it and it is not there, or it was there and was taken down
	failures   []string // a command that should have passed
}

func (v verdict) ok() bool {
	return len(v.orphans)+len(v.duplicates)+len(v.losses)+len(v.failures) == 0
}

func (v *verdict) add(w verdict) {
	v.orphans = append(v.orphans, w.orphans...)
	v.duplicates = append(v.duplicates, w.duplicates...)
	v.losses = append(v.losses, w.losses...)
	v.failures = append(v.failures, w.failures...)
}

func (v verdict) String() string {
	var b strings.Builder
	for _, part := range []struct {
		name string
		what []string
	}{{"orphans", v.orphans}, {"duplicates", v.duplicates}, {"losses", v.losses}, {"failures", v.failures}} {
		if len(part.what) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", part.name, strings.Join(part.what, "\n  "))
		}
	}
	return b.String()
}

// judge compares.
func (m model) judge(f facts, known state) (v verdict) {
	for _, c := range f.clusters {
		if c != m.cluster {
			v.duplicates = append(v.duplicates, "cluster "+c)
		}
		if !known.names[c] {
			v.orphans = append(v.orphans, "cluster "+c)
		}
	}
	if m.cluster != "" && !slices.Contains(f.clusters, m.cluster) {
		v.losses = append(v.losses, "cluster "+m.cluster)
	}
	for name := range f.pools {
		if !slices.Contains(m.pools, name) {
			v.duplicates = append(v.duplicates, "node pool "+name)
		}
		if !known.names[name] {
			v.orphans = append(v.orphans, "node pool "+name)
		}
	}
	for _, name := range m.pools {
		p := f.pools[name]
		switch {
		case p == nil:
			v.losses = append(v.losses, "node pool "+name)
			continue
		case p.Status != containerpb.NodePool_RUNNING:
			v.losses = append(v.losses, fmt.Sprintf("node pool %s is %s", name, p.Status))
		}
		if slices.Contains(m.cpu, name) {
			continue
		}
		if got := p.GetConfig().GetMachineType(); m.machine != "" && got != m.machine {
			v.losses = append(v.losses, fmt.Sprintf("node pool %s has machines %s, not %s", name, got, m.machine))
		}
		if got := p.GetConfig().GetDiskSizeGb(); m.diskGB != 0 && got != m.diskGB {
			v.losses = append(v.losses, fmt.Sprintf("node pool %s has disks of %d GB, not %d", name, got, m.diskGB))
		}
	}
	for _, p := range f.policies {
		if !known.names[p] {
			v.orphans = append(v.orphans, "workload policy "+p)
		}
	}
	if n := len(f.policies); n > m.policies {
		v.duplicates = append(v.duplicates, fmt.Sprintf("%d workload policies, not %d: %v", n, m.policies, f.policies))
	} else if n < m.policies {
		v.losses = append(v.losses, fmt.Sprintf("%d workload policies, not %d", n, m.policies))
	}
	rounds := max(1, m.rounds)
	for name, n := range f.created {
		if n > rounds || !slices.Contains(m.made, name) {
			v.duplicates = append(v.duplicates, fmt.Sprintf("%s was created %d times", name, n))
		}
	}
	for name, n := range f.deleted {
		if n > rounds || !slices.Contains(m.removed, name) {
			v.losses = append(v.losses, fmt.Sprintf("%s was deleted %d times", name, n))
		}
	}
	return v
}

// state is what Terraform knows.
type state struct {
	names map[string]bool // of clusters, node pools, workload policies
	// tainted resources would be destroyed by the next apply.
	tainted []string
	count   int // of resources
}

func readState(file string) (state, error) {
	s := state{names: map[string]bool{}}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	var tf struct {
		Resources []struct {
			Type, Name string
			Instances  []struct {
				Status     string
				Attributes json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(b, &tf); err != nil {
		return s, fmt.Errorf("reading Terraform's state: %w", err)
	}
	for _, r := range tf.Resources {
		for _, i := range r.Instances {
			s.count++
			if i.Status == "tainted" {
				s.tainted = append(s.tainted, r.Type+"."+r.Name)
			}
			if err := s.learn(r.Type, i.Attributes); err != nil {
				return s, fmt.Errorf("reading %s.%s in Terraform's state: %w", r.Type, r.Name, err)
			}
		}
	}
	return s, nil
}

// learn takes in what a resource's attributes name.
func (s state) learn(kind string, attributes json.RawMessage) error {
	switch kind {
	case "tpu_training_cluster":
		var c struct {
			Name     string         `json:"name"`
			CPUPools map[string]any `json:"cpu_pools"`
		}
		if err := json.Unmarshal(attributes, &c); err != nil {
			return err
		}
		s.names[c.Name] = true
		for name := range c.CPUPools {
			s.names[name] = true
		}
	case "tpu_slice_pool":
		var p struct {
			PlacementPolicy string `json:"placement_policy"`
			Slices          map[string]struct {
				NodePool string `json:"node_pool"`
			} `json:"slices"`
		}
		if err := json.Unmarshal(attributes, &p); err != nil {
			return err
		}
		s.names[p.PlacementPolicy] = true
		for _, one := range p.Slices {
			s.names[one.NodePool] = true
		}
	}
	return nil
}
