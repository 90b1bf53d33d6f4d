package gke

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Unheard says that a list lacks what these zones and regions have; "" when all
// answered.
func Unheard(silent []string) string {
	if len(silent) == 0 {
		return ""
	}
	return "GKE had no answer from " + strings.Join(silent, ", ") + ", so clusters there are not listed. That passes by itself"
}

// Absent explains that a cluster, which GKE does not know, does not exist, by
// those there are. That they cannot be listed is no news.
func (c *Client) Absent(ctx context.Context, n ClusterName) error {
	found, silent, err := c.ListClusters(ctx, n.Project, "-")
	if err != nil {
		return fmt.Errorf("%w: check project, location and name", notThere(n))
	}
	there := make([]ClusterName, len(found))
	for i, f := range found {
		there[i] = ClusterName{Project: n.Project, Location: f.GetLocation(), Cluster: f.GetName()}
	}
	return AbsentAmong(n, there, silent)
}

// AbsentAmong is Absent with the project's clusters at hand: those of the same
// location are named, else all.
func AbsentAmong(n ClusterName, there []ClusterName, silent []string) error {
	var near, all []string
	for _, t := range there {
		all = append(all, "  "+t.String())
		if t.Location == n.Location {
			near = append(near, "  "+t.String())
		}
	}
	unheard := Unheard(silent)
	if unheard != "" {
		unheard = "\n" + unheard
	}
	switch {
	case len(near) > 0:
		return fmt.Errorf("%w; clusters there are\n%s%s", notThere(n), strings.Join(near, "\n"), unheard)
	case len(all) > 0:
		return fmt.Errorf("%w; clusters elsewhere in the project are\n%s%s", notThere(n), strings.Join(all, "\n"), unheard)
	case unheard != "":
		return fmt.Errorf("%w.%s", notThere(n), unheard)
	}
	return fmt.Errorf("%w, and the project has no cluster at all: make one with tpu_training_cluster", notThere(n))
}

func notThere(n ClusterName) error {
	return errors.New("cluster " + n.Cluster + " does not exist in " + n.Location + " of project " + n.Project)
}
