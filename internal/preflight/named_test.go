package preflight

import (
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// naming is a job that names an object of every kind, in every place.
func naming(t *testing.T) training.Spec {
	s := job(t)
	s.Priority, s.ServiceAccount = "high", "trainer"
	s.EnvFrom = []training.EnvSource{{Secret: "wandb"}, {ConfigMap: "flags"}, {Secret: "may-be", Optional: true}}
	s.Files = map[string]string{"/etc/a": "a"}
	s.Volumes = []training.Volume{{Name: "data", Path: "/data", Claim: "lustre"}, {Name: "key", Path: "/key", Secret: "key"}, {Name: "more", Path: "/more", ConfigMap: "more"}}
	s.Jobs = []training.Job{{Name: "eval", Pods: 1, EnvFrom: []training.EnvSource{{Secret: "eval"}}}}
	s.Overrides = `{"spec":{"replicatedJobs":[{"name":"slice","template":{"spec":{"template":{"spec":{"imagePullSecrets":[{"name":"pull"}],
		"containers":[{"name":"train","env":[{"name":"TOKEN","valueFrom":{"secretKeyRef":{"name":"token","key":"t"}}}]}],
		"volumes":[{"name":"all","projected":{"sources":[{"secret":{"name":"projected"}},{"configMap":{"name":"nobody","optional":true}}]}}]}}}}}]}}`
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return s
}

// theNamed are the objects that naming names.
func theNamed() []client.Object {
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "research", Name: name} }
	all := []client.Object{
		&kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}}, &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}},
		&corev1.ServiceAccount{ObjectMeta: in("trainer")}, &corev1.PersistentVolumeClaim{ObjectMeta: in("lustre")},
		&corev1.ConfigMap{ObjectMeta: in("flags")}, &corev1.ConfigMap{ObjectMeta: in("more")},
	}
	for _, name := range []string{"eval", "key", "projected", "pull", "token", "wandb"} {
		all = append(all, &corev1.Secret{ObjectMeta: in(name)})
	}
	return all
}

func TestNamed(t *testing.T) {
	got := lines(Checks{Cluster: cluster(t, append(world(t), theNamed()...), served, nil)}.Run(t.Context(), naming(t)))
	want := "passed priority: high\npassed account: trainer\npassed secret: eval\npassed secret: key\npassed secret: projected\npassed secret: pull\npassed secret: token\npassed secret: wandb\n" +
		"passed configmap: flags\npassed configmap: more\npassed claim: lustre\n"
	if !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatIsNamedIsMissing(t *testing.T) {
	got := lines(Checks{Cluster: cluster(t, append(world(t), theNamed()[1], &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "wandb-"}}), served, nil)}.Run(t.Context(), naming(t)))
	for _, want := range []string{
		"failed priority: cluster c has no priority class high: it has low. Without it Kueue would never take the job in: tpu_kueue_priority makes one, or correct the name\n",
		"failed account: namespace research has no service account trainer. Without it no pod of the job could be made: make it there (tpu_training_namespace makes one), or correct the name\n",
		"failed secret: namespace research has no Secret wandb; did you mean wandb-? Without it the job's pods would wait for it\n",
		"failed secret: namespace research has no Secret pull. Without it the job's pods would wait for it: make it there",
		"failed configmap: namespace research has no ConfigMap more.",
		"failed claim: namespace research has no PersistentVolumeClaim lustre.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q", got, want)
		}
	}
	if strings.Contains(got, "may-be") || strings.Contains(got, "nobody") || strings.Contains(got, "-files-") {
		t.Errorf("what need not be there:\n%s", got)
	}
}

func TestWhatIsNamedIsHidden(t *testing.T) {
	refuse := func(_ string, o any) error {
		if m, ok := o.(*metav1.PartialObjectMetadata); ok && m.Kind != "Namespace" {
			return forbidden(m.Kind)
		}
		return nil
	}
	items := Checks{Cluster: cluster(t, world(t), served, refuse)}.Run(t.Context(), naming(t))
	got := lines(items)
	for _, want := range []string{"unknown priority: high: this account may not look at priority classes\n", "unknown secret: wandb: this account may not look at Secrets of namespace research\n",
		"unknown account: trainer: this account may not look at service accounts of namespace research\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q", got, want)
		}
	}
	if len(Stops(items)) > 0 {
		t.Errorf("stops:\n%s", got)
	}
}

// Only metadata of a Secret is asked for, and a usual job costs no call more.
func TestWhatNamingCosts(t *testing.T) {
	count := func(s training.Spec) (calls []string) {
		var mu sync.Mutex
		note := func(verb string, o any) error {
			mu.Lock()
			defer mu.Unlock()
			what := "typed"
			if m, ok := o.(*metav1.PartialObjectMetadata); ok {
				what = m.Kind
			}
			if _, whole := o.(*corev1.Secret); whole {
				t.Error("a whole Secret is asked for")
			}
			calls = append(calls, verb+" "+what)
			return nil
		}
		Checks{Cluster: cluster(t, append(world(t), theNamed()...), served, note)}.Run(t.Context(), s)
		return calls
	}
	usual := job(t)
	usual.ServiceAccount = "default"
	if with, without := len(count(naming(t))), len(count(usual)); without != 7 || with != without+11 {
		t.Errorf("%d calls for a usual job, %d for one that names 11 objects", without, with)
	}
}

// Of a namespace that is not there nothing else is said, and a near one is named.
func TestNoNamespace(t *testing.T) {
	s := naming(t)
	s.Namespace = "reserch"
	got := lines(Checks{Cluster: cluster(t, world(t), served, nil)}.Run(t.Context(), s))
	if !strings.Contains(got, "failed namespace: reserch does not exist; did you mean research? Else make it (tpu_training_namespace)\n") || strings.Contains(got, "secret") || strings.Contains(got, "queue") {
		t.Errorf("got\n%s", got)
	}
}

// Two jobs of one run would write to one folder.
func TestAnotherJobIsAtTheRun(t *testing.T) {
	s := job(t)
	s.RunID = "lr"
	other := s
	other.Name = "train-2"
	over := other.JobSet()
	over.Status.Conditions = []metav1.Condition{{Type: string(jobset.JobSetCompleted), Status: metav1.ConditionTrue}}
	for name, tt := range map[string]struct {
		there []client.Object
		want  string
	}{
		"nobody":        {want: "passed run: lr\n"},
		"itself":        {there: []client.Object{s.JobSet()}, want: "passed run: lr\n"},
		"one that ends": {there: []client.Object{over}, want: "passed run: lr\n"},
		"another": {there: []client.Object{other.JobSet()},
			want: "failed run: job research/train-2 of run lr is not over (Admitted), and both would write to one OUTPUT_DIR: wait for it, or end it (tpuctl cancel research/train-2) and go on with its run (tpuctl continue research/train-2)\n"},
	} {
		got := lines(Checks{Cluster: cluster(t, append(world(t), tt.there...), served, nil)}.Run(t.Context(), s))
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got\n%s\nwant %q", name, got, tt.want)
		}
	}
}
