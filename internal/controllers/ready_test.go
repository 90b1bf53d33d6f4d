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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

func fakeClient(funcs interceptor.Funcs, objs ...client.Object) *kube.Client {
	return &kube.Client{Name: "c", WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(funcs).WithObjects(objs...).Build()}
}

// stuck is a JobSet install whose pod finds no node.
func stuck() []client.Object {
	labels := map[string]string{"control-plane": "controller-manager"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "jobset-system", Name: "jobset-controller-manager"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Status.Replicas = 1
	d.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated", Message: "fine"},
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable", Message: "Deployment does not have minimum availability."},
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "jobset-system", Name: "jobset-controller-manager-1", Labels: labels}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/8 nodes are available: 8 node(s) had untolerated taint(s)."}}
	return []client.Object{d, p}
}

// A timeout tells what the cluster says: the Deployment's condition and why
// its pods do not run.
func TestNotReadyError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := fakeClient(interceptor.Funcs{}, stuck()...)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		err := waitReady(ctx, cl, Config{Kueue: KueueConfig{Disabled: true}}.WithDefaults())
		var notReady *NotReadyError
		if !errors.As(err, &notReady) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want a NotReadyError after a timeout", err)
		}
		want := []string{
			"Deployment jobset-system/jobset-controller-manager: 0 of 1 pods available",
			"Deployment jobset-system/jobset-controller-manager: MinimumReplicasUnavailable: Deployment does not have minimum availability.",
			"Pod jobset-system/jobset-controller-manager-1: Unschedulable: 0/8 nodes are available: 8 node(s) had untolerated taint(s).",
		}
		if diff := cmp.Diff(want, notReady.Details); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, part := range append(want, "waiting for JobSet on cluster c", "CPU node pool", "apply again") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the message does not say %q:\n%v", part, err)
			}
		}
	})
}

func TestNotReadyReasons(t *testing.T) {
	waiting := corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}},
	}}}}
	crashing := corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		RestartCount:         4,
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}},
	}}}}
	starting := corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"},
	}}}
	ready := corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	for want, pod := range map[string]corev1.Pod{
		"ImagePullBackOff: no such image":            waiting,
		"restarted 4 times, last exit code 1: Error": crashing,
		"ContainersNotReady":                         starting,
		"":                                           ready,
	} {
		if got := notReady(&pod); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The probe goes on while webhooks are starting and stops at a real refusal.
func TestProbe(t *testing.T) {
	down := apierrors.NewInternalError(errors.New(`failed calling webhook "mjobset.kb.io": no endpoints available`))
	for name, tt := range map[string]struct {
		answers []error
		want    func(error) bool
	}{
		"answers after a while": {[]error{down, down, nil}, func(err error) bool { return err == nil }},
		"exists already":        {[]error{apierrors.NewAlreadyExists(appsv1.Resource("jobsets"), "x")}, func(err error) bool { return err == nil }},
		"is refused":            {[]error{down, apierrors.NewForbidden(appsv1.Resource("jobsets"), "x", errors.New("no"))}, apierrors.IsForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				cl := fakeClient(interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.CreateOption) error {
					var o client.CreateOptions
					o.ApplyOptions(opts)
					if len(o.DryRun) == 0 {
						t.Error("the probe would create something")
					}
					calls++
					return tt.answers[calls-1]
				}})
				if err := probe(t.Context(), cl, jobSet); !tt.want(err) || calls != len(tt.answers) {
					t.Errorf("after %d calls of %d: %v", calls, len(tt.answers), err)
				}
			})
		})
	}
}

// A cluster that does not answer is reported within seconds, not at the end of
// the timeout.
func TestInstallOnAnUnreachableCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := apierrors.NewServiceUnavailable("starting")
		cl := fakeClient(interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return away
		}})
		began := time.Now()
		if _, err := Install(t.Context(), cl, Config{}, Options{}); !errors.Is(err, away) {
			t.Errorf("Install: %v, want %v", err, away)
		}
		if err := Uninstall(t.Context(), cl, Config{}, UninstallOptions{}); !errors.Is(err, away) {
			t.Errorf("Uninstall: %v, want %v", err, away)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("both took %s", took)
		}
		if _, err := Observe(t.Context(), cl, Config{}); !errors.Is(err, away) {
			t.Errorf("Observe: %v, want an error, not an empty cluster", err)
		}
	})
}
