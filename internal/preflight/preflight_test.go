package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

func slice(t *testing.T, name string) accelerator.Slice {
	t.Helper()
	s, err := accelerator.Resolve(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func job(t *testing.T) training.Spec {
	return training.Spec{Namespace: "research", Name: "train", Queue: "q", Slice: slice(t, "v5litepod-16"), Slices: 2, Image: "train:1", Restart: training.DefaultRestart()}
}

// world is a cluster in which nothing is in the way of job.
func world(t *testing.T) []client.Object {
	deployment := func(c controller) client.Object {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.deployment}, Status: appsv1.DeploymentStatus{AvailableReplicas: 1}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Image: "registry:5000/" + c.title + ":v1.2.3"}}
		return d
	}
	flavor := func(name, accelerator string) client.Object {
		return &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{NodeLabels: slice(t, accelerator).NodeLabels()}}
	}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research"}},
		deployment(jobSetController), deployment(kueueController),
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "q"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}},
		clusterQueue("cq", "", "v5e", 32), flavor("v5e", "v5litepod-16"), flavor("v6e", "v6e-8"),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "host", Labels: slice(t, "v5litepod-16").NodeLabels()}},
	}
}

func clusterQueue(name, cohort, flavor string, chips int64, edit ...func(*kueue.ResourceQuota)) *kueue.ClusterQueue {
	q := kueue.ResourceQuota{Name: accelerator.ResourceName, NominalQuota: *resource.NewQuantity(chips, resource.DecimalSI)}
	for _, e := range edit {
		e(&q)
	}
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{
		CohortName: kueue.CohortReference(cohort),
		ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{accelerator.ResourceName},
			Flavors: []kueue.FlavorQuotas{{Name: kueue.ResourceFlavorReference(flavor), Resources: []kueue.ResourceQuota{q}}}}},
	}}
}

