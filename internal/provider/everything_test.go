package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
	"google.golang.org/api/option"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

// byHand is what somebody changes in a cluster beside Terraform: a merge patch
// of one object, and where the next plan shows it. Nothing else may be shown,
// but what the change may change in turn.
type byHand struct {
	obj   client.Object
	patch string
	at    string   // address of the resource
	shown []string // its attributes
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
func inside(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

var changedByHand = []byHand{
	{&kueue.WorkloadPriorityClass{ObjectMeta: named("urgent")}, `{"value":1}`, "tpu_kueue_priority.urgent", []string{"value"}},
	{&kueue.ResourceFlavor{ObjectMeta: named("v5e")}, `{"spec":{"nodeLabels":{"rack":"7"}}}`, "tpu_kueue_flavor.v5e", []string{"node_labels"}},
	{&kueue.ResourceFlavor{ObjectMeta: named("v5e-spot")}, `{"spec":{"nodeTaints":null}}`, "tpu_kueue_flavor.spot", []string{"node_taints"}},
	{&kueue.Cohort{ObjectMeta: named("company")}, `{"spec":{"parentName":"elsewhere"}}`, "tpu_kueue_cohort.company", []string{"parent"}},
	{&kueue.Cohort{ObjectMeta: named("lab")}, `{"spec":{"fairSharing":{"weight":"3"}}}`, "tpu_kueue_cohort.lab", []string{"fair_sharing_weight"}},
	{&kueue.ProvisioningRequestConfig{ObjectMeta: named("queued")}, `{"spec":{"retryStrategy":{"backoffLimitCount":9}}}`,
		"tpu_kueue_admission_check.queued", []string{"provisioning_request.retry_limit", "status"}},
	{&kueue.ClusterQueue{ObjectMeta: named("research")}, `{"spec":{"queueingStrategy":"BestEffortFIFO"}}`, "tpu_kueue_queue.research", []string{"queueing_strategy", "status"}},
	{&kueue.ClusterQueue{ObjectMeta: named("batch")}, `{"spec":{"fairSharing":{"weight":"3"}}}`, "tpu_kueue_queue.batch", []string{"fair_sharing_weight", "status"}},
	{&kueue.LocalQueue{ObjectMeta: inside("language", "batch")}, `{"spec":{"stopPolicy":"HoldAndDrain"}}`,
		"tpu_kueue_queue.batch", []string{"namespace_stop_policies.language"}},
	{&rbacv1.Role{ObjectMeta: inside("language", "tpu-viewer")}, `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`,
		"tpu_training_namespace.language", []string{"roles"}},
	{&corev1.ServiceAccount{ObjectMeta: inside("vision", "trainer")}, `{"metadata":{"annotations":{"iam.gke.io/gcp-service-account":"other@my-project.iam.gserviceaccount.com"}}}`,
		"tpu_training_namespace.vision", []string{"service_account.google_service_account"}},
	{&jobset.JobSet{ObjectMeta: inside("vision", "train")}, `{"metadata":{"labels":{"stage":"other"}}}`, "tpu_training_jobset.train", []string{"labels.stage"}},
	{&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: inside("kueue-system", "kueue-controller-manager")},
		`{"spec":{"replicas":2}}`, "tpu_job_controllers.main", []string{"status", "to_repair"}},
}

// All there is in one configuration: one apply makes it and runs its job, the
// second plan is empty, what is changed by hand in any object is shown where it
// is and put back, imports find everything as it is, a flavor in use is renamed,
// names that others still leave are waited for, and one destroy takes it all.
func TestAccEverything(t *testing.T) {
	const project = "acc-everything"
	d := acctest.Workspace(t, "testdata/everything", project)
	began := time.Now()
	said := func(what string) { t.Logf("%5.1fs %s", time.Since(began).Seconds(), what) }
	apply := func(args ...string) string {
		t.Helper()
		defer func() { said("applied") }()
		out, err := d.Output(t.Context(), append([]string{"apply", "-auto-approve", "-no-color"}, args...)...)
		if err != nil {
			t.Fatalf("apply %v: %v\n%s", args, err, out)
		}
		return out
	}
	if out := apply(); !strings.Contains(out, `research = "Active"`) {
		t.Errorf("the queue is not active:\n%s", out)
	}
	planIsEmpty(t, d)
	cl := acctest.Connect(t, "projects/"+project+"/locations/us-west4-a/clusters/main")

	want := map[string][]string{}
	for _, change := range changedByHand {
		if err := cl.Patch(t.Context(), change.obj, client.RawPatch(types.MergePatchType, []byte(change.patch)), client.FieldOwner("kubectl-edit")); err != nil {
			t.Fatal(err)
		}
		want[change.at] = slices.Sorted(slices.Values(append(want[change.at], change.shown...)))
	}
	changeClusterByHand(t, project)
	said("changed by hand")
	want["tpu_training_cluster.main"] = []string{"effective_labels.cost-center", "resource_labels.cost-center"}
	want["tpu_slice_pool.v5e"] = []string{"ready_slices", "slices", "status"} // of which one is OUTDATED
	if diff := cmp.Diff(want, plan(t, d).changes()); diff != "" {
		t.Errorf("what the plan shows (-changed by hand +shown):\n%s", diff)
	}
	apply()
	imported(t, d, project) // also: what was changed is back
	said("imported")

	// Somebody leaves two names while the apply that wants them runs.
	ending(t, cl, &corev1.Namespace{ObjectMeta: named("late")}, &corev1.ConfigMap{ObjectMeta: inside("late", "held")})
	ending(t, cl, &kueue.ResourceFlavor{ObjectMeta: named("late")}, nil)
	renamed := []string{"-var=latecomers=true", "-var=flavor=v5e-2x4"}
	apply(renamed...)
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: named("late")}, &kueue.ResourceFlavor{ObjectMeta: named("late")}, &kueue.ResourceFlavor{ObjectMeta: named("v5e-2x4")},
	} {
		if found, err := cl.Fetch(t.Context(), obj); err != nil || !found || obj.GetDeletionTimestamp() != nil || obj.GetLabels()["left"] != "" {
			t.Errorf("%T %s is not a new one: found %t, %v, %v", obj, obj.GetName(), found, obj.GetLabels(), err)
		}
	}
	settles(t, "the old flavor goes", func() error {
		if found, err := cl.Fetch(t.Context(), &kueue.ResourceFlavor{ObjectMeta: named("v5e")}); err != nil || found {
			return fmt.Errorf("found %t, %w", found, err)
		}
		return nil
	})
	planIsEmpty(t, d, renamed...)
	t.Run("query", func(t *testing.T) { query(t, project) })
	t.Run("jobs", func(t *testing.T) { jobs(t, cl, project) })
	said("its jobs ended")
	destroy(t, d, project)
	said("destroyed")
}

