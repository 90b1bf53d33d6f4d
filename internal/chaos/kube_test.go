package chaos

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/faults"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

var kubeEvery = flag.Int("chaos.kube", 0, "one in so many cells of the matrices with a real control plane instead of the usual sample")

const (
	kubeProject = "chaos-kube"
	kubeCluster = "projects/" + kubeProject + "/locations/us-west4-a/clusters/main"
)

// The parts of a configuration on a real control plane.
var (
	nothingHCL = fmt.Sprintf(`
provider "tpu" {
  project  = %q
  location = "us-west4-a"
  owner    = %q
}
`, kubeProject, owner)
	groundHCL      = nothingHCL + four.hcl()
	controllersHCL = withControllers(four)
	jobHCL         = withJob(four, "")
	// A job that is at work for longer than any cell takes.
	endless = `pod_annotations = { "pod-complete.stage.kwok.x-k8s.io/delay" = "24h" }`
)

func withControllers(p pool) string {
	return nothingHCL + p.hcl() + `
resource "tpu_job_controllers" "main" { cluster = tpu_training_cluster.main.id }
`
}

// withJob has a job of four slices besides, and a queue with all slices of the
// pool.
func withJob(p pool, more string) string {
	return withControllers(p) + fmt.Sprintf(`
resource "tpu_training_namespace" "research" {
  cluster = tpu_training_cluster.main.id
  name    = "research"
}
resource "tpu_kueue_flavor" "slices" {
  cluster     = tpu_job_controllers.main.cluster
  name        = "slices"
  accelerator = %[1]q
}
resource "tpu_kueue_queue" "research" {
  cluster    = tpu_job_controllers.main.cluster
  name       = "research"
  namespaces = [tpu_training_namespace.research.name]
  flavors    = [{ name = tpu_kueue_flavor.slices.name, slice_pool = tpu_slice_pool.slices }]
}
resource "tpu_training_jobset" "train" {
  cluster     = tpu_slice_pool.slices.cluster
  namespace   = tpu_training_namespace.research.name
  name        = "train"
  queue       = tpu_kueue_queue.research.name
  accelerator = %[1]q
  slices      = 4
  image       = "python:3.13"
  command     = ["true"]
  wait_for    = "admitted"
  %[2]s
}
`, p.accelerator, more)
}

// forcedDisks are four slices that get new nodes even while a job runs.
func forcedDisks(gb int32) pool {
	return pool{accelerator: "v5litepod-16", machine: "ct5lp-hightpu-4t", count: 4, diskGB: gb,
		more: fmt.Sprintf("force = true\n  node = { boot_disk = { size_gb = %d } }", gb)}
}

// kubeScenario is one apply with a real control plane.
type kubeScenario struct {
	scenario        // of GKE's part
	from, to string // HCL
	via      string // what is applied before from, if anything
	want     []string
	newJob   bool // the job that is there is replaced
	// resources are in state, afterwards.
	resources int
	// cells of a full run: each takes ten seconds, or most of a minute where a
	// control plane comes up, so not all that there are.
	cells int
	short []cell // in `make test`
}

