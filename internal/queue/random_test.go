package queue_test

import (
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// sample is something that somebody could ask for: what it is rendered to, and
// what we say to it.
type sample struct {
	objects []client.Object
	says    error
}

// dice make samples. About half of them have something wrong, drawn from
// values at and beyond every limit.
type dice struct{ *rand.Rand }

func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// rarely is true often enough to matter, and seldom enough that a sample has
// about one thing wrong.
func (d dice) rarely() bool { return d.IntN(12) == 0 }

// name names a new object or one that is referred to; sometimes badly.
func (d dice) name(good string) string {
	if !d.rarely() {
		return good
	}
	return pick(d, "", "A", "a_b", "-a", "a-", "a..b", "a.b", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a.", 126)+"a", strings.Repeat("a", 254), "ä")
}

func (d dice) labelKey() string {
	return pick(d, "team", "example.com/tier", "a.b/c", "A", "cloud.google.com/gke-nodepool", "x", "y", "z", "w", "v",
		pick(d, "ok", "ok", "ok", "", "a b", "/a", "a/b/c", strings.Repeat("k", 64), "-a"))
}

func (d dice) labelValue() string {
	return pick(d, "a", "", "gold", "A.b_c-d", "1", pick(d, "ok", "ok", "a b", "-", strings.Repeat("v", 63), strings.Repeat("v", 64), "a/b"))
}

func (d dice) slice() accelerator.Slice {
	s, err := accelerator.Resolve(pick(d, "v5litepod-16", "v5litepod-8", "v6e-256", "v6e-16", "v5p-128", "v4-8", "tpu7x-128"))
	if err != nil {
		panic(err)
	}
	return s
}

func (d dice) effect() string {
	return pick(d, "NoSchedule", "NoExecute", "PreferNoSchedule", pick(d, "NoSchedule", "NoSchedule", "Never", ""))
}

func (d dice) flavor() sample {
	f := queue.Flavor{Name: d.name("flavor"), Slice: d.slice(), Provisioning: queue.Provisioning(pick(d, append(queue.Provisionings, "")...))}
	if d.IntN(4) == 0 {
		f.Slice = accelerator.Slice{} // hosts
	}
	if f.Provisioning == queue.Reserved || d.rarely() {
		f.Reservation = pick(d, "r1", "r1", "r1", "r1", "", "projects/p/reservations/r", strings.Repeat("r", 64))
	}
	for range pick(d, 0, 0, 1, 3, 4, 5, 7) {
		if f.NodeLabels == nil {
			f.NodeLabels = map[string]string{}
		}
		f.NodeLabels[d.labelKey()] = d.labelValue()
	}
	if d.rarely() {
		f.NodeLabels = map[string]string{pick(d, accelerator.LabelTopology, accelerator.LabelSpot, accelerator.LabelProvisioning): pick(d, "true", "8x8", "standard")}
	}
	for i := range pick(d, 0, 0, 0, 1, 2, 8, 9) {
		key := "taint" + string(rune('a'+i))
		if d.rarely() {
			key = d.labelKey()
		}
		f.NodeTaints = append(f.NodeTaints, corev1.Taint{Key: key, Value: pick(d, "", "true", "x", d.labelValue()), Effect: corev1.TaintEffect(d.effect())})
	}
	for range pick(d, 0, 0, 0, 1, 2, 6, 7, 8) {
		t := corev1.Toleration{Key: pick(d, "a", "example.com/b", "c", d.labelKey()), Effect: corev1.TaintEffect(d.effect())}
		t.Operator = corev1.TolerationOperator(pick(d, "Equal", "Exists", "", pick(d, "Equal", "Equal", "Lt")))
		if t.Operator != corev1.TolerationOpExists || d.rarely() {
			t.Value = pick(d, "", "true", d.labelValue())
		}
		if t.Effect == corev1.TaintEffectNoExecute || d.rarely() {
			t.TolerationSeconds = pick(d, nil, ptr.To[int64](0), ptr.To[int64](30), ptr.To[int64](-1))
		}
		f.Tolerations = append(f.Tolerations, t)
	}
	if d.IntN(3) == 0 {
		f.Topology = &queue.Topology{Levels: d.levels()}
		if d.rarely() {
			f.Topology.Name = d.name("shared")
		}
	}
	s := sample{says: f.Validate()}
	if t := f.TopologyObject(); t != nil {
		s.objects = append(s.objects, t)
	}
	s.objects = append(s.objects, f.Object())
	return s
}

func (d dice) levels() []string {
	if d.IntN(2) == 0 {
		return nil
	}
	levels := []string{}
	for i := range pick(d, 0, 1, 2, 3, 16, 17) {
		level := "level" + string(rune('a'+i))
		if d.rarely() {
			level = pick(d, "levela", accelerator.LabelHostname, d.labelKey(), strings.Repeat("x", 317), "example.com/"+strings.Repeat("x", 64))
		}
		levels = append(levels, level)
	}
	return levels
}

// amount is a number of slices.
func (d dice) amount() int64 {
	if d.rarely() {
		return pick[int64](d, -1, -5, 1<<40, 1<<60)
	}
	return d.Int64N(50)
}

func (d dice) limit() *int64 {
	if d.IntN(3) > 0 {
		return nil
	}
	return ptr.To(d.amount())
}

func (d dice) cohort() sample {
	c := queue.Cohort{Name: d.name("cohort"), Parent: d.name(pick(d, "", "all", "all", "all", "cohort"))}
	if d.IntN(2) == 0 {
		c.Weight = ptr.To(resource.MustParse(pick(d, "0", "1", "0.5", "100", "2n", "1500m", "1n", "-1", "1e6")))
	}
	for i := range pick(d, 0, 1, 2, 3, 64, 65) {
		flavor := "flavor" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		if d.rarely() && i < 4 {
			flavor = d.name("flavoraa")
		}
		q := queue.Quota{Flavor: flavor, Slice: d.slice(), Slices: d.Int64N(9)}
		if i < 3 {
			q.Slices, q.Borrow, q.Lend = d.amount(), d.limit(), d.limit()
		}
		c.Quotas = append(c.Quotas, q)
	}
	return sample{objects: []client.Object{c.Object()}, says: c.Validate()}
}

func (d dice) priority() sample {
	p := queue.Priority{Name: d.name("priority"), Value: pick[int32](d, 0, -1, 1000, -1<<31, 1<<31-1),
		Description: strings.Repeat(pick(d, "x", "ä"), pick(d, 0, 10, 2048, 2049))}
	return sample{objects: []client.Object{p.Object()}, says: p.Validate()}
}

func (d dice) check() sample {
	c := queue.AdmissionCheck{Name: d.name("check"), Controller: pick(d, queue.ProvisioningController, queue.ProvisioningController, "example.com/own")}
	if d.rarely() {
		c.Controller = pick(d, "", strings.Repeat("c", 253), strings.Repeat("c", 254), "Any Thing")
	}
	if (c.Controller == queue.ProvisioningController) != d.rarely() {
		c.Request = d.request()
	}
	if c.Request == nil && d.IntN(2) == 0 || d.rarely() {
		c.Parameters = &queue.CheckParameters{APIGroup: d.name("example.com"), Kind: pick(d, "Settings", "settings", "a-B", pick(d, "K", "", "1K", "K_", strings.Repeat("K", 64))), Name: d.name("mine")}
	}
	s := sample{objects: []client.Object{c.Object()}, says: c.Validate()}
	if config := c.ConfigObject(); config != nil {
		s.objects = append(s.objects, config)
	}
	return s
}

func (d dice) request() *queue.Request {
	r := &queue.Request{Class: d.name("queued-provisioning.gke.io"), Retry: queue.DefaultRetry, MergePolicy: pick(d, "", "", queue.MergePolicies[0], queue.MergePolicies[1])}
	if d.rarely() {
		r.MergePolicy = "Everything"
	}
	if d.IntN(3) == 0 {
		r.Retry = queue.Retry{Limit: pick[int32](d, 0, 1, -1), BaseSeconds: pick[int32](d, 1, 60, 0), MaxSeconds: pick[int32](d, 60, 1<<31-1, 0)}
	}
	for i := range pick(d, 0, 1, 3, 100, 101) {
		if r.Parameters == nil {
			r.Parameters = map[string]string{}
		}
		r.Parameters["p"+string(rune('a'+i%26))+string(rune('a'+i/26))] = strings.Repeat("x", pick(d, 1, 0, 20, pick(d, 1, 255, 256)))
	}
	for i := range pick(d, 0, 0, 1, 2, 100, 101) {
		name := "example.com/r" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		if d.rarely() && i < 3 {
			name = pick(d, "google.com/tpu", "example.com/raa", "a b", "")
		}
		r.ManagedResources = append(r.ManagedResources, name)
	}
	for i := range pick(d, 0, 1, 2, 8, 9) {
		if r.NodeSelector == nil {
			r.NodeSelector = map[string]string{}
		}
		key := "k" + string(rune('a'+i))
		if d.rarely() {
			key = d.labelKey()
		}
		r.NodeSelector[key] = pick(d, "Detail", "Detail", "Detail", pick(d, "D", "D", "", strings.Repeat("x", 32769)))
	}
	return r
}
