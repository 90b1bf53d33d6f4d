package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func container(image string) corev1.Container { return corev1.Container{Name: "manager", Image: image} }

// installed is what an install with c leaves of Kueue where people change
// things by hand.
func installed(t *testing.T, c Config) (*appsv1.Deployment, *corev1.ConfigMap) {
	t.Helper()
	objs, err := Objects(c)
	if err != nil {
		t.Fatal(err)
	}
	d, cm := &appsv1.Deployment{}, &corev1.ConfigMap{}
	for _, obj := range kinds(objs, "Deployment", "ConfigMap") {
		var into any = d
		if obj.GetKind() == "ConfigMap" {
			into = cm
		}
		if obj.GetNamespace() != kueue.namespace() {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into); err != nil {
			t.Fatal(err)
		}
	}
	return d, cm
}

// A replica count, an image or a setting that somebody changed by hand is named.
func TestHandMadeChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*appsv1.Deployment, *corev1.ConfigMap)
		want   []string
	}{
		"nothing":  {func(*appsv1.Deployment, *corev1.ConfigMap) {}, nil},
		"replicas": {func(d *appsv1.Deployment, _ *corev1.ConfigMap) { d.Spec.Replicas = new(int32(0)) }, []string{"Deployment kueue-system/kueue-controller-manager has 0 replicas, want 1"}},
		"image": {
			func(d *appsv1.Deployment, _ *corev1.ConfigMap) {
				d.Spec.Template.Spec.Containers[0].Image = "example/kueue:dev"
			},
			[]string{"Deployment kueue-system/kueue-controller-manager runs image example/kueue:dev, want registry.k8s.io/kueue/kueue:v0.19.0"},
		},
		"a setting": {
			func(_ *appsv1.Deployment, cm *corev1.ConfigMap) { cm.Data[configFile] += "fairSharing: {}\n" },
			[]string{"controller_manager_config.yaml in ConfigMap kueue-system/kueue-manager-config was changed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, cm := installed(t, Config{})
			tt.change(d, cm)
			o := observation{deployment: *d, deploymentFound: true, config: *cm, configFound: true}
			if diff := cmp.Diff(tt.want, o.changed(Config{}.WithDefaults(), kueue)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A controller that refuses its settings is given up after a few restarts, with
// its own last words; pods of the settings before do not count.
func TestControllerThatRefusesItsSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		settings string
		restarts int32
		within   time.Duration
		want     []string
	}{
		"it cannot start":         {"new", hopeless, time.Minute, []string{"starting JobSet on cluster c", "conflicting feature gates", "a feature gate"}},
		"it may start yet":        {"new", hopeless - 1, 11 * time.Minute, []string{"not ready in time"}},
		"it is being replaced":    {"old", hopeless, 11 * time.Minute, []string{"not ready in time"}},
		"nobody waits any longer": {"new", 0, 11 * time.Minute, []string{"not ready in time"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				objs := stuck()
				d, p := objs[0].(*appsv1.Deployment), objs[1].(*corev1.Pod)
				d.Spec.Template.Annotations = map[string]string{annotationConfig: "new"}
				p.Annotations = map[string]string{annotationConfig: tt.settings}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{
					RestartCount: tt.restarts,
					LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
						ExitCode: 1, Reason: "Error", Message: "Configuration loaded\nconflicting feature gates detected\n",
					}},
				}}
				cl := fakeClient(interceptor.Funcs{Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
					return nil, errors.New("no watch")
				}}, d, p)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				began := time.Now()
				err := explain(ctx, cl, jobSet, rollout(ctx, cl, jobSet))
				if took := time.Since(began); took > tt.within {
					t.Errorf("it took %s", took)
				}
				for _, part := range tt.want {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("%v does not say %q", err, part)
					}
				}
			})
		})
	}
}
