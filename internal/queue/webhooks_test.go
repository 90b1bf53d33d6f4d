package queue_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

var (
	randomObjects = flag.Int("queue.random", 400, "how many random objects of each kind go through the real webhooks")
	randomSeed    = flag.Uint64("queue.seed", 7, "what they are drawn by")
)

// deliberate are the refusals of what Kueue takes, each with its reason.
var deliberate = []struct{ says, because string }{
	{"follows from the accelerator and the provisioning", "it contradicts the slice, and would select no node"},
	{"set provisioning instead", "read back, it would be the provisioning"},
	{"is one of TPU nodes", "read back, it would be an accelerator"},
	{"would land on TPU nodes", "it would be a flavor of TPU nodes"},
	{"is added by itself", "read back, it would be one of those that are added"},
	{"needs the name of the reservation", "an empty label selects no node"},
	{"goes with provisioning", "it would say nothing"},
	{"leave out either the name or the levels", "the levels would say nothing"},
	{"its own parent", "Kueue takes it, and then admits nothing in any of its queues"},
	{"more than Kueue can count", "sums of such quotas overflow"},
	{"as a label", "no job could name it"},
	{"needs provisioning_request", "the check is never active without"},
	{"has parameters of its own", "nobody would read them"},
	{"leave parameters out", "only one of the two is named by the check"},
	{"no dots", "the check's reference to its configuration takes no such name"},
	{"retry:", "Kueue would wait for no time, or never end"},
	{"managed resource", "no pod can ask for it"},
	{"toleration", "no pod can have it"},
	{"says nothing while borrowing evicts nobody", "nobody would read it"},
	{"has a stop policy or a weight, and is not one of", "there is no LocalQueue to have it"},
	{"the weight of namespace", "a share cannot be less than nothing, or too small to tell"},
	{"belong to Kubernetes", "no training job is in such a namespace"},
	{"namespace team-a is listed twice", "one of the two says nothing"},
}

// randomKinds: what we render the real webhooks and CRDs take, and what we
// refuse they refuse too, or it is refused on purpose.
func randomKinds(t *testing.T, stage *kube.Client) {
	eager := rest.CopyConfig(stage.Config)
	eager.QPS = -1 // as fast as the server answers, and out of the scenes' way
	k, err := kube.ForConfig(stage.Name, eager)
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{"team-a", "team-b"} {
		if err := k.Apply(t.Context(), queue.Namespace{Name: ns}.Objects()[0], kube.ApplyOptions{Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("frozen flavors", func(t *testing.T) { frozen(t, k) })
	for i, kind := range []struct {
		name string
		draw func(dice) sample
	}{{"flavors", dice.flavor}, {"cohorts", dice.cohort}, {"priorities", dice.priority}, {"checks", dice.check}, {"queues", dice.queue}} {
		t.Run(kind.name, func(t *testing.T) {
			d := dice{rand.New(rand.NewPCG(*randomSeed, uint64(i)))}
			samples := make([]sample, *randomObjects)
			for n := range samples {
				samples[n] = kind.draw(d)
			}
			judge(t, samples, judgements(t, k, samples))
		})
	}
}

// judgements are what the API server says to the samples, eight at a time.
func judgements(t *testing.T, k *kube.Client, samples []sample) []error {
	verdicts, trouble := make([]error, len(samples)), make([]error, len(samples))
	work := make(chan int)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range work {
				verdicts[n], trouble[n] = verdict(t.Context(), k, samples[n])
			}
		})
	}
	for n := range samples {
		work <- n
	}
	close(work)
	wg.Wait()
	for n, err := range trouble {
		if err != nil {
			t.Fatalf("sample %d: %v\n%s", n, err, rendered(samples[n]))
		}
	}
	return verdicts
}

// judge holds what we say to the samples against what the API server says.
func judge(t *testing.T, samples []sample, verdicts []error) {
	taken, used := 0, map[string]int{}
	for n, s := range samples {
		switch {
		case s.says == nil && verdicts[n] == nil:
			taken++
		case s.says == nil:
			t.Errorf("sample %d: we take what Kueue refuses: %v\n%s", n, verdicts[n], rendered(s))
		case verdicts[n] == nil:
			why := reason(s.says)
			if why == "" {
				t.Errorf("sample %d: Kueue takes what we refuse: %v\n%s", n, s.says, rendered(s))
			}
			used[why]++
		}
	}
	t.Logf("%d of %d taken; refused on purpose: %v", taken, len(samples), used)
	if share := taken * 100 / len(samples); share < 10 || share > 90 {
		t.Errorf("%d%% of the samples are right: the dice show little", share)
	}
}

// verdict is what the API server says to creating all of a sample.
func verdict(ctx context.Context, k *kube.Client, s sample) (refused, trouble error) {
	for _, o := range s.objects {
		err := k.Apply(ctx, o, kube.ApplyOptions{DryRun: true})
		switch {
		case err == nil:
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), o.GetName() == "",
			apierrors.IsNotFound(err) && o.GetNamespace() != "": // no such namespace
			return err, nil
		default:
			// A name that makes no URL, or a list that is no set: not even a request.
			if strings.Contains(err.Error(), "invalid") || strings.Contains(err.Error(), "failed to create typed patch object") {
				return err, nil
			}
			return nil, err
		}
	}
	return nil, nil
}

// reason is why a refusal is on purpose; "" when it, or one of several, is not.
func reason(says error) (why string) {
	for line := range strings.SplitSeq(says.Error(), "\n") {
		why = ""
		for _, d := range deliberate {
			if strings.Contains(line, d.says) {
				why = d.because
			}
		}
		if why == "" {
			return ""
		}
	}
	return why
}

func rendered(s sample) string {
	var all strings.Builder
	for _, o := range s.objects {
		b, err := yaml.Marshal(o)
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&all, "---\n%s", b)
	}
	return all.String()
}

// frozen: Kueue refuses to change a flavor with a Topology exactly where we say
// that it does.
func frozen(t *testing.T, k *kube.Client) {
	d := dice{rand.New(rand.NewPCG(*randomSeed, 99))}
	v6e := slice(t, "v6e-256")
	refused := 0
	for n := range 40 {
		before := queue.Flavor{Name: fmt.Sprintf("frozen-%d", n), Slice: v6e, Provisioning: queue.OnDemand}
		if d.IntN(4) > 0 {
			before.Topology = &queue.Topology{}
		}
		after := before
		switch d.IntN(7) {
		case 0:
			after.NodeLabels = map[string]string{"a": "b"}
		case 1:
			after.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}
		case 2:
			after.Provisioning = queue.Spot
		case 3:
			after.Topology = &queue.Topology{Levels: []string{"other"}}
		case 4:
			after.Topology = nil
		case 5:
			after.NodeTaints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
		case 6:
			after.Topology = &queue.Topology{Name: "shared"}
		}
		objects := func(f queue.Flavor) (all []client.Object) {
			if o := f.TopologyObject(); o != nil {
				all = append(all, o)
			}
			return append(all, f.Object())
		}
		for _, o := range objects(before) {
			if err := k.Apply(t.Context(), o, kube.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		says, trouble := verdict(t.Context(), k, sample{objects: objects(after)})
		if trouble != nil {
			t.Fatal(trouble)
		}
		if want := after.Frozen(before); want != (says != nil) {
			t.Errorf("%+v to %+v: frozen %t, and Kueue says %v", before.Topology, after, want, says)
		}
		if says != nil {
			refused++
		}
	}
	if refused == 0 || refused == 40 {
		t.Errorf("%d of 40 changes were refused", refused)
	}
}
