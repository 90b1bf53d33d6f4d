package queue_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func slice(t *testing.T, name string) accelerator.Slice {
	t.Helper()
	s, err := accelerator.Resolve(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// golden compares rendered objects with testdata/NAME.yaml.
func golden(t *testing.T, name string, objects ...client.Object) {
	t.Helper()
	var texts []string
	for _, o := range objects {
		b, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(b))
	}
	got := strings.Join(texts, "---\n")
	file := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestRenderedObjects(t *testing.T) {
	v5e, v6e := slice(t, "v5litepod-16"), slice(t, "v6e-64")
	t.Run("flavor", func(t *testing.T) {
		golden(t, "flavor", queue.Flavor{Name: "v5e-4x4", Slice: v5e}.Object())
	})
	t.Run("spot flavor", func(t *testing.T) {
		golden(t, "flavor-spot", queue.Flavor{Name: "v6e-8x8-spot", Slice: v6e, Provisioning: queue.Spot,
			NodeLabels: map[string]string{"team": "a"}}.Object())
	})
	t.Run("on-demand flavor", func(t *testing.T) {
		golden(t, "flavor-on-demand", queue.Flavor{Name: "v6e-8x8", Slice: v6e, Provisioning: queue.OnDemand}.Object())
	})
	t.Run("queue", func(t *testing.T) {
		q := queue.Queue{Name: "research", Namespaces: []string{"research", "lab"}, Quotas: []queue.Quota{{Flavor: "v5e-4x4", Slice: v5e, Slices: 2}}}
		golden(t, "queue", q.ClusterQueue(), q.LocalQueue("research"))
	})
	t.Run("queue in a cohort", func(t *testing.T) {
		q := queue.Queue{
			Name: "team-a", Cohort: "all", Namespaces: []string{"team-a"}, Strategy: kueue.StrictFIFO, Stop: kueue.Hold,
			Preemption: queue.Preemption{WithinQueue: kueue.PreemptionPolicyNever, ReclaimWithinCohort: kueue.PreemptionPolicyAny},
			Quotas: []queue.Quota{
				{Flavor: "v5e-4x4", Slice: v5e, Slices: 4, Borrow: ptr.To[int64](2), Lend: ptr.To[int64](0)},
				{Flavor: "v6e-8x8", Slice: v6e, Slices: 0},
			},
		}
		golden(t, "queue-cohort", q.ClusterQueue())
	})
	t.Run("queue with everything", func(t *testing.T) {
		golden(t, "queue-everything", everything(t).ClusterQueue(), everything(t).LocalQueue("team-a"), everything(t).LocalQueue("team-b"))
	})
	t.Run("queue with cpu and memory of the slices' hosts", func(t *testing.T) {
		q := queue.Queue{Name: "hosts", Quotas: []queue.Quota{
			{Flavor: "v5e-4x4", Slice: v5e, Slices: 2, CPU: host("896"), Memory: host("1536Gi")},
			{Flavor: "v6e-8x8", Slice: v6e, Slices: 1, CPU: host("2880"), Memory: host("11Ti")},
		}}
		golden(t, "queue-hosts", q.ClusterQueue())
	})
	t.Run("queue nobody may use", func(t *testing.T) {
		golden(t, "queue-closed", queue.Queue{Name: "closed"}.ClusterQueue())
	})
	t.Run("namespace", func(t *testing.T) {
		golden(t, "namespace", queue.Namespace{
			Name: "research", Labels: map[string]string{"team": "a"}, ServiceAccount: "trainer",
			GoogleServiceAccount: "trainer@p.iam.gserviceaccount.com", PullSecrets: []string{"registry"},
			Submitters: []queue.Subject{{Kind: "Group", Name: "ml@example.com"}, {Kind: "ServiceAccount", Namespace: "ci", Name: "runner"}},
			Viewers:    []queue.Subject{{Kind: "User", Name: "lead@example.com"}},
		}.Objects()...)
	})
	t.Run("bare namespace", func(t *testing.T) {
		golden(t, "namespace-bare", queue.Namespace{Name: "research"}.Objects()...)
	})
}

// A flavor's node labels lead back to the slice, whichever machine it is made
// of: an imported flavor is the one that was written.
func TestSliceOfFlavorLabels(t *testing.T) {
	for _, name := range []string{"v5litepod-16", "v5litepod-8", "v5litepod-8-8t", "v5litepod-1", "v6e-4x4", "v5p-128", "v4-8", "tpu7x-128"} {
		want := slice(t, name)
		got, ok := queue.SliceOf(queue.Flavor{Slice: want}.Labels())
		if !ok || got != want {
			t.Errorf("%s: got %v (%t)", name, got, ok)
		}
	}
	for _, labels := range []map[string]string{
		nil,
		{accelerator.LabelTopology: "4x4"},
		{accelerator.LabelAccelerator: "tpu-v5-lite-podslice", accelerator.LabelTopology: "3x5"},
		{accelerator.LabelAccelerator: "tpu-v99", accelerator.LabelTopology: "4x4"},
	} {
		if got, ok := queue.SliceOf(labels); ok {
			t.Errorf("%v is taken for %v", labels, got)
		}
	}
}

func host(quota string) *queue.HostQuota {
	return &queue.HostQuota{Quota: resource.MustParse(quota)}
}

// everything is a queue that uses every setting there is.
func everything(t *testing.T) queue.Queue {
	t.Helper()
	limited := host("200")
	limited.Borrow, limited.Lend = ptr.To(resource.MustParse("50")), ptr.To(resource.MustParse("0"))
	return queue.Queue{
		Name: "team-a", Cohort: "all", Namespaces: []string{"team-a", "team-b"},
		Quotas: []queue.Quota{
			{Flavor: "v5e-4x4", Slice: slice(t, "v5litepod-16"), Slices: 4, Borrow: ptr.To[int64](2), Lend: ptr.To[int64](0),
				Pool: "projects/p/locations/l/clusters/c/nodePools/v5e"},
			{Flavor: "v6e-8x8", Slice: slice(t, "v6e-64"), Slices: 1},
		},
		Hosts:    []queue.HostFlavor{{Flavor: "cpu", CPU: limited, Memory: host("1Ti")}, {Flavor: "more-cpu", CPU: host("10"), Memory: host("64Gi")}},
		Stopped:  map[string]kueue.StopPolicy{"team-b": kueue.Hold},
		Weights:  map[string]resource.Quantity{"team-a": resource.MustParse("2")},
		Strategy: kueue.StrictFIFO, Stop: kueue.HoldAndDrain,
		Preemption: queue.Preemption{WithinQueue: kueue.PreemptionPolicyLowerOrNewerEqualPriority, ReclaimWithinCohort: kueue.PreemptionPolicyAny,
			BorrowWithinCohort: kueue.BorrowWithinCohortPolicyLowerPriority, MaxPriority: ptr.To[int32](500)},
		Fungibility: queue.Fungibility{WhenCanBorrow: kueue.TryNextFlavor, WhenCanPreempt: kueue.TryNextFlavor, Preference: kueue.PreemptionOverBorrowing},
		Weight:      ptr.To(resource.MustParse("500m")),
		Admission:   kueue.UsageBasedAdmissionFairSharing,
		Checks:      []queue.Check{{Name: "provisioning", Flavors: []string{"v6e-8x8"}}, {Name: "budget"}},
	}
}

func TestQueueRefusals(t *testing.T) {
	v5e := slice(t, "v5litepod-16")
	edited := func(edit func(*queue.Queue)) queue.Queue {
		q := everything(t)
		edit(&q)
		return q
	}
	quota := func(edit func(*queue.Quota)) []queue.Quota {
		q := queue.Quota{Flavor: "v5e", Slice: v5e, Slices: 2}
		if edit != nil {
			edit(&q)
		}
		return []queue.Quota{q}
	}
	for _, c := range []struct {
		name string
		q    queue.Queue
		want string // part of the message; "" = accepted
	}{
		{"plain", queue.Queue{Name: "research", Quotas: quota(nil), Namespaces: []string{"a"}}, ""},
		{"no quota at all", queue.Queue{Name: "research", Quotas: quota(func(q *queue.Quota) { q.Slices = 0 })}, ""},
		{"bad name", queue.Queue{Name: "Research"}, "lowercase"},
		{"name too long for a label", queue.Queue{Name: strings.Repeat("a", 64)}, "label"},
		{"negative", queue.Queue{Name: "r", Quotas: quota(func(q *queue.Quota) { q.Slices = -1 })}, "negative"},
		{"borrowing without a cohort", queue.Queue{Name: "r", Quotas: quota(func(q *queue.Quota) { q.Borrow = ptr.To[int64](1) })}, "cohort"},
		{"lending more than it has", queue.Queue{Name: "r", Cohort: "c", Quotas: quota(func(q *queue.Quota) { q.Lend = ptr.To[int64](3) })}, "lend 3 slices out of 2"},
		{"flavor twice", queue.Queue{Name: "r", Quotas: append(quota(nil), quota(nil)...)}, "listed twice"},
		{"system namespace", queue.Queue{Name: "r", Quotas: quota(nil), Namespaces: []string{"kube-system"}}, "belong to Kubernetes"},
		{"bad cohort", queue.Queue{Name: "r", Cohort: "A_B", Quotas: quota(nil)}, "cohort"},
		{"everything", everything(t), ""},
		{"too many chips", queue.Queue{Name: "r", Quotas: quota(func(q *queue.Quota) { q.Slices = math.MaxInt64 / 4 })}, "more than Kueue can count"},
		{"lending without a cohort", queue.Queue{Name: "r", Quotas: quota(func(q *queue.Quota) { q.Lend = ptr.To[int64](1) })}, "cohort"},
		{"flavor in both lists", edited(func(q *queue.Queue) { q.Hosts[0].Flavor = "v5e-4x4" }), "listed twice"},
		{"cpu in one flavor only", queue.Queue{Name: "r", Quotas: append(quota(nil), queue.Quota{Flavor: "b", Slice: v5e, CPU: host("1")})}, "of all flavors or of none"},
		{"cpu counted twice", edited(func(q *queue.Queue) {
			for i := range q.Quotas {
				q.Quotas[i].CPU = host("1")
			}
		}), "not by both"},
		{"host flavor of nothing", edited(func(q *queue.Queue) { q.Hosts = []queue.HostFlavor{{Flavor: "cpu"}} }), "neither cpu nor memory"},
		{"host flavors that differ", edited(func(q *queue.Queue) { q.Hosts[1].Memory = nil }), "of all flavors or of none"},
		{"negative cpu", edited(func(q *queue.Queue) { q.Hosts[1].CPU = host("-1") }), "negative"},
		{"cpu lends too much", edited(func(q *queue.Queue) { q.Hosts[0].CPU.Lend = ptr.To(resource.MustParse("201")) }), "cannot lend 201 out of 200"},
		{"cpu borrows from nobody", edited(func(q *queue.Queue) { q.Cohort = "" }), "cpu: borrowing and lending limits need a cohort"},
		{"reclaims nothing but borrows by force", edited(func(q *queue.Queue) { q.Preemption.ReclaimWithinCohort = kueue.PreemptionPolicyNever }), "reclaim_within_cohort is Never"},
		{"threshold of nothing", edited(func(q *queue.Queue) { q.Preemption.BorrowWithinCohort = "" }), "borrow_within_cohort is Never"},
		{"preference between untried flavors", edited(func(q *queue.Queue) { q.Fungibility.WhenCanBorrow = "" }), "needs TryNextFlavor both"},
		{"unknown strategy", edited(func(q *queue.Queue) { q.Strategy = "LIFO" }), `unknown queueing strategy "LIFO"`},
		{"unknown admission mode", edited(func(q *queue.Queue) { q.Admission = "Fair" }), "unknown admission mode"},
		{"reclaim by age", edited(func(q *queue.Queue) {
			q.Preemption.ReclaimWithinCohort = kueue.PreemptionPolicyLowerOrNewerEqualPriority
		}), "unknown reclaiming"},
		{"negative weight", edited(func(q *queue.Queue) { q.Weight = ptr.To(resource.MustParse("-1")) }), "negative"},
		{"weight of next to nothing", edited(func(q *queue.Queue) { q.Weight = ptr.To(resource.MustParse("1n")) }), "too small"},
		{"weight of a stranger", edited(func(q *queue.Queue) { q.Weights["team-c"] = resource.MustParse("1") }), "team-c has a stop policy or a weight"},
		{"stopped stranger", edited(func(q *queue.Queue) { q.Stopped["team-c"] = kueue.Hold }), "not one of the queue's namespaces"},
		{"unknown door policy", edited(func(q *queue.Queue) { q.Stopped["team-a"] = "Shut" }), `unknown stop policy "Shut"`},
		{"check for a strange flavor", edited(func(q *queue.Queue) { q.Checks[0].Flavors = []string{"v4"} }), "flavor v4, which the queue has not; it has v5e-4x4, v6e-8x8, cpu, more-cpu"},
		{"check twice", edited(func(q *queue.Queue) { q.Checks[1].Name = "provisioning" }), "listed twice"},
		{"check with a flavor twice", edited(func(q *queue.Queue) { q.Checks[0].Flavors = []string{"cpu", "cpu"} }), "flavor cpu is listed twice"},
		{"check with a bad name", edited(func(q *queue.Queue) { q.Checks[1].Name = "A" }), `admission check "A"`},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.q.Validate(), c.want) })
	}
}

func TestFlavorRefusals(t *testing.T) {
	v5e := slice(t, "v5litepod-16")
	many := map[string]string{}
	for _, k := range "abcdefghi" {
		many[string(k)] = "x"
	}
	for _, c := range []struct {
		name string
		f    queue.Flavor
		want string
	}{
		{"plain", queue.Flavor{Name: "v5e", Slice: v5e}, ""},
		{"bad name", queue.Flavor{Name: "v5e_4x4", Slice: v5e}, "v5e_4x4"},
		{"another topology by label", queue.Flavor{Name: "v5e", Slice: v5e, NodeLabels: map[string]string{accelerator.LabelTopology: "8x8"}}, "follows from the accelerator"},
		{"too many labels", queue.Flavor{Name: "v5e", Slice: v5e, NodeLabels: many}, "Kueue allows 8"},
		{"bad label", queue.Flavor{Name: "v5e", Slice: v5e, NodeLabels: map[string]string{"a b": "c"}}, "a b"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.f.Validate(), c.want) })
	}
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted, want a refusal with %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("got %q, want %q in it", err, want)
	}
}
