package jobstatus_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

func TestMain(m *testing.M) { acctest.Main(m) }

type object = map[string]any

// world has a job that waits, one that has failed, and one in another
// namespace.
func world(t *testing.T) (p *acctest.Protocol, cluster string) {
	t.Helper()
	g := acctest.NewGKE(t)
	in := metav1.ObjectMeta{Namespace: "any"}
	g.Cluster.Keep(t, &corev1.Pod{ObjectMeta: in}, &batchv1.Job{ObjectMeta: in}, &jobset.JobSet{ObjectMeta: in}, &kueue.Workload{ObjectMeta: in})
	k := g.Cluster.Client(t)
	slice, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range []training.Spec{
		{Namespace: "research", Name: "waits", Queue: "research", Owner: "ada", Experiment: "x", Slices: 2},
		{Namespace: "research", Name: "failed", Owner: "bob", Slices: 1},
		{Namespace: "vision", Name: "waits", Queue: "vision", Owner: "ada", Slices: 1},
	} {
		s.Slice, s.Image = slice, "i"
		js := s.JobSet()
		if err := k.Create(t.Context(), js); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			patch(t, k, js, `{"status":{"restarts":2,"restartsCountTowardsMax":1,"conditions":[{"type":"Failed","status":"True","reason":"FailJobSetFailurePolicyAction","message":"no","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`)
			continue
		}
		wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "wl", Labels: map[string]string{queue.LabelJobUID: string(js.UID)}}}
		if err := k.Create(t.Context(), wl); err != nil {
			t.Fatal(err)
		}
		patch(t, k, wl, `{"status":{"conditions":[{"type":"QuotaReserved","status":"False","reason":"WaitingForQuota","message":"no room","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`)
	}
	return g.Protocol(t, "team"), g.MakeCluster(t, "main")
}

func patch(t *testing.T, k *kube.Client, o client.Object, text string) {
	t.Helper()
	if err := k.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(text))); err != nil {
		t.Fatal(err)
	}
}

func TestJobStatus(t *testing.T) {
	p, cluster := world(t)
	got, text := p.Data("tpu_job_status", object{"job": cluster + "/namespaces/research/jobsets/failed"})
	if text != "" {
		t.Fatal(text)
	}
	want := object{"status": "Failed", "reason": "FatalExitCode", "restarts": 2, "counted_restarts": 1, "finished": true, "finished_at": "2026-01-02T03:04:05Z",
		"owner": "bob", "accelerator": "v5litepod-16", "hosts_wanted": 4, "chips": 16, "queue": "", "admitted_at": nil}
	for name, w := range want {
		if diff := cmp.Diff(w, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if c, ok := got["conditions"].([]any); !ok || len(c) != 1 || c[0].(object)["type"] != "Failed" {
		t.Errorf("conditions %v", got["conditions"])
	}
	if s, ok := got["slice_runs"].([]any); !ok || len(s) != 1 || s[0].(object)["hosts_wanted"] != 4 {
		t.Errorf("slices %v", got["slice_runs"])
	}
	for id, want := range map[string]string{
		"projects/p/locations/l/clusters/c":                                      "namespaces/NAME/jobsets/NAME",
		strings.Replace(cluster, "main", "other", 1) + "/namespaces/a/jobsets/b": "There is no such cluster",
	} {
		if _, text := p.Data("tpu_job_status", object{"job": id}); !strings.Contains(text, want) {
			t.Errorf("%s: said %q, want %q", id, text, want)
		}
	}
	// One that is not there, or not any more, fails no plan.
	got, text = p.Data("tpu_job_status", object{"job": cluster + "/namespaces/research/jobsets/nobody"})
	if !strings.Contains(text, "There is no such job") || got["status"] != "GONE" || got["reason"] != "NotFound" || got["name"] != "nobody" || got["finished"] != true {
		t.Errorf("a job that is not there is %v (%q)", got, text)
	}
}

func TestJobs(t *testing.T) {
	p, cluster := world(t)
	for _, c := range []struct {
		filter object
		want   []string
	}{
		{object{}, []string{"research/failed Failed", "research/waits Pending", "vision/waits Pending"}},
		{object{"namespace": "research"}, []string{"research/failed Failed", "research/waits Pending"}},
		{object{"owner": "ada"}, []string{"research/waits Pending", "vision/waits Pending"}},
		{object{"owner": "ada", "queue": "vision"}, []string{"vision/waits Pending"}},
		{object{"experiment": "x"}, []string{"research/waits Pending"}},
		{object{"run_id": "failed"}, []string{"research/failed Failed"}},
		{object{"statuses": []any{"Failed", "Running"}}, []string{"research/failed Failed"}},
		{object{"owner": "eve"}, nil},
	} {
		c.filter["cluster"] = cluster
		state, text := p.Data("tpu_jobs", c.filter)
		if text != "" {
			t.Fatal(text)
		}
		var got []string
		for _, j := range state["jobs"].([]any) {
			m := j.(object)
			got = append(got, fmt.Sprintf("%s/%s %s", m["namespace"], m["name"], m["status"]))
		}
		// They are as old as each other.
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.filter, diff)
		}
	}
	if _, text := p.Data("tpu_jobs", object{"cluster": cluster, "statuses": []any{"GONE"}}); !strings.Contains(text, "GONE") {
		t.Errorf("said %q", text)
	}
}