// changeClusterByHand sets a label of the cluster and one of the first slice's
// nodes, with Google's own client.
func changeClusterByHand(t *testing.T, project string) {
	t.Helper()
	gke, name := googleClient(t), "projects/"+project+"/locations/us-west4-a/clusters/main"
	c, err := gke.GetCluster(t.Context(), &containerpb.GetClusterRequest{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	c.ResourceLabels["cost-center"] = "other"
	var labels map[string]string
	for _, p := range c.NodePools {
		if p.Name == "v5e-0" {
			labels = p.Config.Labels
			labels["team"] = "other"
		}
	}
	_, err = gke.SetLabels(t.Context(), &containerpb.SetLabelsRequest{Name: name, LabelFingerprint: c.LabelFingerprint, ResourceLabels: c.ResourceLabels})
	if err != nil {
		t.Fatal(err)
	}
	settles(t, "node labels are set", func() error {
		_, err := gke.UpdateNodePool(t.Context(), &containerpb.UpdateNodePoolRequest{Name: name + "/nodePools/v5e-0", Labels: &containerpb.NodeLabels{Labels: labels}})
		return err
	})
	settles(t, "GKE is done", func() error {
		ops, err := gke.ListOperations(t.Context(), &containerpb.ListOperationsRequest{Parent: "projects/" + project + "/locations/us-west4-a"})
		if err != nil {
			return err
		}
		for _, op := range ops.Operations {
			if op.Status != containerpb.Operation_DONE {
				return fmt.Errorf("%s is %s", op.OperationType, op.Status)
			}
		}
		return nil
	})
}

// googleClient is Google's own client of the sandbox's GKE API.
func googleClient(t *testing.T) *container.ClusterManagerClient {
	t.Helper()
	env := map[string]string{}
	for _, kv := range acctest.Sandbox(t).Env() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	hc := oauth2.NewClient(t.Context(), oauth2.StaticTokenSource(&oauth2.Token{AccessToken: env["GOOGLE_OAUTH_ACCESS_TOKEN"]}))
	gke, err := container.NewClusterManagerRESTClient(t.Context(), option.WithEndpoint(env["TPU_GKE_ENDPOINT"]), option.WithHTTPClient(hc))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gke.Close() })
	return gke
}

// shown is a plan as the command line prints it for programs.
type shown struct {
	ResourceChanges []struct {
		Address string
		Change  struct {
			Actions       []string
			Before, After any
			AfterUnknown  any `json:"after_unknown"`
			Importing     any
		}
	} `json:"resource_changes"`
}

func plan(t *testing.T, d *tfrun.Dir, args ...string) (p shown) {
	t.Helper()
	if out, err := d.Output(t.Context(), append([]string{"plan", "-no-color", "-out=shown.tfplan"}, args...)...); err != nil {
		t.Fatalf("plan: %v\n%s", err, out)
	}
	out, err := d.Output(t.Context(), "show", "-json", "shown.tfplan")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(bytes.NewBufferString(out)).Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}

