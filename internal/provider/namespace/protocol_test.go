package namespace_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

const typ = "tpu_training_namespace"

func TestMain(m *testing.M) { acctest.Main(m) }

func world(t *testing.T) (g *acctest.GKE, k *kube.Client, cluster string) {
	t.Helper()
	g = acctest.NewGKE(t)
	inside := metav1.ObjectMeta{Namespace: "any"}
	g.Cluster.Keep(t, &corev1.Namespace{}, &corev1.ServiceAccount{ObjectMeta: inside}, &rbacv1.Role{ObjectMeta: inside}, &rbacv1.RoleBinding{ObjectMeta: inside})
	return g, g.Cluster.Client(t), g.MakeCluster(t, "main")
}

type object = map[string]any

func with(base, more object) object {
	out := maps.Clone(base)
	maps.Copy(out, more)
	return out
}

func everything(cluster string) object {
	return object{
		"cluster": cluster, "name": "research", "labels": object{"team": "a"}, "annotations": object{"cost-centre": "42"},
		"service_account": object{"name": "trainer", "google_service_account": "trainer@p.iam.gserviceaccount.com", "image_pull_secrets": []any{"registry", "mirror"}},
		"submitters":      []any{"group:ml@example.com", "serviceAccount:ci/runner"}, "viewers": []any{"user:lead@example.com"},
	}
}

