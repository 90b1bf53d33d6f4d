package controlplane

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// jobNameLabel is on every pod of a Job. Those pods are always simulated.
const jobNameLabel = "batch.kubernetes.io/job-name"

// Images whose last path element is jobset or kueue are run as processes. The
// two expressions say the same: one for us, one, in jq, for KWOK.
var processImage = regexp.MustCompile(`(?:^|/)(jobset|kueue)(?::[^/]*)?(?:@[^/]*)?$`)

const processPodQuery = `select(.metadata.labels["` + jobNameLabel + `"] == null) | .spec.containers.[] | select(.image | test("(^|/)(jobset|kueue)(:[^/]*)?(@[^/]*)?$")) | .name`

// binaryOf is the name of the binary behind an image, or "".
func binaryOf(image string) string {
	if m := processImage.FindStringSubmatch(image); m != nil {
		return m[1]
	}
	return ""
}

// processContainer is the container of a pod that runs as a process, or nil.
func processContainer(p *corev1.Pod) *corev1.Container {
	if p.Labels[jobNameLabel] != "" {
		return nil
	}
	for i := range p.Spec.Containers {
		if binaryOf(p.Spec.Containers[i].Image) != "" {
			return &p.Spec.Containers[i]
		}
	}
	return nil
}

// kubelet runs the pods that are processes, on whatever node they are
// scheduled to.
type kubelet struct {
	cp  *ControlPlane
	dir string // one folder per pod

	mu   sync.Mutex
	pods map[types.UID]*podRun
	ips  map[string]bool
	next uint16
	wg   sync.WaitGroup

	synced chan struct{} // closed when the pods of an earlier run are ready again
}

func newKubelet(cp *ControlPlane) *kubelet {
	return &kubelet{
		cp: cp, dir: filepath.Join(cp.cfg.Dir, "pods"),
		pods: map[types.UID]*podRun{}, ips: map[string]bool{},
		// A random start: pods of an earlier run keep theirs.
		next:   uint16(rand.UintN(1 << 16)),
		synced: make(chan struct{}),
	}
}

// run watches pods until ctx ends, and returns when its processes are gone.
func (k *kubelet) run(ctx context.Context, api *kubeletAPI) {
	defer api.server.Close()
	factory := informers.NewSharedInformerFactoryWithOptions(k.cp.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "!" + jobNameLabel }))
	pods := factory.Core().V1().Pods().Informer()
	handler, _ := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.see(ctx, o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { k.see(ctx, o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if p, ok := o.(*corev1.Pod); ok {
				k.forget(p.UID)
			}
		},
	})
	factory.Start(ctx.Done())
	if handler != nil && cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		k.mu.Lock()
		runs := slices.Collect(maps.Values(k.pods))
		k.mu.Unlock()
		for _, r := range runs {
			select {
			case <-r.again:
			case <-time.After(resumeTimeout):
				k.cp.log.Warn("a pod of an earlier run is not ready yet", "pod", r.pod.Name)
			case <-ctx.Done():
			}
		}
		close(k.synced)
	}
	<-ctx.Done()
	k.wg.Wait()
	factory.Shutdown()
}

// see hands the newest form of a pod to whoever runs it.
func (k *kubelet) see(ctx context.Context, p *corev1.Pod) {
	if p.Spec.NodeName == "" || processContainer(p) == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	run := k.pods[p.UID]
	if run == nil {
		if ctx.Err() != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			return
		}
		run = newPodRun(k, p)
		k.pods[p.UID] = run
		k.wg.Go(func() { run.run(ctx) })
	}
	if p.DeletionTimestamp != nil {
		run.end(p)
	}
}

// forget stops what ran for a pod that is no more.
func (k *kubelet) forget(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if run := k.pods[uid]; run != nil {
		run.end(nil)
		delete(k.pods, uid)
	}
}

// address reserves a pod's address: the one it had, or a new one from the
// range set aside for benchmarks, which no real network uses.
func (k *kubelet) address(had string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for had == "" || k.ips[had] {
		k.next++
		had = fmt.Sprintf("198.18.%d.%d", k.next>>8, k.next&255)
	}
	k.ips[had] = true
	return had
}

func (k *kubelet) release(ip string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.ips, ip)
}

// The rhythm of a pod's life.
const (
	// watchful is how often a pod that is not ready yet is probed and its
	// secrets are looked at.
	watchful = 150 * time.Millisecond
	// settled is the same for a ready pod.
	settled = 2 * time.Second
	// probeFailures in a row make a ready pod unready, as Kubernetes defaults.
	probeFailures = 3
	// resumeTimeout bounds how long Start waits for the controllers of a cluster
	// that is continued; they take about 4 s.
	resumeTimeout = 45 * time.Second
	// A pod's token is asked for an hour and renewed well before.
	tokenLife  = time.Hour
	tokenRenew = 40 * time.Minute
)