// changes is which attributes of which resources a plan changes in place.
// Anything but a change in place is named by its action.
func (p shown) changes() map[string][]string {
	got := map[string][]string{}
	for _, rc := range p.ResourceChanges {
		switch actions := strings.Join(rc.Change.Actions, " "); actions {
		case "no-op", "read": // what is read depends on what changes
		case "update":
			at := map[string]bool{}
			differing(at, "", rc.Change.Before, rc.Change.After, rc.Change.AfterUnknown)
			got[rc.Address] = slices.Sorted(maps.Keys(at))
		default:
			got[rc.Address] = []string{actions}
		}
	}
	return got
}

// differing adds the paths at which a plan changes something to at.
func differing(at map[string]bool, path string, before, after, unknown any) {
	x, isMap := before.(map[string]any)
	y, stays := after.(map[string]any)
	z, _ := unknown.(map[string]any)
	if !isMap || !stays {
		if unknown == true || !cmp.Equal(before, after) {
			at[strings.TrimPrefix(path, ".")] = true
		}
		return
	}
	for _, m := range []map[string]any{x, y, z} {
		for k := range m {
			differing(at, path+"."+k, x[k], y[k], z[k])
		}
	}
}

// imported plans to import everything into an empty state: all of it is found,
// and nothing would be changed but what no cluster knows.
func imported(t *testing.T, d *tfrun.Dir, project string) {
	t.Helper()
	cluster := "projects/" + project + "/locations/us-west4-a/clusters/main"
	ids := map[string]string{
		"tpu_training_cluster.main":        "",
		"tpu_slice_pool.v5e":               "/nodePools/v5e",
		"tpu_job_controllers.main":         "/jobControllers",
		"tpu_kueue_priority.urgent":        "/workloadPriorityClasses/urgent",
		"tpu_kueue_flavor.v5e":             "/resourceFlavors/v5e",
		"tpu_kueue_flavor.spot":            "/resourceFlavors/v5e-spot",
		"tpu_kueue_flavor.parts":           "/resourceFlavors/v6e-parts",
		"tpu_kueue_cohort.company":         "/cohorts/company",
		"tpu_kueue_cohort.lab":             "/cohorts/lab",
		"tpu_kueue_admission_check.queued": "/admissionChecks/queued",
		"tpu_training_namespace.vision":    "/namespaces/vision",
		"tpu_training_namespace.language":  "/namespaces/language",
		"tpu_kueue_queue.research":         "/clusterQueues/research",
		"tpu_kueue_queue.batch":            "/clusterQueues/batch",
		"tpu_training_jobset.train":        "/namespaces/vision/jobsets/train",
	}
	var blocks strings.Builder
	for at, id := range ids {
		fmt.Fprintf(&blocks, "import {\n  to = %s\n  id = %q\n}\n", at, cluster+id)
	}
	if err := d.Write("imports.tf", blocks.String()); err != nil {
		t.Fatal(err)
	}
	p := plan(t, d, "-state=none.tfstate")
	if err := os.Remove(filepath.Join(d.Path, "imports.tf")); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"tpu_training_cluster.main": {"deletion_protection"},
		"tpu_job_controllers.main":  {"adopt", "status"},
		"tpu_kueue_queue.research":  {"flavors", "status"}, // which pool it follows
		"tpu_training_jobset.train": {"wait_for"},
	}
	if diff := cmp.Diff(want, p.changes()); diff != "" {
		t.Errorf("what an import does not find as it is:\n%s", diff)
	}
	for _, rc := range p.ResourceChanges {
		if _, listed := ids[rc.Address]; listed != (rc.Change.Importing != nil) {
			t.Errorf("%s: importing %v", rc.Address, rc.Change.Importing)
		}
	}
}

// ending makes obj, deletes it, and keeps it terminating for three seconds by a
// finalizer on inside, which is in it, or else on itself.
func ending(t *testing.T, cl *kube.Client, obj, inside client.Object) {
	t.Helper()
	held := obj
	all := []client.Object{obj}
	if inside != nil {
		held = inside
		all = append(all, inside)
	}
	obj.SetLabels(map[string]string{"left": "over"})
	held.SetFinalizers([]string{"example.com/held"})
	for _, o := range all {
		if err := cl.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	free := held.DeepCopyObject().(client.Object)
	go func() {
		select {
		case <-t.Context().Done():
		case <-time.After(3 * time.Second):
			// Only ours: Kueue has a finalizer of its own on flavors.
			patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/metadata/finalizers/0","value":"example.com/held"},{"op":"remove","path":"/metadata/finalizers/0"}]`))
			if err := cl.Patch(t.Context(), free, patch); err != nil {
				t.Errorf("releasing %T: %v", free, err)
			}
		}
	}()
}
