package controllers

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// everything is a Config that sets every field.
func everything() Config {
	minutes := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	return Config{
		JobSet: JobSetConfig{
			Version: JobSetVersion, Replicas: 2, ClientQPS: 250, Burst: 400, FeatureGates: map[string]bool{"InPlaceRestart": true},
			Resources: Resources{CPU: resource.MustParse("1"), Memory: resource.MustParse("1Gi"), MemoryLimit: resource.MustParse("2Gi")},
		},
		Kueue: KueueConfig{
			Version: KueueVersion, Replicas: 3, ClientQPS: 500, Burst: 800,
			Resources:        Resources{Memory: resource.MustParse("16Gi")},
			Frameworks:       []string{"batch/job", "jobset.x-k8s.io/jobset", "ray.io/rayjob"},
			PodsReadyTimeout: minutes(10), RecoveryTimeout: minutes(5),
			Requeue:        Requeue{Limit: new(int32(7)), Backoff: minutes(1), MaxBackoff: minutes(30)},
			BlockAdmission: true, FairSharing: true, FairSharingPreemption: []string{"LessThanInitialShare"},
			AdmissionFairSharing:   &AdmissionFairSharing{HalfLife: minutes(24 * 60), Sampling: minutes(5)},
			ManageJobsWithoutQueue: true, NamespaceSelector: map[string]string{"team": "research"},
			ExcludedResources: []string{"networking.gke.io/"}, BlockUndeclared: true, NoVisibility: true, QueueMetrics: true,
			KeepFinished: new(minutes(60)), FeatureGates: map[string]bool{"TopologyAwareScheduling": false},
		},
		ImageRepository: "us-docker.pkg.dev/example/mirror/",
		WebhookPort:     9443,
		MaxHosts:        10000,
		NodeSelector:    map[string]string{"cloud.google.com/gke-nodepool": "system"},
		Tolerations:     []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "system", Effect: corev1.TaintEffectNoSchedule}},
		NoPriorities:    true,
	}
}

// olderPair is the pair that upgrades start from.
func olderPair() Config {
	return Config{JobSet: JobSetConfig{Version: "v0.10.1"}, Kueue: KueueConfig{Version: "v0.15.2"}}
}

// What differs from the official manifests, as text: everything an install
// changes shows here.
func TestObjectsGolden(t *testing.T) {
	// Kinds that no Config changes are the release's own business.
	changed := []string{"Deployment", "ConfigMap", "Service", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
	for name, c := range map[string]Config{"defaults": {}, "everything": everything(), "older": olderPair()} {
		t.Run(name, func(t *testing.T) {
			objs, err := Objects(c)
			if err != nil {
				t.Fatal(err)
			}
			var docs [][]byte
			for _, obj := range objs {
				if slices.Contains(changed, obj.GetKind()) {
					text, err := yaml.Marshal(obj.Object)
					if err != nil {
						t.Fatal(err)
					}
					docs = append(docs, text)
				}
			}
			golden(t, filepath.Join("testdata", name+".yaml"), bytes.Join(docs, []byte("---\n")))
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; -update rewrites it (-want +got):\n%s", file, diff)
	}
}

// Whoever lists jobs reads of these columns what they are.
func TestTablesOfJobSetsTellWhatTheyAre(t *testing.T) {
	for name, c := range map[string]Config{"defaults": {}, "older": olderPair()} {
		objs, err := Objects(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range objs {
			if obj.GetName() != definition[jobSet] {
				continue
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, crd, true); err != nil {
				t.Fatal(err)
			}
			for _, v := range crd.Spec.Versions {
				var got []string
				for _, shown := range v.AdditionalPrinterColumns {
					if shown.Priority == 0 {
						got = append(got, shown.Name)
					}
				}
				want := []string{"TerminalState", "Restarts", "Completed", "Suspended", "Age", "Queue", "Owner", "Slices", "Accelerator"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %s: kubectl get jobsets shows (-want +got):\n%s", name, v.Name, diff)
				}
			}
		}
	}
}

// A Kueue that is down must not block what it does not manage.
func TestWebhooksAreNarrow(t *testing.T) {
	objs, err := Objects(Config{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, obj := range kinds(objs, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration") {
		hooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
		for _, h := range hooks {
			name, _, _ := unstructured.NestedString(h.(map[string]any), "name")
			got = append(got, strings.TrimSuffix(obj.GetName(), "-webhook-configuration")+" "+name)
		}
	}
	want := []string{
		"jobset-mutating mjobset.kb.io",
		"jobset-mutating mpod.kb.io", // pods of JobSets only
		"jobset-validating vjobset.kb.io",
		"jobset-validating vpod.kb.io", // pods of JobSets only
		"kueue-mutating mclusterqueue.kb.io",
		"kueue-mutating mjob.kb.io",
		"kueue-mutating mjobset.kb.io",
		"kueue-mutating mresourceflavor.kb.io",
		"kueue-mutating mworkload.kb.io",
		"kueue-validating vclusterqueue.kb.io",
		"kueue-validating vcohort.kb.io",
		"kueue-validating vjob.kb.io",
		"kueue-validating vjobset.kb.io",
		"kueue-validating vresourceflavor.kb.io",
		"kueue-validating vworkload.kb.io",
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}

// The objects carry nothing that the controllers or the server write: a second
// apply would take it away from them.
func TestObjectsLeaveOthersFieldsAlone(t *testing.T) {
	objs, err := Objects(everything())
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objs {
		text, err := obj.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{`"caBundle"`, `"creationTimestamp":null`, `cert-manager.io/inject-ca-from`} {
			if bytes.Contains(text, []byte(field)) && obj.GetKind() != "CustomResourceDefinition" {
				t.Errorf("%s %s has %s", obj.GetKind(), obj.GetName(), field)
			}
		}
		if _, ok := obj.Object["status"]; ok {
			t.Errorf("%s %s has a status", obj.GetKind(), obj.GetName())
		}
		if obj.GetKind() == "Secret" {
			if _, ok := obj.Object["data"]; ok {
				t.Errorf("Secret %s has data", obj.GetName())
			}
		}
	}
}

// One release can be left to somebody else.
func TestDisabledParts(t *testing.T) {
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{JobSet: JobSetConfig{Disabled: true}}, "kueue-system"},
		{Config{Kueue: KueueConfig{Disabled: true}}, "jobset-system"},
	} {
		objs, err := Objects(tt.c)
		if err != nil {
			t.Fatal(err)
		}
		ns := kinds(objs, "Namespace")
		if len(ns) != 1 || ns[0].GetName() != tt.want {
			t.Errorf("%+v makes %d namespaces, want %s", tt.c, len(ns), tt.want)
		}
	}
}

// Objects are copies: rendering once must not change what is rendered next.
func TestObjectsAreIndependent(t *testing.T) {
	if _, err := Objects(everything()); err != nil {
		t.Fatal(err)
	}
	first, err := Objects(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range first {
		obj.SetName("changed")
	}
	second, err := Objects(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range second {
		if obj.GetName() == "changed" {
			t.Fatal("a caller's change reached the embedded manifests")
		}
	}
}