// cluster has these objects and serves these kinds; refuse fails what it says.
func cluster(t *testing.T, objects []client.Object, kinds []schema.GroupVersionKind, refuse func(verb string, o any) error) *kube.Client {
	t.Helper()
	var versions []schema.GroupVersion
	for _, k := range kinds {
		versions = append(versions, k.GroupVersion())
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	for _, k := range kinds {
		mapper.Add(k, meta.RESTScopeNamespace)
	}
	answer := func(verb string, o any) error {
		if refuse == nil {
			return nil
		}
		return refuse(verb, o)
	}
	c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := answer("get", o); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := answer("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	return &kube.Client{WithWatch: c, Name: "c"}
}

var served = []schema.GroupVersionKind{jobSetController.kind, kueueController.kind}

func forbidden(kind string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no"))
}

// lines are items as "sign name: text".
func lines(items []Item) string {
	var b strings.Builder
	for _, i := range items {
		b.WriteString(string(i.Result) + " " + i.Name + ": " + i.Text + "\n")
	}
	return b.String()
}

type answers struct {
	image  error
	writes bool
	bucket error
	slow   bool
}

func (a answers) Exists(ctx context.Context, _ string) error {
	if a.slow {
		<-ctx.Done()
		return ctx.Err()
	}
	return a.image
}

func (a answers) Writable(context.Context, string) (bool, error) { return a.writes, a.bucket }

func without(objects []client.Object, kind string) []client.Object {
	return slices.DeleteFunc(objects, func(o client.Object) bool {
		gvks, _, err := kube.Scheme.ObjectKinds(o)
		return err == nil && gvks[0].Kind == kind
	})
}

func TestAllIsWell(t *testing.T) {
	s := job(t)
	s.OutputDir = "gs://runs/a"
	items := Checks{Cluster: cluster(t, world(t), served, nil), Images: answers{}, Buckets: answers{writes: true}}.Run(t.Context(), s)
	want := `passed cluster: c answers
passed namespace: research
passed controllers: JobSet v1.2.3, Kueue v1.2.3
passed queue: q
passed quota: 32 of at most 32 chips of v5e
passed image: train:1
passed output: gs://runs can be written to
passed slices: there are hosts of v5litepod-16
`
	if got := lines(items); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if stops := Stops(items); len(stops) > 0 {
		t.Errorf("stops: %v", stops)
	}
	s.OutputDir = "s3://runs/a"
	if got := lines(Checks{Cluster: cluster(t, world(t), served, nil), Images: answers{}, Buckets: answers{}}.Run(t.Context(), s)); !strings.Contains(got, "unknown output: whether s3://runs/a can be written to is not known: only Cloud Storage (gs://) is looked at") {
		t.Errorf("elsewhere:\n%s", got)
	}
	s.Queue, s.OutputDir = "", "/mnt/runs"
	if got := lines(Checks{Cluster: cluster(t, world(t), served[:1], nil)}.Run(t.Context(), s)); strings.Contains(got, "failed") || strings.Contains(got, "queue") || strings.Contains(got, "Kueue") || strings.Contains(got, "output") {
		t.Errorf("without a queue:\n%s", got)
	}
}

func TestWhatIsInTheWay(t *testing.T) {
	all := func(string, any) error { return errors.New("nobody answers") }
	forbid := func(kind string) func(string, any) error {
		return func(_ string, o any) error {
			if strings.HasSuffix(fmt.Sprintf("%T", o), "."+kind) {
				return forbidden(kind)
			}
			return nil
		}
	}
	tests := map[string]struct {
		objects []client.Object
		kinds   []schema.GroupVersionKind
		refuse  func(string, any) error
		edit    func(*training.Spec)
		checks  Checks
		want    string
	}{
		"no cluster":   {refuse: all, want: "failed cluster: "},
		"no namespace": {objects: without(world(t), "Namespace"), want: "failed namespace: research does not exist: make it"},
		"a namespace that goes": {objects: append(without(world(t), "Namespace"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research", DeletionTimestamp: ptr.To(metav1.Now()), Finalizers: []string{"kubernetes"}}}),
			want: "failed namespace: research is being deleted, and nothing can be made in it: choose another --namespace"},
		"no JobSet":             {kinds: served[1:], want: "failed controllers: JobSet is not installed (tpu_job_controllers installs it)"},
		"no Kueue":              {kinds: served[:1], want: "failed controllers: Kueue is not installed"},
		"an old Kueue":          {kinds: []schema.GroupVersionKind{served[0], {Group: "kueue.x-k8s.io", Version: "v1beta1", Kind: "Workload"}}, want: "failed controllers: Kueue does not serve kueue.x-k8s.io/v1beta2, which this tpuctl speaks: upgrade it"},
		"controllers elsewhere": {objects: without(world(t), "Deployment"), want: "passed controllers: JobSet, Kueue"},
		"no queue":              {edit: func(s *training.Spec) { s.Queue = "r" }, want: "failed queue: namespace research has no queue r: it has q"},
		"no queue at all":       {objects: without(world(t), "LocalQueue"), want: "failed queue: namespace research has no queue q: list the namespace"},
		"no cluster queue":      {objects: without(world(t), "ClusterQueue"), want: "unknown quota: ClusterQueue cq does not exist"},
		"too many slices":       {edit: func(s *training.Spec) { s.Slices = 3 }, want: "failed quota: queue cq can never have 48 chips of v5e (3 slices): with all that it may borrow it has 32"},
		"another shape":         {edit: func(s *training.Spec) { s.Slice = slice(t, "v6e-8") }, want: "failed quota: queue cq has no flavor for v6e-8: it has v5e"},
		"no host":               {objects: without(world(t), "Node"), want: "unknown slices: no host of v5litepod-16 is there now, unless"},
		"no node pool": {objects: without(world(t), "Node"), checks: Checks{Provisions: func(context.Context, accelerator.Slice) (bool, error) { return false, nil }},
			want: "failed slices: the cluster has no node pool of v5litepod-16"},
		"made on demand": {objects: without(world(t), "Node"), checks: Checks{Provisions: func(context.Context, accelerator.Slice) (bool, error) { return true, nil }},
			want: "passed slices: no host of v5litepod-16 is there now; node pools"},
		"nobody says": {objects: without(world(t), "Node"), checks: Checks{Provisions: func(context.Context, accelerator.Slice) (bool, error) { return false, errors.New("no access") }},
			want: "whether one is made on demand is not known: no access"},
		"no image":           {checks: Checks{Images: answers{image: &MissingError{"image train:1"}}}, want: "failed image: image train:1 does not exist: push it"},
		"an image in hiding": {checks: Checks{Images: answers{image: errors.New("no credentials")}}, want: "unknown image: train:1: whether it is there is not known: no credentials"},
		"no bucket":          {checks: Checks{Buckets: answers{bucket: &MissingError{"bucket gs://runs"}}}, want: "failed output: bucket gs://runs does not exist"},
		"not our bucket":     {checks: Checks{Buckets: answers{}}, want: "unknown output: this account may not write to gs://runs"},
		"a bucket in hiding": {checks: Checks{Buckets: answers{bucket: errors.New("403")}}, want: "unknown output: whether gs://runs can be written to is not known: 403"},
		"namespaces hidden": {refuse: func(_ string, o any) error {
			if m, ok := o.(*metav1.PartialObjectMetadata); ok && m.Kind == "Namespace" {
				return forbidden("namespaces")
			}
			return nil
		}, want: "unknown namespace: research: this account may not look at namespaces"},
		"queues hidden":        {refuse: forbid("LocalQueue"), want: "unknown queue: q: this account may not look at queues"},
		"cluster queue hidden": {refuse: forbid("ClusterQueue"), want: "unknown quota: this account may not look at the quota of queue cq"},
		"flavors hidden":       {refuse: forbid("ResourceFlavor"), want: "unknown quota: the flavors of queue cq cannot be read"},
		"nodes hidden": {refuse: func(verb string, _ any) error {
			if verb == "list" {
				return forbidden("nodes")
			}
			return nil
		}, want: "unknown slices: this account may not look at nodes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := job(t)
			s.OutputDir = "gs://runs/a"
			if tt.edit != nil {
				tt.edit(&s)
			}
			if tt.objects == nil {
				tt.objects = world(t)
			}
			if tt.kinds == nil {
				tt.kinds = served
			}
			tt.checks.Cluster = cluster(t, tt.objects, tt.kinds, tt.refuse)
			items := tt.checks.Run(t.Context(), s)
			if got := lines(items); !strings.Contains(got, tt.want) {
				t.Errorf("got\n%s\nwant %q", got, tt.want)
			}
			if wants := strings.HasPrefix(tt.want, "failed"); wants != (len(Stops(items)) > 0) {
				t.Errorf("%d stops:\n%s", len(Stops(items)), lines(items))
			}
		})
	}
}

// A controller that is down may be starting, and a queue that is held may be let
// go: they are said.
func TestWhatMayPass(t *testing.T) {
	objects := world(t)
	for _, o := range objects {
		switch o := o.(type) {
		case *appsv1.Deployment:
			o.Status.AvailableReplicas = 0
		case *kueue.LocalQueue:
			o.Status.Conditions = []metav1.Condition{{Type: kueue.LocalQueueActive, Status: metav1.ConditionFalse, Reason: "Stopped", Message: "it is stopped"}}
		}
	}
	got := lines(Checks{Cluster: cluster(t, objects, served, nil)}.Run(t.Context(), job(t)))
	for _, want := range []string{"unknown controllers: JobSet is down: no pod of it in namespace jobset-system is ready; Kueue is down", "unknown queue: q admits nothing now (Stopped): it is stopped"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q", got, want)
		}
	}
}

// The most that a queue can have counts what its cohort may lend.
func TestBorrowing(t *testing.T) {
	limit := func(n int64) func(*kueue.ResourceQuota) {
		return func(q *kueue.ResourceQuota) { q.BorrowingLimit = resource.NewQuantity(n, resource.DecimalSI) }
	}
	lends := func(n int64) func(*kueue.ResourceQuota) {
		return func(q *kueue.ResourceQuota) { q.LendingLimit = resource.NewQuantity(n, resource.DecimalSI) }
	}
	for name, tt := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"all of it":         {[]client.Object{clusterQueue("cq", "all", "v5e", 16), clusterQueue("b", "all", "v5e", 32), clusterQueue("c", "else", "v5e", 64)}, "passed quota: 32 of at most 48 chips"},
		"a limit":           {[]client.Object{clusterQueue("cq", "all", "v5e", 16, limit(8)), clusterQueue("b", "all", "v5e", 32)}, "failed quota: queue cq can never have 32 chips of v5e (2 slices): with all that it may borrow it has 24"},
		"nothing":           {[]client.Object{clusterQueue("cq", "all", "v5e", 16, limit(0)), clusterQueue("b", "all", "v5e", 32)}, "it has 16"},
		"what others lend":  {[]client.Object{clusterQueue("cq", "all", "v5e", 16), clusterQueue("b", "all", "v5e", 32, lends(4))}, "it has 20"},
		"of another flavor": {[]client.Object{clusterQueue("cq", "all", "v5e", 16), clusterQueue("b", "all", "v6e", 32)}, "it has 16"},
		"a cohort of its own": {[]client.Object{clusterQueue("cq", "all", "v5e", 16), &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "all"}}},
			"passed quota: queue cq may borrow from its cohort for 32 chips of v5e"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(without(world(t), "ClusterQueue"), tt.objects...)
			if got := lines(Checks{Cluster: cluster(t, objects, served, nil)}.Run(t.Context(), job(t))); !strings.Contains(got, tt.want) {
				t.Errorf("got\n%s\nwant %q", got, tt.want)
			}
		})
	}
}

