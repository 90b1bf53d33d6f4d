package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// answerTime is how long a cluster may take to say what runs on it.
const answerTime = 20 * time.Second

// takingKey is where private state keeps that the cluster was still being taken
// over when a run was interrupted: it runs and nothing of it differs, but it
// says that it is another object's, whose deletion would take it along.
const takingKey = "taking_over"

// taken tells whether another object in a state holds the cluster now, which the
// deletion of this one must leave to it.
func (r *Resource) taken(ctx context.Context, n gke.ClusterName, object string, diags *diag.Diagnostics) bool {
	found, err := r.data.GKE.GetCluster(ctx, n)
	if errors.Is(err, gke.NotFound) {
		return false
	}
	if err != nil {
		diags.AddError("Could not delete cluster "+n.Cluster, "Looking for whose it is failed, so nothing was deleted: "+err.Error())
		return false
	}
	holder := gke.OwnershipOf(found.GetResourceLabels()).Object
	if holder == "" || holder == object {
		return false
	}
	diags.AddWarning("Cluster "+n.Cluster+" stays",
		fmt.Sprintf("Another object of this name has taken %s over, by create_before_destroy, at another address or in another state, and deletes it when it is destroyed. "+
			"If there is no such object, because the run that made it was killed before it could save its state, apply the resource once more and destroy it then, or delete the cluster: "+
			"gcloud container clusters delete %s --location %s --project %s", n, n.Cluster, n.Location, n.Project))
	return true
}

// guard stops the deletion of a cluster that others still use: one with node
// pools that this resource did not make, with jobs that run, or one that does
// not say whether any do.
func (r *Resource) guard(ctx context.Context, n gke.ClusterName, m model, diags *diag.Diagnostics) {
	if m.Force.ValueBool() {
		return
	}
	others, err := r.data.GKE.OtherPools(ctx, n, m.ownedPools())
	if errors.Is(err, gke.NotFound) {
		return
	}
	if err != nil {
		diags.AddError("Could not delete cluster "+n.Cluster, "Looking for what else uses it failed, so nothing was deleted: "+err.Error())
		return
	}
	var found []string
	if len(others) > 0 {
		found = append(found, "It has node pools that this resource did not make:\n  "+strings.Join(others, "\n  "))
	}
	status := m.Status.ValueString()
	if status != statusError && status != statusStopping { // the one never came up, the other is on its way out
		jobs, err := r.running(ctx, n)
		// One that is still being made may have no API server yet.
		if err != nil && status != statusProvisioning && !errors.Is(err, gke.NotFound) {
			diags.AddError("What runs on cluster "+n.Cluster+" is not known",
				"The cluster did not say whether jobs run on it, so nothing was deleted: "+err.Error()+
					"\nDestroy again when it answers, or set force = true and apply, and then destroy: that deletes the cluster with everything on it, without asking it.")
		}
		if len(jobs) > 0 {
			found = append(found, "Jobs run on it:\n  "+strings.Join(jobs, "\n  "))
		}
	}
	if len(found) > 0 {
		diags.AddError("Cluster "+n.Cluster+" is still in use",
			strings.Join(found, "\n")+"\nNothing was deleted. Remove these first (slices by destroying their tpu_slice_pool, jobs by deleting their JobSets or waiting for their end), "+
				"or set force = true and apply, and then destroy: that deletes the cluster with everything on it.")
	}
}

// running names the jobs whose pods run or are about to.
func (r *Resource) running(ctx context.Context, n gke.ClusterName) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	k, err := r.data.Cluster(ctx, n.String())
	if err != nil {
		return nil, err
	}
	runs, err := training.List(ctx, k, "")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, run := range runs {
		if slices.Contains([]training.State{training.Admitted, training.Starting, training.Running, training.Restarting}, run.State) {
			names = append(names, fmt.Sprintf("%s/%s (%s)", run.Namespace, run.Name, run.State))
		}
	}
	return names, nil
}
