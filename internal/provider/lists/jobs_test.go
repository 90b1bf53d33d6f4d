package lists_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Jobs are listed by cluster and namespace, with what an import has; those of
// others are not.
func TestListsOfJobs(t *testing.T) {
	g := acctest.NewGKE(t)
	in := metav1.ObjectMeta{Namespace: "any"}
	g.Cluster.Keep(t, &corev1.Pod{ObjectMeta: in}, &batchv1.Job{ObjectMeta: in}, &jobset.JobSet{ObjectMeta: in}, &kueue.Workload{ObjectMeta: in})
	k := g.Cluster.Client(t)
	slice, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"research/a", "vision/b", "vision/theirs"} {
		namespace, name, _ := strings.Cut(name, "/")
		js := training.Spec{Namespace: namespace, Name: name, Slice: slice, Slices: 2, Image: "train:1"}.JobSet()
		if name == "theirs" {
			js.Labels = nil
		}
		if err := k.Create(t.Context(), js); err != nil {
			t.Fatal(err)
		}
	}
	cluster := g.MakeCluster(t, "main")
	s := serve(t, g, g.Project)
	for _, c := range []struct {
		config map[string]string
		want   []string
	}{
		{nil, []string{"main/research/a (Admitted)", "main/vision/b (Admitted)"}},
		{map[string]string{"cluster": cluster}, []string{"main/research/a (Admitted)", "main/vision/b (Admitted)"}},
		{map[string]string{"cluster": cluster, "namespace": "vision"}, []string{"main/vision/b (Admitted)"}},
		{map[string]string{"namespace": "nobody"}, nil},
	} {
		got, results := s.query(t, "tpu_training_jobset", c.config, true, 0)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.config, diff)
		}
		for _, r := range results {
			if len(r.Diagnostics) > 0 || r.Resource == nil {
				t.Fatalf("%v", r.Diagnostics)
			}
			if read := texts(t, r.Resource, s.schemas.ResourceSchemas["tpu_training_jobset"].ValueType()); read["image"] != "train:1" || read["accelerator"] != "v5litepod-16" {
				t.Errorf("an import reads %v", read)
			}
		}
	}
	if _, results := s.query(t, "tpu_training_jobset", map[string]string{"cluster": strings.Replace(cluster, "main", "none", 1)}, false, 0); len(results) != 1 || len(results[0].Diagnostics) != 1 {
		t.Errorf("of no cluster: %v", results)
	}
}