func TestRegistry(t *testing.T) {
	quiet := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/secret/") {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		if strings.Contains(r.URL.Path, "/broken/") {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		quiet.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	whole := httptest.NewServer(quiet)
	defer whole.Close()
	there := strings.TrimPrefix(whole.URL, "http://") + "/team/train:1"
	ref, err := name.ParseReference(there)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, empty.Image, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	if err := (Registry{}).Exists(t.Context(), there); err != nil {
		t.Errorf("an image that is there: %v", err)
	}
	for image, want := range map[string]string{
		strings.TrimSuffix(there, "1") + "2": "image " + strings.TrimSuffix(there, "1") + "2 does not exist",
		host + "/secret/train:1":             "does not let this account look (401)",
		host + "/broken/train:1":             "answers 500 Internal Server Error",
		"UPPER/case":                         `"UPPER/case" is no name of an image`,
		"127.0.0.1:1/a:1":                    "connection refused",
	} {
		err := (Registry{}).Exists(t.Context(), image)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", image, err, want)
		}
		var missing *MissingError
		if want := strings.HasSuffix(want, "does not exist") || strings.HasSuffix(want, "an image"); want != errors.As(err, &missing) {
			t.Errorf("%s: missing is %t", image, !want)
		}
	}
}

// Google's registries, and no others, get the access token.
func TestGoogleRegistries(t *testing.T) {
	g := google{func() string { return "secret" }}
	for host, want := range map[string]bool{"us-docker.pkg.dev": true, "gcr.io": true, "eu.gcr.io": true, "docker.io": false, "evil-gcr.io": false, "pkg.dev.example.com": false} {
		r, err := name.NewRegistry(host)
		if err != nil {
			t.Fatal(err)
		}
		a, err := g.Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		config, err := a.Authorization()
		if err != nil || (config.Password == "secret") != want {
			t.Errorf("%s gets %+v, %v", host, config, err)
		}
	}
}