var (
	jobObjects = []string{"clusterqueue research", "flavor slices", "jobset research/train", "localqueue research/research", "namespace research"}
	forced     = forcedDisks(100)
	forcedMore = forcedDisks(200)

	allAtOnce = kubeScenario{
		scenario: scenario{name: "everything at once: create", after: &four},
		from:     nothingHCL, to: jobHCL, want: jobObjects, resources: 7, cells: 12,
		// While GKE works, and while the controllers come up.
		short: []cell{{n: 14, at: faults.After, by: killProvider}, {n: 80, at: faults.After, by: killAll}},
	}
	queueAndJob = kubeScenario{
		scenario: scenario{name: "queue and job: create", before: &four, after: &four},
		from:     controllersHCL, to: jobHCL, want: jobObjects, resources: 7, cells: 40,
		short: []cell{{n: 36, at: faults.Before, by: killAll}},
	}
	queueAndJobGone = kubeScenario{
		scenario: scenario{name: "queue and job: destroy", before: &four, after: &four},
		from:     jobHCL, to: controllersHCL, resources: 3, cells: 40,
	}
	controllersUp = kubeScenario{
		scenario: scenario{name: "controllers: create", before: &four, after: &four},
		from:     groundHCL, to: controllersHCL, resources: 3, cells: 40,
	}
	controllersGone = kubeScenario{
		scenario: scenario{name: "controllers: destroy", before: &four, after: &four},
		from:     controllersHCL, to: groundHCL, resources: 2, cells: 40,
	}
	kubeScenarios = []kubeScenario{
		allAtOnce, queueAndJob, queueAndJobGone, controllersUp, controllersGone,
		// The job is at work meanwhile, and the queue's quota is that of the pool.
		{
			scenario: scenario{name: "around a job: grow", before: &four, after: &six},
			from:     withJob(four, endless), to: withJob(six, endless), want: jobObjects, resources: 7, cells: 16,
		},
		{
			scenario: scenario{name: "around a job: shrink", before: &six, after: &four},
			// The job came when there were four slices, and runs on those.
			via: withJob(four, endless), from: withJob(six, endless), to: withJob(four, endless), want: jobObjects, resources: 7, cells: 16,
			short: []cell{{n: 38, at: faults.After, by: killProvider}},
		},
		{
			scenario: scenario{name: "around a job: slice by slice", before: &forced, after: &forcedMore},
			from:     withJob(forced, endless), to: withJob(forcedMore, endless), want: jobObjects, resources: 7, cells: 16,
		},
		{
			scenario: scenario{name: "around a job: replacement", before: &four, after: &other, remade: true},
			from:     withJob(four, endless), to: withJob(other, endless), want: jobObjects, newJob: true, resources: 7, cells: 16,
		},
		{
			scenario: scenario{name: "everything at once: destroy", before: &four},
			from:     withJob(four, endless), to: nothingHCL, cells: 12,
		},
	}
)

// objects lists what of the configuration's is on the cluster.
func objects(t testing.TB, cl *kube.Client) (found []string, job string) {
	t.Helper()
	mine := func(o client.Object) bool {
		return o.GetLabels()["app.kubernetes.io/managed-by"] == "terraform-provider-tpu" && o.GetDeletionTimestamp() == nil
	}
	each := func(kind string, list client.ObjectList, items func() []client.Object) {
		err := cl.List(t.Context(), list)
		// A kind that is not installed, or going at this moment, has no objects.
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		for _, o := range items() {
			if !mine(o) {
				continue
			}
			name := o.GetName()
			if ns := o.GetNamespace(); ns != "" {
				name = ns + "/" + name
			}
			found = append(found, kind+" "+name)
			if kind == "jobset" {
				job = string(o.GetUID())
			}
		}
	}
	var ns corev1.NamespaceList
	each("namespace", &ns, func() []client.Object { return pointers(ns.Items) })
	var rf kueue.ResourceFlavorList
	each("flavor", &rf, func() []client.Object { return pointers(rf.Items) })
	var cq kueue.ClusterQueueList
	each("clusterqueue", &cq, func() []client.Object { return pointers(cq.Items) })
	var lq kueue.LocalQueueList
	each("localqueue", &lq, func() []client.Object { return pointers(lq.Items) })
	var js jobset.JobSetList
	each("jobset", &js, func() []client.Object { return pointers(js.Items) })
	slices.Sort(found)
	return found, job
}

// pointers are the items of a list as objects.
func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	out := make([]client.Object, len(items))
	for i := range items {
		out[i] = P(&items[i])
	}
	return out
}

