package queue_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

func TestRenderedKueueObjects(t *testing.T) {
	v6e := slice(t, "v6e-256")
	t.Run("flavor with a topology", func(t *testing.T) {
		f := queue.Flavor{Name: "v6e-16x16", Slice: v6e, Provisioning: queue.Reserved, Reservation: "r1", Topology: &queue.Topology{},
			NodeTaints:  []corev1.Taint{{Key: "gold", Value: "yes", Effect: corev1.TaintEffectNoSchedule}},
			Tolerations: []corev1.Toleration{{Key: "gold", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](30)}}}
		golden(t, "flavor-topology", f.TopologyObject(), f.Object())
	})
	t.Run("cohort", func(t *testing.T) {
		golden(t, "cohort", queue.Cohort{Name: "lab", Parent: "all", Weight: ptr.To(resource.MustParse("0.5")), Quotas: []queue.Quota{
			{Flavor: "v6e-16x16", Slice: v6e, Slices: 2, Borrow: ptr.To[int64](1), Lend: ptr.To[int64](3)}}}.Object())
	})
	t.Run("bare cohort", func(t *testing.T) { golden(t, "cohort-bare", queue.Cohort{Name: "all"}.Object()) })
	t.Run("priority", func(t *testing.T) {
		golden(t, "priority", queue.Priority{Name: "urgent", Value: 2000, Description: "first of all"}.Object())
	})
	t.Run("check", func(t *testing.T) {
		c := queue.AdmissionCheck{Name: "queued", Controller: queue.ProvisioningController, Request: &queue.Request{
			Class: "queued-provisioning.gke.io", Parameters: map[string]string{"maxRunDurationSeconds": "86400"}, ManagedResources: []string{"google.com/tpu"},
			Retry: queue.DefaultRetry, NodeSelector: map[string]string{"autoscaling.gke.io/provisioning-request": "ResizeRequestName"}, MergePolicy: queue.MergePolicies[0]}}
		golden(t, "check", c.ConfigObject(), c.Object())
		if diff := cmp.Diff(c, queue.AdmissionCheckOf(c.Object(), c.ConfigObject())); diff != "" {
			t.Errorf("read back (-want +got):\n%s", diff)
		}
	})
	t.Run("check of another controller", func(t *testing.T) {
		c := queue.AdmissionCheck{Name: "slices", Controller: accelerator.SuperSliceController, Parameters: &queue.CheckParameters{APIGroup: "example.com", Kind: "Settings", Name: "s"}}
		golden(t, "check-other", c.Object())
		if diff := cmp.Diff(c, queue.AdmissionCheckOf(c.Object(), nil)); diff != "" {
			t.Errorf("read back (-want +got):\n%s", diff)
		}
	})
}

// A flavor is read back as it was written, whatever its model and topology.
func TestFlavorOf(t *testing.T) {
	for _, model := range append(queue.Provisionings, "") {
		for _, topology := range []*queue.Topology{nil, {}, {Name: "shared"}, {Levels: []string{"block", accelerator.LabelHostname}}} {
			want := queue.Flavor{Name: "f", Slice: slice(t, "v6e-256"), Provisioning: queue.Provisioning(model), NodeLabels: map[string]string{"team": "a"}, Topology: topology,
				Tolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}, NodeTaints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}}
			if want.Provisioning == queue.Reserved {
				want.Reservation = "r"
			}
			if err := want.Validate(); err != nil {
				t.Fatal(err)
			}
			got := queue.FlavorOf(want.Object(), want.TopologyObject())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %v (-want +got):\n%s", model, topology, diff)
			}
			if got.Frozen(want) {
				t.Errorf("%s, %v: reading it changed it", model, topology)
			}
		}
	}
	for _, model := range []queue.Provisioning{queue.AnyProvisioning, queue.Spot} {
		want := queue.Flavor{Name: "hosts", Provisioning: model, NodeLabels: map[string]string{}, Tolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}}
		if err := want.Validate(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, queue.FlavorOf(want.Object(), nil)); diff != "" {
			t.Errorf("hosts, %s (-want +got):\n%s", model, diff)
		}
	}
	lost := queue.Flavor{Name: "f", Slice: slice(t, "v6e-256")}.Object()
	delete(lost.Spec.NodeLabels, accelerator.LabelAcceleratorCount)
	if got := queue.FlavorOf(lost, nil); got.Slice != (accelerator.Slice{}) {
		t.Errorf("a flavor without the chips per host is taken for %v", got.Slice)
	}
}

// A Topology that somebody deleted can be made again.
func TestFrozenWithoutItsTopology(t *testing.T) {
	f := queue.Flavor{Name: "f", Slice: slice(t, "v6e-256"), Topology: &queue.Topology{}}
	if f.Frozen(queue.FlavorOf(f.Object(), nil)) {
		t.Error("it cannot be made again")
	}
}

func TestTopologyLevels(t *testing.T) {
	for name, want := range map[string]string{
		"v6e-64":       "gke-tpu-slice-8x8-id gke-tpu-slice-4x8-id gke-tpu-slice-4x4-id gke-tpu-slice-2x4-id hostname",
		"tpu7x-128":    "gce-topology-block gke-tpu-partition-4x4x4-id hostname",
		"v5litepod-16": "gce-topology-block gce-topology-subblock hostname",
	} {
		var got []string
		for _, l := range queue.DefaultLevels(slice(t, name)) {
			got = append(got, l[strings.LastIndexByte(l, '/')+1:])
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCircles(t *testing.T) {
	cohort := func(name, parent string) kueue.Cohort {
		return kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(parent)}}
	}
	all := []kueue.Cohort{cohort("a", ""), cohort("b", "a"), cohort("c", "b"), cohort("x", "y"), cohort("y", "x")}
	for _, tt := range []struct{ name, parent, want string }{
		{"a", "c", "a c b a"}, {"a", "a", "a a"}, {"a", "nobody", ""}, {"c", "a", ""}, {"new", "c", ""}, {"new", "x", ""},
	} {
		got := queue.Cohort{Name: tt.name, Parent: tt.parent}.Cycle(all)
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s in %s (-want +got):\n%s", tt.name, tt.parent, diff)
		}
	}
}

