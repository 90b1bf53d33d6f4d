package controlplane

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

func connect(t *testing.T, cp *ControlPlane) *kube.Client {
	t.Helper()
	cl, err := kube.Connect(kube.Access{
		Name: "test", Server: "https://" + cp.Endpoint(), CA: cp.CA(),
		Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: testToken}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// sliceJob is a JobSet of one slice of four hosts.
func sliceJob(name string, delay string) *jobset.JobSet {
	return &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "research", Labels: map[string]string{"kueue.x-k8s.io/queue-name": "research"}},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{
			Name: "slice", Replicas: 1,
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Parallelism: new(int32(4)), Completions: new(int32(4)), BackoffLimit: new(int32(0)),
				// With such a policy, a pod without a terminal phase would hold its
				// Job for ever.
				PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
					Action:          batchv1.PodFailurePolicyActionFailJob,
					OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
				}}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": delay}},
					Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyNever,
						NodeSelector:  tpuHosts("any")[0].Labels,
						Tolerations:   []corev1.Toleration{{Key: "google.com/tpu", Operator: corev1.TolerationOpExists}},
						Containers: []corev1.Container{{
							Name: "main", Image: "trainer", Command: []string{"python", "train.py"},
							Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"google.com/tpu": resource.MustParse("4")}},
						}},
					},
				},
			}},
		}}},
	}
}

func finished(t *testing.T, cl *kube.Client, name string) {
	t.Helper()
	eventually(t, 2*time.Minute, "job "+name+" is completed", func() error {
		var js jobset.JobSet
		if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "research", Name: name}, &js); err != nil {
			return err
		}
		if js.Status.TerminalState != string(jobset.JobSetCompleted) {
			return fmt.Errorf("its state is %q", js.Status.TerminalState)
		}
		return nil
	})
}

func controllersReady(t *testing.T, cl *kube.Client) {
	t.Helper()
	eventually(t, 2*time.Minute, "both controllers answer", func() error {
		s, err := controllers.Observe(t.Context(), cl, controllers.Config{})
		if err == nil && s.State != controllers.Ready {
			err = fmt.Errorf("they are %s", s.State)
		}
		return err
	})
}

