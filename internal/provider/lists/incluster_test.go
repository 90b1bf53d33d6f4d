package lists_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// What a cluster has of every kind: things made here and elsewhere, and things
// that no resource of ours can be.
func objects(t *testing.T) []client.Object {
	t.Helper()
	v5e, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	unknown := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "v99"}, Spec: kueue.ResourceFlavorSpec{
		NodeLabels: map[string]string{accelerator.LabelAccelerator: "tpu-v99-slice", accelerator.LabelTopology: "4x4"}}}
	cpuQueue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cpu"}, Spec: kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{{
		CoveredResources: []corev1.ResourceName{"cpu"}, Flavors: []kueue.FlavorQuotas{{Name: "cpu"}},
	}}}}
	check := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "budget"}, Spec: kueue.AdmissionCheckSpec{ControllerName: "example.com/budget"}}
	all := []client.Object{
		queue.Flavor{Name: "v5e", Slice: v5e}.Object(), unknown,
		queue.Queue{Name: "research", Quotas: []queue.Quota{{Flavor: "v5e", Slice: v5e, Slices: 2}}}.ClusterQueue(), cpuQueue,
		queue.Cohort{Name: "all"}.Object(), queue.Priority{Name: "urgent", Value: 2000}.Object(), check,
		&kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 250},
	}
	for _, name := range []string{"default", "kube-system", "kueue-system", "gke-managed-system", "research"} {
		all = append(all, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return all
}

func inCluster(t *testing.T) (g *acctest.GKE, s server, cluster string) {
	t.Helper()
	g = acctest.NewGKE(t)
	inside := metav1.ObjectMeta{Namespace: "any"}
	g.Cluster.Keep(t, &kueue.ResourceFlavor{}, &kueue.ClusterQueue{}, &kueue.LocalQueue{ObjectMeta: inside}, &kueue.Cohort{}, &kueue.WorkloadPriorityClass{},
		&kueue.AdmissionCheck{}, &kueue.ProvisioningRequestConfig{}, &kueue.Topology{},
		&corev1.Namespace{}, &corev1.ServiceAccount{ObjectMeta: inside}, &rbacv1.Role{ObjectMeta: inside}, &rbacv1.RoleBinding{ObjectMeta: inside})
	cluster = g.MakeCluster(t, "main")
	return g, serve(t, g, g.Project), cluster
}

// Every kind is listed by one mechanism: of a cluster and of a project, with
// what an import has.
func TestListsOfObjects(t *testing.T) {
	t.Parallel()
	g, s, cluster := inCluster(t)
	k := g.Cluster.Client(t)
	for _, o := range objects(t) {
		if err := k.Apply(t.Context(), o, kube.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for typ, want := range map[string]struct {
		id   string
		read map[string]string // some of what an import reads
	}{
		"tpu_kueue_flavor":          {"/resourceFlavors/v5e", map[string]string{"accelerator": "v5litepod-16"}},
		"tpu_kueue_queue":           {"/clusterQueues/research", map[string]string{"queueing_strategy": "BestEffortFIFO"}},
		"tpu_kueue_cohort":          {"/cohorts/all", nil},
		"tpu_kueue_priority":        {"/workloadPriorityClasses/urgent", nil},
		"tpu_kueue_admission_check": {"/admissionChecks/budget", map[string]string{"controller": "example.com/budget"}},
		"tpu_training_namespace":    {"/namespaces/research", map[string]string{"roles": "as documented"}},
	} {
		name := want.id[strings.LastIndex(want.id, "/")+1:]
		for _, config := range []map[string]string{nil, {"cluster": cluster}, {"location": g.Zone}} {
			names, results := s.query(t, typ, config, true, 0)
			if diff := cmp.Diff([]string{"main/" + name + " (" + g.Zone + ")"}, names); diff != "" {
				t.Errorf("%s in %v (-want +got):\n%s", typ, config, diff)
				continue
			}
			if len(results[0].Diagnostics) > 0 {
				t.Errorf("%s: %v", typ, results[0].Diagnostics[0])
			}
			identity := map[string]string{"project": g.Project, "location": g.Zone, "cluster": "main", "name": name}
			if diff := cmp.Diff(identity, texts(t, results[0].Identity.IdentityData, s.identities[typ])); diff != "" {
				t.Errorf("%s: identity (-want +got):\n%s", typ, diff)
			}
			full := texts(t, results[0].Resource, s.schemas.ResourceSchemas[typ].ValueType())
			if full["id"] != cluster+want.id || full["name"] != name {
				t.Errorf("%s: it is %s, named %s", typ, full["id"], full["name"])
			}
			for attr, value := range want.read {
				if full[attr] != value {
					t.Errorf("%s: %s is %q, want %q", typ, attr, full[attr], value)
				}
			}
		}
		if names, _ := s.query(t, typ, map[string]string{"location": "us-central1-a"}, false, 0); len(names) > 0 {
			t.Errorf("%s elsewhere: %v", typ, names)
		}
	}
}

// A cluster that does not answer is an error when it was named, and a warning
// where it is one of many; a cluster without Kueue has nothing to list.
func TestListsOfObjectsThatFail(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	cluster := g.MakeCluster(t, "main")
	s := serve(t, g, g.Project)
	if names, results := s.query(t, "tpu_kueue_queue", nil, true, 0); len(results) > 0 {
		t.Errorf("without Kueue: %v", names)
	}
	g.Cluster.Deny(true)
	s = serve(t, g, g.Project)
	for _, c := range []struct {
		config   map[string]string
		severity tfprotov6.DiagnosticSeverity
	}{{nil, tfprotov6.DiagnosticSeverityWarning}, {map[string]string{"cluster": cluster}, tfprotov6.DiagnosticSeverityError}} {
		_, results := s.query(t, "tpu_kueue_queue", c.config, true, 0)
		if len(results) != 1 || len(results[0].Diagnostics) != 1 || results[0].Diagnostics[0].Severity != c.severity ||
			!strings.Contains(results[0].Diagnostics[0].Summary, "Cannot list the clusterQueues of "+cluster) {
			t.Errorf("%v: got %+v", c.config, results)
		}
	}
	if _, results := s.query(t, "tpu_kueue_queue", map[string]string{"cluster": cluster + "x"}, true, 0); len(results) != 1 || len(results[0].Diagnostics) != 1 {
		t.Errorf("a cluster that is not there: %+v", results)
	}
}