// rig is a cluster with a real control plane, and the directory that has its
// state.
type rig struct {
	box *sandbox.Sandbox
	b   *bench
	now string // the configuration that was applied last
	ledger
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{box: acctest.Sandbox(t), b: newBenches(t, 1).take(t, nil)}
	r.ledger = newLedger(r.box.GKE(), kubeProject)
	r.b.Env = append(r.b.Env, r.box.Env()...)
	t.Cleanup(func() {
		if text, err := r.b.run(t, "destroy", "-auto-approve", "-no-color"); err != nil {
			t.Errorf("destroying everything in the end: %v\n%s", err, text)
		}
		if left := r.facts().clusters; len(left) > 0 {
			t.Errorf("left after the destroy: %s", left)
		}
	})
	return r
}

// begin makes the world be what a scenario begins with.
func (r *rig) begin(t *testing.T, s kubeScenario) {
	t.Helper()
	if s.via != "" && r.now != s.from {
		r.be(t, s.via)
	}
	r.be(t, s.from)
	r.mark()
}

// be makes the world be what a configuration says, undisturbed.
func (r *rig) be(t *testing.T, config string) {
	t.Helper()
	r.b.write(t, config)
	if r.now == config {
		return
	}
	if text, err := r.b.run(t, apply...); err != nil {
		t.Fatalf("an undisturbed apply: %v\n%s", err, text)
	}
	r.now = config
}

// calls are those of an undisturbed apply of the scenario.
func (r *rig) calls(t *testing.T, s kubeScenario) (all []faults.Call) {
	t.Helper()
	r.begin(t, s)
	never := cell{n: -1, by: killProvider}
	var mu sync.Mutex
	remove := r.box.Faults().OnCall(func(c faults.Call, at faults.Stage) bool {
		mu.Lock()
		defer mu.Unlock()
		if at == faults.Before && strings.Contains(c.Path, kubeProject) {
			all = append(all, c)
		}
		return false
	})
	r.b.write(t, s.to)
	_, text := r.b.ended(t, r.box.Faults(), kubeProject, never, nil, func() {})
	remove()
	if v := r.check(t, s, ""); !v.ok() {
		t.Fatalf("%s, undisturbed:\n%s\n%s", s.name, v, text)
	}
	r.now = s.to
	return all
}

// check plans once more and compares the cluster with the scenario. job is the
// identity of a job that was there already, which must not have been run again.
func (r *rig) check(t *testing.T, s kubeScenario, job string) (v verdict) {
	t.Helper()
	if text, err := r.b.run(t, plan...); err != nil {
		v.failures = append(v.failures, fmt.Sprintf("the next plan is not empty: %v\n%s", err, text))
	}
	known, err := readState(r.b.stateFile())
	if err != nil {
		t.Fatal(err)
	}
	for _, tainted := range known.tainted {
		v.failures = append(v.failures, tainted+" is tainted")
	}
	if known.count != s.resources {
		v.orphans = append(v.orphans, fmt.Sprintf("Terraform's state has %d resources, not %d", known.count, s.resources))
	}
	v.add(s.model().judge(r.facts(), known))
	var found []string
	var now string
	if s.after != nil {
		found, now = objects(t, acctest.Connect(t, kubeCluster))
	}
	for _, o := range found {
		if !slices.Contains(s.want, o) {
			v.duplicates = append(v.duplicates, o)
		}
	}
	for _, o := range s.want {
		if !slices.Contains(found, o) {
			v.losses = append(v.losses, o)
		}
	}
	if job != "" && now != "" && job != now {
		v.losses = append(v.losses, "the job that ran was replaced by another")
	}
	return v
}

// job is the identity of the job that is on the cluster, or "".
func (r *rig) job(t *testing.T) string {
	t.Helper()
	for _, c := range r.box.Status().Clusters {
		if c.Path == kubeCluster && c.Status == "RUNNING" {
			_, job := objects(t, acctest.Connect(t, kubeCluster))
			return job
		}
	}
	return "" // killed before there was a cluster
}