// Create, nothing to do, every field's drift shown as that field and put right,
// destroy.
func TestLifecycle(t *testing.T) {
	g, k, cluster := world(t)
	p := g.Protocol(t, "team")
	config := everything(cluster)
	r, text := p.Apply(typ, nil, config)
	if text != "" || r == nil {
		t.Fatalf("create: %v, %s", r, text)
	}
	changes := func() []string {
		t.Helper()
		fresh, text := p.Refresh(r)
		if fresh == nil || text != "" {
			t.Fatalf("refresh: %v, %s", fresh, text)
		}
		plan := p.Plan(typ, fresh, config)
		if plan.Text != "" || len(plan.Replace) > 0 {
			t.Errorf("plan: %s, replaces for %v", plan.Text, plan.Replace)
		}
		return plan.Changed
	}
	empty := func(when string) {
		t.Helper()
		if diff := cmp.Diff([]string{}, changes(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s a plan changes (-want +got):\n%s", when, diff)
		}
	}
	empty("after the creation")

	in := metav1.ObjectMeta{Namespace: "research"}
	named := func(name string) metav1.ObjectMeta { in.Name = name; return in }
	for _, c := range []struct {
		obj   client.Object
		patch string // "" deletes
		want  string
	}{
		{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research"}}, `{"metadata":{"labels":{"team":"b"}}}`, "labels"},
		{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research"}}, `{"metadata":{"annotations":{"cost-centre":null}}}`, "annotations"},
		{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research"}}, `{"metadata":{"labels":{"somebody":"else"}}}`, ""},
		{&corev1.ServiceAccount{ObjectMeta: named("trainer")}, `{"metadata":{"annotations":{"iam.gke.io/gcp-service-account":"other@p.iam.gserviceaccount.com"}}}`, "service_account"},
		{&corev1.ServiceAccount{ObjectMeta: named("trainer")}, `{"imagePullSecrets":[{"name":"registry"}]}`, "service_account"},
		{&corev1.ServiceAccount{ObjectMeta: named("trainer")}, "", "service_account"},
		{&rbacv1.RoleBinding{ObjectMeta: named("tpu-submitter")}, `{"subjects":[{"kind":"User","name":"mallory@example.com","apiGroup":"rbac.authorization.k8s.io"}]}`, "submitters"},
		{&rbacv1.RoleBinding{ObjectMeta: named("tpu-submitter")}, `{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`, "submitters"},
		{&rbacv1.RoleBinding{ObjectMeta: named("tpu-viewer")}, "", "viewers"},
		{&rbacv1.Role{ObjectMeta: named("tpu-submitter")}, `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`, "roles"},
		{&rbacv1.Role{ObjectMeta: named("tpu-viewer")}, "", "roles"},
	} {
		what := c.obj.GetName() + " " + c.patch
		var err error
		if c.patch == "" {
			err = k.Remove(t.Context(), c.obj, false)
		} else {
			err = k.Patch(t.Context(), c.obj, client.RawPatch("application/merge-patch+json", []byte(c.patch)))
		}
		if err != nil {
			t.Fatal(what, err)
		}
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if diff := cmp.Diff(want, changes(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +planned):\n%s", what, diff)
		}
		fresh, _ := p.Refresh(r)
		if r, text = p.Apply(typ, fresh, config); text != "" {
			t.Fatalf("%s: putting it right: %s", what, text)
		}
		empty("after putting " + what + " right")
	}

	config = object{"cluster": cluster, "name": "research", "viewers": []any{"group:all@example.com"}}
	if r, text = p.Apply(typ, r, config); text != "" {
		t.Fatal(text)
	}
	empty("after the update")
	for _, gone := range []client.Object{&corev1.ServiceAccount{ObjectMeta: named("trainer")}, &rbacv1.Role{ObjectMeta: named("tpu-submitter")}, &rbacv1.RoleBinding{ObjectMeta: named("tpu-submitter")}} {
		if found, err := k.Fetch(t.Context(), gone); err != nil || found {
			t.Errorf("%T %s: found %t, %v", gone, gone.GetName(), found, err)
		}
	}
	g.Cluster.Keep(t, &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "any"}})
	job := &jobset.JobSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: jobset.SchemeGroupVersion.String(), Kind: "JobSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "theirs"},
	}
	if err := k.Apply(t.Context(), job, kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if left, text := p.Destroy(r); left == nil || !strings.Contains(text, "theirs (") || !strings.Contains(text, "force = true") {
		t.Errorf("a destroy with somebody's job in it: %v, %s", left, text)
	}
	if err := k.Remove(t.Context(), job, false); err != nil {
		t.Fatal(err)
	}
	if left, text := p.Destroy(r); left != nil || text != "" {
		t.Errorf("destroy: %v, %s", left, text)
	}
	if gone, text := p.Refresh(r); gone != nil || text != "" {
		t.Errorf("after the destroy: %v, %s", gone, text)
	}
}

// An import finds the account and who holds the roles.
func TestImport(t *testing.T) {
	g, k, cluster := world(t)
	n := queue.Namespace{Name: "research", ServiceAccount: "trainer", PullSecrets: []string{"registry"},
		Submitters: []queue.Subject{{Kind: "Group", Name: "ml@example.com"}}}
	for _, o := range n.Objects() {
		if err := k.Apply(t.Context(), o, kube.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r, text := g.Protocol(t, "").Import(typ, cluster+"/namespaces/research")
	if text != "" || r == nil {
		t.Fatalf("%v, %s", r, text)
	}
	want := object{"name": "trainer", "google_service_account": nil, "image_pull_secrets": []any{"registry"}}
	if diff := cmp.Diff(want, r.State["service_account"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{"group:ml@example.com"}, r.State["submitters"]); diff != "" {
		t.Error(diff)
	}
	if r.State["viewers"] != nil || r.State["roles"] != "as documented" {
		t.Errorf("viewers %v, roles %v", r.State["viewers"], r.State["roles"])
	}
}

// What the API server would refuse or undo is refused before anything is
// written.
func TestRefusals(t *testing.T) {
	g, _, cluster := world(t)
	p := g.Protocol(t, "")
	for name, c := range map[string]struct {
		change object
		want   string
	}{
		"name":               {object{"name": "Research"}, "lowercase"},
		"system":             {object{"name": "kube-jobs"}, "belong to Kubernetes"},
		"controllers'":       {object{"name": "kueue-system"}, "belongs to Kubernetes, GKE or the job controllers"},
		"the default":        {object{"name": "default"}, "namespaces of their own"},
		"label":              {object{"labels": object{"a b": "c"}}, "a b"},
		"the name's label":   {object{"labels": object{"kubernetes.io/metadata.name": "other"}}, "Kubernetes sets it"},
		"our label":          {object{"labels": object{"app.kubernetes.io/managed-by": "me"}}, "leave it out"},
		"annotation":         {object{"annotations": object{"a b": "c"}}, "annotations"},
		"long annotation":    {object{"annotations": object{"a": strings.Repeat("x", 300<<10)}}, "annotations"},
		"account":            {object{"service_account": object{"name": "T"}}, "service_account"},
		"google account":     {object{"service_account": object{"name": "t", "google_service_account": "me"}}, "e-mail"},
		"no pull secrets":    {object{"service_account": object{"name": "t", "image_pull_secrets": []any{}}}, "at least 1"},
		"bad pull secret":    {object{"service_account": object{"name": "t", "image_pull_secrets": []any{"S"}}}, `image pull secret "S"`},
		"pull secret twice":  {object{"service_account": object{"name": "t", "image_pull_secrets": []any{"s", "s"}}}, "listed twice"},
		"nobody":             {object{"viewers": []any{"lead@example.com"}}, "user:EMAIL"},
		"account's bad name": {object{"submitters": []any{"serviceAccount:ci/Runner"}}, `service account "Runner"`},
	} {
		if text := p.Validate(typ, with(everything(cluster), c.change)); !strings.Contains(text, "ERROR") || !strings.Contains(text, c.want) {
			t.Errorf("%s: want an error with %q, got %.300q", name, c.want, text)
		}
	}
}

// What depends on values that only the apply knows is not checked before.
func TestUnknownValues(t *testing.T) {
	g, _, cluster := world(t)
	p := g.Protocol(t, "")
	check := func(what string, change object) {
		t.Helper()
		config := with(everything(cluster), change)
		if text := p.Validate(typ, config) + p.Plan(typ, nil, config).Text; text != "" {
			t.Errorf("%s unknown: %s", what, text)
		}
	}
	for name := range everything(cluster) {
		check(name, object{name: acctest.Unknown})
	}
	check("a label", object{"labels": object{"a": acctest.Unknown}})
	check("a viewer", object{"viewers": []any{acctest.Unknown}})
	check("the account's name", object{"service_account": object{"name": acctest.Unknown}})
	check("a pull secret", object{"service_account": object{"name": "t", "image_pull_secrets": []any{acctest.Unknown}}})
}