func TestStorage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch bucket := strings.Split(r.URL.Path, "/")[4]; bucket {
		case "ours":
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "storage#testIamPermissionsResponse", "permissions": r.URL.Query()["permissions"]})
		case "theirs":
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "storage#testIamPermissionsResponse"})
		case "odd":
			_, _ = w.Write([]byte("<html>"))
		case "hidden":
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	s := Storage{Endpoint: server.URL, Client: server.Client()}
	for bucket, want := range map[string]struct {
		writes bool
		err    string
	}{
		"ours": {writes: true}, "theirs": {}, "hidden": {err: "Cloud Storage answers 403 Forbidden"}, "none": {err: "bucket gs://none does not exist"}, "odd": {err: "reading the answer"},
	} {
		writes, err := s.Writable(t.Context(), bucket)
		if writes != want.writes || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%s: %t, %v", bucket, writes, err)
		}
	}
	server.Close()
	if _, err := s.Writable(t.Context(), "ours"); err == nil || !strings.Contains(err.Error(), "asking Cloud Storage: connection refused") {
		t.Errorf("nobody there: %v", err)
	}
}

// What does not answer ends with the context, and is not known.
func TestSilence(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := lines(Checks{Cluster: cluster(t, world(t), served, nil), Images: answers{slow: true}}.Run(ctx, job(t)))
	if want := "unknown image: train:1: whether it is there is not known: no answer in time\n"; !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant %q", got, want)
	}
}

