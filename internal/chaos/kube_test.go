package chaos

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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
	groundHCL      = nothingHCL + pool{accelerator: "v5litepod-16", count: 4}.hcl()
	controllersHCL = groundHCL + `
resource "tpu_job_controllers" "main" { cluster = tpu_training_cluster.main.id }
`
	jobHCL = controllersHCL + `
resource "tpu_training_namespace" "research" {
  cluster = tpu_training_cluster.main.id
  name    = "research"
}
resource "tpu_kueue_flavor" "v5e" {
  cluster     = tpu_job_controllers.main.cluster
  name        = "v5e-4x4"
  accelerator = "v5litepod-16"
}
resource "tpu_kueue_queue" "research" {
  cluster    = tpu_job_controllers.main.cluster
  name       = "research"
  namespaces = [tpu_training_namespace.research.name]
  flavors    = [{ name = tpu_kueue_flavor.v5e.name, accelerator = "v5litepod-16", slices = 4 }]
}
resource "tpu_training_jobset" "train" {
  cluster     = tpu_slice_pool.slices.cluster
  namespace   = tpu_training_namespace.research.name
  name        = "train"
  queue       = tpu_kueue_queue.research.name
  accelerator = "v5litepod-16"
  slices      = 4
  image       = "python:3.13"
  command     = ["true"]
  wait_for    = "admitted"
}
`
)

// kubeScenario is one apply with a real control plane. Whatever it is, the
// cluster with its slices is there in the end.
type kubeScenario struct {
	name          string
	before, after string // HCL
	want          []string
	resources     int // in state, afterwards
	cells         int // of a full run
}