// run ends the scenario's apply at a call, applies again, and judges.
func (r *rig) run(t *testing.T, s kubeScenario, c cell) outcome {
	t.Helper()
	r.begin(t, s)
	r.b.write(t, s.to)
	r.now = "" // whatever happens
	job := ""
	if s.before != nil && len(s.want) > 0 && !s.newJob {
		job = r.job(t)
	}
	out, first := r.b.ended(t, r.box.Faults(), kubeProject, c, nil, func() {})
	if len(s.want) > 0 && !s.newJob {
		job = cmp.Or(job, r.job(t))
	}
	if text, err := r.b.run(t, apply...); err != nil {
		out.failures = append(out.failures, fmt.Sprintf("the apply after it: %v\n%s\nthe first apply said:\n%s", err, text, first))
	} else {
		r.now = s.to
	}
	v := r.check(t, s, job)
	v.failures = append(out.failures, v.failures...)
	out.verdict = v
	return out
}

// The same on a real control plane: controllers, a queue and a job, ended at
// calls to GKE and to the API server, and then in bad weather.
func TestOnARealCluster(t *testing.T) {
	r := newRig(t)
	long := *full || *kubeEvery > 0
	for _, s := range kubeScenarios {
		if (*only == "" || s.name == *only) && (long || s.short != nil) {
			t.Run(s.name, func(t *testing.T) {
				if long {
					r.matrix(t, s)
				} else {
					r.cells(t, s, 0, s.short)
				}
			})
		}
	}
	weather := []kubeScenario{queueAndJob, queueAndJobGone}
	if long {
		weather = []kubeScenario{controllersUp, queueAndJob, queueAndJobGone, controllersGone}
	}
	if *only == "" {
		t.Run("faults", func(t *testing.T) { r.soak(t, weather) })
	}
}

// matrix ends the scenario's apply in a sample of the ways there are.
func (r *rig) matrix(t *testing.T, s kubeScenario) {
	calls := r.calls(t, s)
	cells := append(kills(len(calls)), interrupts(len(calls))...)
	n := s.cells
	if *kubeEvery > 0 {
		n = (len(cells) + *kubeEvery - 1) / *kubeEvery
	}
	r.cells(t, s, len(calls), effective(sample(cells, len(cells), s.name), calls)[:min(n, len(cells))])
}

// effective puts one cell of each call that changes something first.
func effective(cells []cell, calls []faults.Call) []cell {
	var first, rest []cell
	had := map[int]bool{}
	for _, c := range cells {
		if calls[c.n-1].Mutates && !had[c.n] {
			had[c.n] = true
			first = append(first, c)
		} else {
			rest = append(rest, c)
		}
	}
	return append(first, rest...)
}

// cells runs cells of a scenario whose apply has so many calls.
func (r *rig) cells(t *testing.T, s kubeScenario, calls int, cells []cell) {
	sum := &tally{calls: calls, began: time.Now()}
	for _, c := range cells {
		c.held = false
		t.Run(c.String(), func(t *testing.T) {
			o := r.run(t, s, c)
			sum.add(o)
			t.Logf("ended at %q", o.method)
			if !o.ok() {
				t.Errorf("at %s:\n%s", o.method, o.verdict)
			}
			if c.by == interrupt && o.took > promptly {
				t.Errorf("at %s: the interrupted apply returned after %s", o.method, o.took)
			}
		})
	}
	if sum.cells == 0 {
		t.Error("every cell came after the end")
	}
	t.Logf("%d cells came after the end; %s", sum.late, time.Since(sum.began).Round(time.Second))
	report(t, fmt.Sprintf("| ended | %s | %d | %d | %d | %d | %d | %d | %.1f |", s.name, sum.calls, sum.cells, sum.orphans, sum.duplicates, sum.losses, sum.failures, sum.slowest.Seconds()))
}
