package cluster_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

const typ = "tpu_training_cluster"

// oneCluster is a cluster that one object in state is about, with what made it:
// each run is another provider of one owner.
func oneCluster(t *testing.T) (g *acctest.GKE, run func() *acctest.Protocol, config map[string]any, old *acctest.Resource) {
	t.Helper()
	g = acctest.NewGKE(t)
	run = func() *acctest.Protocol { return g.Protocol(t, "team") }
	config = map[string]any{"name": "main", "deletion_protection": false, "force": true,
		"cpu_pools": map[string]any{"system": map[string]any{"machine_type": "e2-standard-8"}}}
	old, text := run().Apply(typ, nil, config)
	if old == nil || strings.Contains(text, "ERROR") {
		t.Fatal(text)
	}
	return g, run, config, old
}

// Of two objects with one name, which create_before_destroy or another address
// makes of a resource, the old one leaves the cluster to the new one, whenever
// and by whichever run it is deleted. An imported object is the one that it was
// made as.
func TestAnOldObjectLeavesTheClusterToTheNewOne(t *testing.T) {
	t.Parallel()
	g, run, config, old := oneCluster(t)
	renewed, text := run().Apply(typ, nil, config)
	if renewed == nil || !strings.Contains(text, "is taken over") {
		t.Fatal(text)
	}
	if left, text := run().Destroy(old); left != nil || !strings.Contains(text, "Cluster main stays") || len(g.Clusters()) != 1 {
		t.Errorf("%d clusters are left; the deletion of the old object left %v and said %q", len(g.Clusters()), left, text)
	}
	imported, text := run().Import(typ, renewed.State["id"].(string))
	if imported == nil {
		t.Fatal(text)
	}
	config["resource_labels"] = map[string]any{"team": "vision"}
	if imported, text = run().Apply(typ, imported, config); strings.Contains(text, "ERROR") {
		t.Fatal(text)
	}
	if left, text := run().Destroy(imported); left != nil || strings.Contains(text, "stays") || len(g.Clusters()) != 0 {
		t.Errorf("%d clusters are left; the deletion of the object left %v and said %q", len(g.Clusters()), left, text)
	}
}

// An object whose taking over was interrupted goes on with it before the old
// object is deleted, although nothing of the cluster differs.
func TestAnInterruptedTakingOverGoesOn(t *testing.T) {
	t.Parallel()
	g, run, config, old := oneCluster(t)
	// Another operation is under way, for which the new object has to wait.
	release := g.Hold()
	have, err := raw(t, g).GetCluster(t.Context(), &containerpb.GetClusterRequest{Name: path(g)})
	if err == nil {
		_, err = raw(t, g).SetMaintenancePolicy(t.Context(), &containerpb.SetMaintenancePolicyRequest{Name: path(g), MaintenancePolicy: &containerpb.MaintenancePolicy{
			ResourceVersion: have.GetMaintenancePolicy().GetResourceVersion()}})
	}
	if err != nil {
		release()
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	before := g.Calls()["SetLabels"]
	go func() {
		defer interrupt()
		for deadline := time.Now().Add(time.Minute); g.Calls()["SetLabels"] == before && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}()
	renewed, text := run().Under(ctx).Apply(typ, nil, config)
	release()
	if renewed == nil || !strings.Contains(text, "not ready yet") {
		t.Fatal(text)
	}
	renewed, text = run().Refresh(renewed)
	if renewed == nil {
		t.Fatal(text)
	}
	if p := run().Plan(typ, renewed, config); !slices.Contains(p.Changed, "status") {
		t.Errorf("the plan after it changes %v, want status", p.Changed)
	}
	if renewed, text = run().Apply(typ, renewed, config); strings.Contains(text, "ERROR") {
		t.Fatal(text)
	}
	if p := run().Plan(typ, renewed, config); slices.Contains(p.Changed, "status") {
		t.Errorf("the plan after the apply changes %v", p.Changed)
	}
	if left, text := run().Destroy(old); left != nil || !strings.Contains(text, "Cluster main stays") || len(g.Clusters()) != 1 {
		t.Errorf("%d clusters are left; the deletion of the old object left %v and said %q", len(g.Clusters()), left, text)
	}
}