// What the real webhooks are asked in TestOnTheRealKueue, in words.
func TestKueueObjectRefusals(t *testing.T) {
	v6e := slice(t, "v6e-256")
	flavor := func(edit func(*queue.Flavor)) error {
		f := queue.Flavor{Name: "f", Slice: v6e}
		edit(&f)
		return f.Validate()
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"reservation without a name": {flavor(func(f *queue.Flavor) { f.Provisioning = queue.Reserved }), "needs the name of the reservation"},
		"reservation by its path":    {flavor(func(f *queue.Flavor) { f.Provisioning, f.Reservation = queue.Reserved, "projects/p/reservations/r" }), `the last part of it, "r"`},
		"reservation of spot":        {flavor(func(f *queue.Flavor) { f.Provisioning, f.Reservation = queue.Spot, "r" }), "goes with provisioning"},
		"model by its label":         {flavor(func(f *queue.Flavor) { f.NodeLabels = map[string]string{accelerator.LabelSpot: "true"} }), "set provisioning instead"},
		"taint twice": {flavor(func(f *queue.Flavor) {
			f.NodeTaints = []corev1.Taint{{Key: "a", Effect: "NoExecute"}, {Key: "a", Value: "b", Effect: "NoExecute"}}
		}), "twice with effect NoExecute"},
		"taint without effect":         {flavor(func(f *queue.Flavor) { f.NodeTaints = []corev1.Taint{{Key: "a"}} }), "want NoSchedule"},
		"toleration of all, by value":  {flavor(func(f *queue.Flavor) { f.Tolerations = []corev1.Toleration{{Value: "x"}} }), `operator = "Exists"`},
		"toleration exists with value": {flavor(func(f *queue.Flavor) { f.Tolerations = []corev1.Toleration{{Key: "a", Operator: "Exists", Value: "x"}} }), "looks at no value"},
		"toleration for a while": {flavor(func(f *queue.Flavor) {
			f.Tolerations = []corev1.Toleration{{Key: "a", TolerationSeconds: ptr.To[int64](1)}}
		}), "NoExecute only"},
		"toleration of TPU nodes":  {flavor(func(f *queue.Flavor) { f.Tolerations = f.AddedTolerations() }), "is added by itself"},
		"hosts by a slice's label": {queue.Flavor{Name: "f", NodeLabels: map[string]string{accelerator.LabelTopology: "4x4"}}.Validate(), "set accelerator instead"},
		"hosts on TPU nodes":       {queue.Flavor{Name: "f", Tolerations: []corev1.Toleration{{Key: accelerator.TaintKey, Operator: "Exists"}}}.Validate(), "would land on TPU nodes"},
		"hosts of no topology":     {queue.Flavor{Name: "f", Topology: &queue.Topology{}}.Validate(), "at least one that says whose nodes"},
		"hosts of a topology":      {queue.Flavor{Name: "f", NodeLabels: map[string]string{"a": "b"}, Topology: &queue.Topology{}}.Validate(), ""},
		"too many tolerations": {flavor(func(f *queue.Flavor) {
			f.Tolerations = make([]corev1.Toleration, 7)
			for i := range f.Tolerations {
				f.Tolerations[i] = corev1.Toleration{Key: "a", Operator: "Exists"}
			}
		}), "9 tolerations, of which the accelerator and the provisioning take 2"},
		"host in the middle": {flavor(func(f *queue.Flavor) {
			f.Topology = &queue.Topology{Levels: []string{accelerator.LabelHostname, "rack"}}
		}), "can only be the last"},
		"level twice":                  {flavor(func(f *queue.Flavor) { f.Topology = &queue.Topology{Levels: []string{"rack", "rack"}} }), "there twice"},
		"no level":                     {flavor(func(f *queue.Flavor) { f.Topology = &queue.Topology{Levels: []string{}} }), "without levels"},
		"levels of another's":          {flavor(func(f *queue.Flavor) { f.Topology = &queue.Topology{Name: "x", Levels: []string{"rack"}} }), "leave out either"},
		"cohort with itself":           {queue.Cohort{Name: "a", Parent: "a"}.Validate(), "its own parent"},
		"cohort's flavor twice":        {queue.Cohort{Name: "a", Quotas: []queue.Quota{{Flavor: "f", Slice: v6e}, {Flavor: "f", Slice: v6e}}}.Validate(), "listed twice"},
		"limit without a parent":       {queue.Cohort{Name: "a", Quotas: []queue.Quota{{Flavor: "f", Slice: v6e, Lend: ptr.To[int64](1)}}}.Validate(), "it has none"},
		"more than a cohort has, lent": {queue.Cohort{Name: "a", Parent: "b", Quotas: []queue.Quota{{Flavor: "f", Slice: v6e, Lend: ptr.To[int64](1)}}}.Validate(), ""},
		"countless":                    {queue.Cohort{Name: "a", Quotas: []queue.Quota{{Flavor: "f", Slice: v6e, Slices: 1 << 60}}}.Validate(), "more than Kueue can count"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, tt.err, tt.want) })
	}
}