// The real JobSet and Kueue run as the cluster's own Deployments, and train on
// simulated hosts; both survive a crash and a restart of the whole sandbox.
func TestRealControllers(t *testing.T) {
	dir := t.TempDir()
	cp := start(t, dir)
	setNodes(t, cp, "system", []*corev1.Node{systemNode("system-0")})
	setNodes(t, cp, "v5e-0", tpuHosts("v5e-0"))
	cl := connect(t, cp)
	began := time.Now()
	if _, err := controllers.Install(t.Context(), cl, controllers.Config{}, controllers.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("JobSet and Kueue installed in %s", time.Since(began).Round(time.Millisecond))
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research"}},
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "v5e"}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "research"}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"google.com/tpu"}, Flavors: []kueue.FlavorQuotas{{
				Name: "v5e", Resources: []kueue.ResourceQuota{{Name: "google.com/tpu", NominalQuota: resource.MustParse("16")}},
			}}}},
		}},
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "research", Namespace: "research"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "research"}},
		sliceJob("first", "1s"),
	} {
		if err := cl.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	finished(t, cl, "first")
	onlyLoopback(t, dir)
	if err := cl.Create(t.Context(), sliceJob("endless", "1h")); err != nil {
		t.Fatal(err)
	}

	if err := cp.Disrupt(t.Context(), "system-0", Evict); err == nil || !strings.Contains(err.Error(), "a controller; only hosts of jobs are disrupted") {
		t.Errorf("the host of the controllers: %v", err)
	}

	t.Run("GKE's environment, and its refusals", func(t *testing.T) {
		var pods corev1.PodList
		if err := cl.List(t.Context(), &pods, client.InNamespace("research"), client.MatchingLabels{jobSetLabel: "first"}); err != nil || len(pods.Items) != 4 {
			t.Fatalf("%d pods, %v", len(pods.Items), err)
		}
		for _, p := range pods.Items {
			want := []corev1.EnvVar{
				{Name: envWorkerID, Value: p.Labels[hostLabel]},
				{Name: envHostnames, Value: "first-slice-0-0.first,first-slice-0-1.first,first-slice-0-2.first,first-slice-0-3.first"},
				{Name: envTopology, Value: "4x4"},
			}
			if diff := cmp.Diff(want, p.Spec.Containers[0].Env[1:]); diff != "" { // the first is the Job controller's
				t.Errorf("pod %s (-want +got):\n%s", p.Name, diff)
			}
		}
		refused := pods.Items[0]
		refused.ObjectMeta = metav1.ObjectMeta{Name: "anywhere", Namespace: "research"}
		refused.Spec.NodeSelector, refused.Spec.NodeName = nil, ""
		err := cl.Create(t.Context(), &refused)
		if want := `admission webhook "warden-validating.common-webhooks.networking.gke.io" denied the request: GKE Warden rejected the request because it violates one or more constraints.`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a pod without a topology: %v", err)
		}
	})

	t.Run("logs of controllers and of simulated hosts", func(t *testing.T) {
		for ns, want := range map[string]string{"jobset-system": "certs ready", "kueue-system": "Starting manager", "research": "[simulated host v5e-0-"} {
			var pods corev1.PodList
			pick := []client.ListOption{client.InNamespace(ns)}
			if ns == "research" {
				pick = append(pick, client.MatchingLabels{"jobset.sigs.k8s.io/jobset-name": "first"})
			}
			if err := cl.List(t.Context(), &pods, pick...); err != nil || len(pods.Items) == 0 {
				t.Fatalf("%d pods in %s, %v", len(pods.Items), ns, err)
			}
			b, err := cp.client.CoreV1().Pods(ns).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
			if err != nil || !strings.Contains(string(b), want) {
				t.Errorf("logs in %s lack %q: %v", ns, want, err)
			}
		}
	})

	t.Run("pending workloads through the aggregated API", func(t *testing.T) {
		if !cp.visibility() {
			t.Fatal("Kueue was built without its visibility server's folder")
		}
		eventually(t, time.Minute, "the visibility API answers", func() error {
			return cp.client.Discovery().RESTClient().Get().AbsPath("/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/research/pendingworkloads").Do(t.Context()).Error()
		})
	})

	t.Run("a controller that dies is started again", func(t *testing.T) {
		for _, p := range process.List(dir) {
			if strings.HasPrefix(p.Name, "jobset-controller-manager") {
				proc, err := os.FindProcess(p.Pid)
				if err != nil {
					t.Fatal(err)
				}
				if err := proc.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		eventually(t, time.Minute, "the pod counts a restart and is ready", func() error {
			var pods corev1.PodList
			if err := cl.List(t.Context(), &pods, client.InNamespace("jobset-system")); err != nil {
				return err
			}
			s := pods.Items[0].Status.ContainerStatuses[0]
			if s.RestartCount != 1 || !s.Ready || s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 137 {
				return fmt.Errorf("its status is %+v", s)
			}
			return nil
		})
		controllersReady(t, cl)
	})

	if err := cp.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	cp = start(t, dir)
	cl = connect(t, cp)
	if err := cl.Create(t.Context(), sliceJob("at-once", "1s"), client.DryRunAll); err != nil {
		t.Errorf("the webhooks do not answer once the cluster is back: %v", err)
	}

	t.Run("a running job ends when it is deleted", func(t *testing.T) {
		if err := cl.Delete(t.Context(), sliceJob("endless", ""), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "its pods are gone", func() error {
			var pods corev1.PodList
			if err := cl.List(t.Context(), &pods, client.MatchingLabels{"jobset.sigs.k8s.io/jobset-name": "endless"}); err != nil {
				return err
			}
			if len(pods.Items) > 0 {
				return fmt.Errorf("%d pods are left, the first is %s", len(pods.Items), pods.Items[0].Status.Phase)
			}
			return nil
		})
	})
	if err := cl.Create(t.Context(), sliceJob("second", "500ms")); err != nil {
		t.Fatal(err)
	}
	finished(t, cl, "second")
	if err := cl.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the namespace is gone", func() error {
		if err := cl.Get(t.Context(), client.ObjectKey{Name: "research"}, &corev1.Namespace{}); err == nil {
			return errNotYet
		}
		return nil
	})
	onlyOurs(t, cp.cfg.Dir+"/logs")
}