// slow answers after a while, whatever becomes of the context.
type slow time.Duration

func (s slow) Exists(context.Context, string) error { time.Sleep(time.Duration(s)); return nil }
func (s slow) Writable(context.Context, string) (bool, error) {
	return true, s.Exists(context.Background(), "")
}

// Registries and buckets cost a job no more than the cluster does, and a second.
func TestNobodyWaitsForRegistries(t *testing.T) {
	const silent = ": whether it is there is not known: no answer in time\n"
	known := "passed image: train:1\npassed image: eval:1\npassed output: gs://ours can be written to\n"
	unknown := "unknown image: train:1" + silent + "unknown image: eval:1" + silent + "unknown output: whether gs://ours can be written to is not known: no answer in time\n"
	for name, tt := range map[string]struct {
		elsewhere, cluster, takes time.Duration
		want                      string
	}{
		"no answer":               {elsewhere: time.Hour, takes: grace, want: unknown},
		"no answer, slow cluster": {elsewhere: time.Hour, cluster: 20 * time.Second, takes: 20*time.Second + grace, want: unknown},
		"an answer":               {elsewhere: grace / 2, takes: grace / 2, want: known},
		"as slow as the cluster":  {elsewhere: 20 * time.Second, cluster: 20 * time.Second, takes: 20 * time.Second, want: known},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait := func(_ string, o any) error {
					if _, ok := o.(*appsv1.Deployment); ok && tt.cluster > 0 {
						time.Sleep(tt.cluster)
					}
					return nil
				}
				spec := job(t)
				spec.Queue, spec.OutputDir = "", "gs://ours/runs" // one controller is looked at
				spec.Jobs = []training.Job{{Name: "eval", Image: "eval:1"}, {Name: "log", Image: "train:1"}}
				began := time.Now()
				got := lines(Checks{Cluster: cluster(t, world(t), served, wait), Images: slow(tt.elsewhere), Buckets: slow(tt.elsewhere)}.Run(t.Context(), spec))
				if took := time.Since(began); took != tt.takes {
					t.Errorf("took %s, want %s", took, tt.takes)
				}
				if !strings.Contains(got, tt.want) {
					t.Errorf("got\n%s\nwant\n%s", got, tt.want)
				}
				time.Sleep(tt.elsewhere) // those that nobody waits for end with the bubble
			})
		})
	}
}