var (
	jobObjects    = []string{"clusterqueue research", "flavor v5e-4x4", "jobset research/train", "localqueue research/research", "namespace research"}
	kubeScenarios = []kubeScenario{
		{"queue and job: create", controllersHCL, jobHCL, jobObjects, 7, 40},
		{"queue and job: destroy", jobHCL, controllersHCL, nil, 3, 40},
		{"controllers: create", groundHCL, controllersHCL, nil, 3, 40},
		{"controllers: destroy", controllersHCL, groundHCL, nil, 2, 40},
	}
	// Each of its cells brings up a control plane.
	allAtOnce = kubeScenario{"everything at once: create", nothingHCL, jobHCL, jobObjects, 7, 12}
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
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{box: acctest.Sandbox(t), b: newBenches(t, 1).take(t, nil)}
	r.b.Env = append(r.b.Env, r.box.Env()...)
	t.Cleanup(func() {
		if text, err := r.b.run(t, "destroy", "-auto-approve", "-no-color"); err != nil {
			t.Errorf("destroying everything in the end: %v\n%s", err, text)
		}
		for _, left := range r.box.Remaining() {
			if strings.Contains(left, kubeProject) {
				t.Errorf("left after the destroy: %s", left)
			}
		}
	})
	return r
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

// calls is how many calls an undisturbed apply of the scenario has.
func (r *rig) calls(t *testing.T, s kubeScenario) (methods []string) {
	t.Helper()
	r.be(t, s.before)
	never := cell{n: -1, by: killProvider}
	counted := make(chan string, 10_000)
	remove := r.box.Faults().OnCall(func(c faults.Call, at faults.Stage) bool {
		if at == faults.Before && strings.Contains(c.Path, kubeProject) {
			counted <- c.Method
		}
		return false
	})
	r.b.write(t, s.after)
	_, text := r.b.ended(t, r.box.Faults(), kubeProject, never, nil, func() {})
	remove()
	if v := r.check(t, s, ""); !v.ok() {
		t.Fatalf("%s, undisturbed:\n%s\n%s", s.name, v, text)
	}
	close(counted)
	for m := range counted {
		methods = append(methods, m)
	}
	r.now = s.after
	return methods
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
	found, now := objects(t, acctest.Connect(t, kubeCluster))
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
	there := r.there()
	for _, path := range there {
		if !slices.Contains(ground, path) {
			v.duplicates = append(v.duplicates, path)
		}
	}
	for _, path := range ground {
		if !slices.Contains(there, path) {
			v.losses = append(v.losses, path)
		}
	}
	return v
}

// ground is what GKE has after every scenario.
var ground = []string{kubeCluster, kubeCluster + "/nodePools/slices-0", kubeCluster + "/nodePools/slices-1",
	kubeCluster + "/nodePools/slices-2", kubeCluster + "/nodePools/slices-3", kubeCluster + "/nodePools/" + systemPool}

// there is what GKE has of the project.
func (r *rig) there() []string {
	return slices.DeleteFunc(r.box.Remaining(), func(path string) bool { return !strings.Contains(path, kubeProject) })
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
	r.be(t, s.before)
	r.b.write(t, s.after)
	r.now = "" // whatever happens
	var deletions atomic.Int32
	remove := r.box.Faults().OnCall(func(call faults.Call, at faults.Stage) bool {
		if at == faults.After && (call.Method == "DeleteNodePool" || call.Method == "DeleteCluster") && strings.Contains(call.Path, kubeProject) {
			deletions.Add(1)
		}
		return false
	})
	defer remove()
	out, first := r.b.ended(t, r.box.Faults(), kubeProject, c, nil, func() {})
	job := ""
	if len(s.want) > 0 {
		job = r.job(t)
	}
	if text, err := r.b.run(t, apply...); err != nil {
		out.failures = append(out.failures, fmt.Sprintf("the apply after it: %v\n%s\nthe first apply said:\n%s", err, text, first))
	} else {
		r.now = s.after
	}
	v := r.check(t, s, job)
	v.failures = append(out.failures, v.failures...)
	if n := deletions.Load(); n > 0 {
		v.losses = append(v.losses, fmt.Sprintf("%d deletions of node pools or the cluster", n))
	}
	out.verdict = v
	return out
}

// The same on a real control plane: controllers, a queue and a job, ended at
// calls to GKE and to the API server, and then in bad weather.
func TestOnARealCluster(t *testing.T) {
	r := newRig(t)
	if *only == "" || allAtOnce.name == *only {
		t.Run(allAtOnce.name, func(t *testing.T) { r.atOnce(t) })
	}
	chosen, weather := kubeScenarios[:1], kubeScenarios[:2]
	if *full || *kubeEvery > 0 {
		chosen, weather = kubeScenarios, []kubeScenario{kubeScenarios[2], kubeScenarios[0], kubeScenarios[1], kubeScenarios[3]}
	}
	for _, s := range chosen {
		if *only == "" || s.name == *only {
			t.Run(s.name, func(t *testing.T) { r.matrix(t, s) })
		}
	}
	if *only == "" {
		t.Run("faults", func(t *testing.T) { r.soak(t, weather) })
	}
}

// atOnce makes a cluster, its slices, the controllers, a queue and a job by one
// apply, which is ended while GKE works and while the controllers come up.
func (r *rig) atOnce(t *testing.T) {
	if *full || *kubeEvery > 0 {
		r.matrix(t, allAtOnce)
		return
	}
	r.cells(t, allAtOnce, 0, []cell{
		{n: 14, at: faults.After, by: killProvider},
		{n: 80, at: faults.After, by: killAll},
	})
}

// matrix ends the scenario's apply in a sample of the ways there are.
func (r *rig) matrix(t *testing.T, s kubeScenario) {
	methods := r.calls(t, s)
	t.Logf("%d calls: %s", len(methods), strings.Join(methods, ", "))
	cells := append(kills(len(methods)), interrupts(len(methods))...)
	switch {
	case *kubeEvery > 0:
		cells = sample(cells, (len(cells)+*kubeEvery-1) / *kubeEvery, s.name)
	case *full:
		cells = sample(cells, s.cells, s.name)
	default:
		cells = sample(cells, 1, s.name)
	}
	r.cells(t, s, len(methods), cells)
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
	t.Logf("%d cells came after the end; %s", sum.late, time.Since(sum.began).Round(time.Second))
	report(t, fmt.Sprintf("| ended | %s | %d | %d | %d | %d | %d | %d | %.1f |", s.name, sum.calls, sum.cells, sum.orphans, sum.duplicates, sum.losses, sum.failures, sum.slowest.Seconds()))
}
