package training_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

var (
	randomJobs = flag.Int("training.random", 300, "how many random jobs go through the real webhooks")
	randomSeed = flag.Uint64("training.seed", 7, "what they are drawn by")
)

// deliberate are the refusals of what JobSet, Kueue and the API server take,
// each with its reason.
var deliberate = []struct{ says, because string }{
	{"belong to Kubernetes", "a job has no business in a namespace of the system"},
	{"only a queued job has a priority", "nobody would read it"},
	{"Kueue measures it", "nobody would end the job"},
	{"max_restarts", "JobSet takes it, and forgives nothing"},
	{"queue-name = ", "the setting that stands for it takes its place"},
	{"is not free", "another setting stands for it"},
	{"is set for every job", "the program would not see it"},
	{"is set from output_dir", "the program would not see it"},
	{"cannot be set", "the program would not see it"},
	{"is listed twice", "one of the two would say nothing"},
	{"starts or ends with a space", "no such image can be pulled"},
	{"exit codes are 1 to 255", "no program can exit with it"},
	{"write it as", "the same folder has two names"},
	{"hide the whole image", "the program would not be found"},
	{"its shared memory there", "it would lose the hosts' shared memory"},
	{"without gs://", "the driver would look for a bucket of that name"},
	{"a folder of it is", "the driver would look for a bucket of that name"},
	{"no bucket can have this name", "it cannot be mounted"},
	{"mount_options are for a bucket", "nobody would read them"},
	{"one or the other", "one of the two would be ignored"},
	{"the script is empty", "the job would do nothing and succeed"},
	{"a path is needed", "the API server's word is about the mount"},
	{"the path must start with /", "the runtime refuses it, later"},
	{"more than nothing", "it would ask for nothing"},
	{"a unit is missing", "no program could run in it"},
	{"which is no program", "the runtime refuses it, later"},
	{"a size above 0 is wanted", "every write would fail"},
	{"would never start", "it would wait for ever"},
	{"retried for ever", "it would wait for ever where the other cannot succeed"},
	{"at most 10000", "more pods than a cluster has"},
	{"pods = ", "a job of no pods does nothing"},
	{"on_failure = ", "there is no such policy; retry would be rendered"},
	{"prefix", "older Kubernetes takes letters, digits, dots, dashes and underscores alone"},
	{"scheduler_name", "no scheduler can have this name"},
	{"want ready or complete", "there is no such step; ready would be rendered"},
	{"retried for ever", "it would wait for ever where the other cannot succeed"},
	{"on_preemption", "there is no such policy; restart would be rendered"},
	{"they wait for each other", "rendered, it is refused for its order"},
	{"cannot be overridden", "another setting stands for it"},
	{"use active", "it is Kueue's"},
	{"beside the job itself Kueue takes", "older Kueues take no more"},
	{"want between 1 and", "rendered, 0 seconds would end it at once"},
	{"which is no job here", "the order cannot be found"},
	{"the main job's name", "the name of the main job is taken"},
	{"bytes together", "the files' ConfigMap is what is too large"},
	{"no container left", "JobSet could make no pods"},
	{"unknown field", "the API server would drop it, without a word"},
	{"it says nothing about its storage", "Kubernetes would make it an empty folder"},
	{"several things at once", "only one of them is rendered"},
	{"a colon cannot be part of it", "the runtime takes it for a separator"},
	{"termination_grace_period:", "below 0 Kubernetes takes it for 1"},
	{"env ", "older Kubernetes takes letters, digits, dots, dashes and underscores alone"},
	{"env:", "older Kubernetes takes letters, digits, dots, dashes and underscores alone"},
	{"host_path", "the kubelet refuses it, later"},
	{"whole number of bytes", "Kubernetes rounds it"},
	{"a job needs at least one slice", "a job of no slices does nothing"},
	{"one of the two", "only one of them is rendered"},
	{"env_from:", "no object can have this name"},
	{"element ", "no object can have this name"},
	{"volumes: volume", "no object can have this name"},
	{"pathways.scratch_location", "the servers would not start"},
	{"pathways.elastic_slices", "the servers know no such number"},
	{"pathways.max_slice_restarts", "rendered, it is the default"},
	{"pathways.server_args", "the servers would not find each other"},
	{"cannot be set here", "the servers would not find each other"},
	{"for every Pathways job", "the program would not find the chips"},
	{"no program of its own", "nobody would read it"},
	{"no image can have this name", "no host could pull it, and the pods would wait for ever"},
	{"image of its own", "the API server takes the empty image of a headless job only here and there"},
	{"Pathways does not run on", "the resource manager knows no such machine"},
	{"the head of a Pathways job", "the name of the head is taken"},
	{"placement.provisioning", "no slice would fit"},
	{"placement.reservation", "no slice would fit"},
	{"placement.policy", "no slice would fit"},
	{"placement.pool_accelerator", "Kueue would find no such part"},
	{"containers_per_host", "GKE refuses the pods, later"},
}

// jobDice draw jobs; about half have something wrong.
type jobDice struct{ *rand.Rand }

func pick[T any](d jobDice, of ...T) T { return of[d.IntN(len(of))] }

func (d jobDice) rarely() bool { return d.IntN(80) == 0 }

func (d jobDice) name(good string) string {
	if !d.rarely() {
		return good
	}
	return pick(d, "A", "a_b", "-a", "a-", "a.b", "7b", strings.Repeat("a", 46), strings.Repeat("a", 47), strings.Repeat("a", 48), strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 254))
}

func (d jobDice) text(good ...string) string {
	return pick(d, append(good, "", "x y", "$(A)", "ä\"'\n")...)
}

func (d jobDice) quantity() *resource.Quantity {
	if d.IntN(2) == 0 {
		return nil
	}
	q := pick(d, "1", "100", "1500m", "10Gi", "1e3")
	if d.rarely() {
		q = pick(d, "0", "-1", "1n")
	}
	return ptr.To(resource.MustParse(q))
}

// size is a quantity of bytes.
func (d jobDice) size() *resource.Quantity {
	if d.IntN(2) == 0 {
		return nil
	}
	q := pick(d, "1Mi", "100M", "1500Mi", "10Gi", "1e9")
	if d.rarely() {
		q = pick(d, "0", "-1", "100", "1500m")
	}
	return ptr.To(resource.MustParse(q))
}

func (d jobDice) resources() training.Resources {
	return training.Resources{CPU: d.quantity(), Memory: d.size(), EphemeralStorage: d.size()}
}

func (d jobDice) env() map[string]string {
	out := map[string]string{}
	for range d.IntN(3) {
		name := pick(d, "A", "b.c", "D-E", "_f")
		if d.rarely() {
			name = pick(d, "", "A=B", "1", "RUN_ID", "ATTEMPT", "OUTPUT_DIR", "ä", "..", "a b")
		}
		out[name] = d.text("1")
	}
	return out
}

func (d jobDice) envFrom() (all []training.EnvSource) {
	for range d.IntN(3) {
		e := training.EnvSource{Secret: d.name("secret"), Optional: d.IntN(2) == 0, Prefix: pick(d, "", "", "P_")}
		if d.IntN(2) == 0 {
			e.Secret, e.ConfigMap = "", e.Secret
		}
		if d.rarely() {
			e.Secret, e.ConfigMap, e.Prefix = pick(d, "", "a"), pick(d, "", "a"), pick(d, "", "a=", "1")
		}
		all = append(all, e)
	}
	return all
}

func (d jobDice) path(good string) string {
	if !d.rarely() {
		return good
	}
	return pick(d, "", "a", "/", "/a/", "/a//b", "/a:b", "/dev/shm", "/../a", good)
}

func (d jobDice) volume(i int) training.Volume {
	v := training.Volume{Name: d.name(fmt.Sprintf("v%d", i)), Path: d.path(fmt.Sprintf("/v%d", i)), ReadOnly: d.IntN(3) == 0}
	switch d.IntN(10) {
	case 0:
		v.Bucket = pick(d, "my-bucket", "my-bucket", "a.b_c", pick(d, "gs://b", "b/c", "B", "a"))
		v.MountOptions = pick(d, nil, []string{"implicit-dirs"})
	case 1:
		v.Claim = d.name("claim")
	case 2:
		v.Secret = d.name("secret")
	case 3:
		v.ConfigMap = d.name("config")
	case 4:
		v.HostPath = pick(d, "/var/a", "/var/a", "/var/a", "a", "/a/../b")
	case 5:
		v.Ramdisk = true
	case 6:
		v.MultiTier = true
	case 7:
		v.Memory = d.quantity()
	case 8:
		v.Scratch = d.quantity()
	case 9:
		v.NFS = &training.NFS{Server: pick(d, "10.0.0.2", "nfs", pick(d, "nfs", "nfs", "")), Path: pick(d, "/a", "/a", pick(d, "/a", "a", ""))}
	}
	if d.rarely() {
		v.Claim, v.Secret = "a", "b"
	}
	if d.IntN(4) == 0 {
		v.SubPath = pick(d, "a", "a/b", "a/b", pick(d, "a", "/a", "../a", "a/.."))
	}
	return v
}

func (d jobDice) job(i int, others []string) training.Job {
	j := training.Job{
		Name: fmt.Sprintf("job%d", i), Pods: pick(d, 1, 1, 2, 8), Image: pick(d, "", "side:1"), Env: d.env(), EnvFrom: d.envFrom(), Resources: d.resources(),
		OnFailure: training.OnFailure(pick(d, append(training.OnFailures, "")...)),
	}
	if d.rarely() {
		j.Name = d.name(pick(d, "slice", "job0"))
	}
	if d.rarely() {
		j.Pods = pick(d, 0, -1, 10001, math.MaxInt32)
	}
	if d.IntN(2) == 0 {
		j.Shell = pick(d, "true", "a | b\nc")
	} else {
		j.Command = []string{d.text("run")}
	}
	if d.rarely() {
		j.OnFailure = "ignore"
	}
	if d.IntN(3) == 0 {
		j.NodeSelector = map[string]string{pick(d, "pool", "a.b/c", pick(d, "a", "a b", "")): pick(d, "cpu", pick(d, "a", "a b"))}
	}
	if d.IntN(3) == 0 && len(others) > 0 {
		j.DependsOn = append(j.DependsOn, d.dependency(others))
	}
	return j
}

func (d jobDice) dependency(others []string) training.Dependency {
	dep := training.Dependency{Job: pick(d, others...), Until: training.UntilReady}
	if d.IntN(4) == 0 {
		dep.Until = training.UntilComplete
	}
	if d.rarely() {
		dep = training.Dependency{Job: pick(d, "nobody", dep.Job), Until: pick(d, training.UntilReady, "done")}
	}
	return dep
}

var overrides = []string{
	`{"spec":{"replicatedJobs":[{"name":"slice","template":{"spec":{"template":{"spec":{"priorityClassName":"gold"}}}}}]}}`,
	`{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}}`,
	`{"spec":{"coordinator":{"replicatedJob":"slice","jobIndex":0,"podIndex":0}}}`,
	`{"spec":{"coordinator":{"replicatedJob":"nobody"}}}`,
	`{"spec":{"startupPolicy":{"startupPolicyOrder":"InOrder"}}}`,
	`{"spec":{"failurePolicy":{"restartStrategy":"InPlaceRestart"}}}`,
	`{"spec":{"failurePolicy":{"rules":[{"name":"other","action":"FailJobSet","targetReplicatedJobs":["nobody"]}]}}}`,
	`{"spec":{"failurePolicy":{"rules":[{"name":"own","action":"RestartJobSet"}]}}}`,
	`{"spec":{"suspend":true}}`, `{"spec":{"nonsense":1}}`, `{"spec":{"network":{"subdomain":"Own"}}}`, `{"spec":{"network":{"subdomain":"own"}}}`,
	`{"spec":{"replicatedJobs":[{"name":"slice","groupName":"A"}]}}`, `{"spec":{"replicatedJobs":[{"name":"extra","groupName":"default","template":{"spec":{}}}]}}`,
}

func (d jobDice) spec() training.Spec {
	slice, err := accelerator.Resolve(pick(d, "v5litepod-16", "v5litepod-8", "v6e-256", "v5p-128", "v4-8", "tpu7x-128"))
	if err != nil {
		panic(err)
	}
	s := training.Spec{
		Namespace: "research", Name: d.name("train"), Queue: pick(d, "research", "research", ""), Slice: slice, Slices: pick(d, 1, 2, 11, 100),
		Image: pick(d, "train:1", "a/b@sha256:"+strings.Repeat("c", 64)), Env: d.env(), EnvFrom: d.envFrom(), Resources: d.resources(),
		ServiceAccount: d.name(pick(d, "", "trainer")), RunID: pick(d, "", "run-7", pick(d, "", "a b", strings.Repeat("r", 64))),
		OutputDir: pick(d, "", "gs://runs/c/"), Owner: pick(d, "", "ada", pick(d, "ada", "a/b")), Experiment: pick(d, "", "x"),
		Labels: map[string]string{}, Annotations: map[string]string{pick(d, "a", "b/c"): d.text("1")}, PodAnnotations: map[string]string{},
		HostNetwork: d.IntN(4) == 0, SchedulerName: d.name(pick(d, "", "gang")),
		Restart: training.RestartPolicy{MaxRestarts: d.IntN(5), FatalExitCodes: pick(d, nil, []int32{2}, []int32{2, 126, 127}), OnPreemption: training.OnPreemption(pick(d, append(training.OnPreemptions, "")...))},
	}
	if d.IntN(2) == 0 {
		s.Shell = pick(d, "python a.py", "a; b | c", pick(d, "x", "x", " "))
	} else {
		s.Command, s.Args = []string{d.text("python")}, []string{d.text("-x")}
	}
	if s.Queue != "" || d.rarely() {
		s.Priority = pick(d, "", "low", d.name("high"))
		if d.IntN(3) == 0 {
			s.MaxRunTime = pick(d, ptr.To(time.Hour), ptr.To(time.Second), ptr.To(time.Hour), pick(d, ptr.To(time.Duration(0)), ptr.To(time.Hour)))
		}
	}
	for range d.IntN(3) {
		key := pick(d, "team", "a.b/c")
		if d.rarely() {
			key = pick(d, "", "a b", "/a", strings.Repeat("k", 64), "kueue.x-k8s.io/queue-name", "jobset.sigs.k8s.io/x")
		}
		s.Labels[key] = pick(d, "", "a", pick(d, "b", "b", "b", "a b", strings.Repeat("v", 64)))
	}
	if d.IntN(3) == 0 {
		s.PodAnnotations[pick(d, "gke-gcsfuse/volumes", "a")] = "true"
	}
	if d.IntN(3) == 0 {
		s.TTL, s.GracePeriod = pick(d, ptr.To(time.Hour), ptr.To(time.Duration(0)), ptr.To(time.Hour), pick(d, ptr.To(-time.Hour), nil)), pick(d, ptr.To(time.Minute), pick(d, nil, ptr.To(-time.Minute)))
	}
	if d.rarely() {
		s.Slices, s.Image, s.Namespace = pick(d, 0, -1, math.MaxInt32), pick(d, "train:1", "", " a", "Train:1"), pick(d, "research", "kube-system", "A")
	}
	if d.rarely() {
		s.Restart.FatalExitCodes = pick(d, []int32{0}, []int32{3, 3}, []int32{256}, []int32{-1})
		s.Restart.MaxRestarts = pick(d, 0, -1)
	}
	if d.IntN(3) == 0 {
		s.Files = map[string]string{d.path("/etc/a.yaml"): d.text("a"), d.path("/etc/b"): "b"}
	}
	for i := range pick(d, 0, 0, 1, 3) {
		s.Volumes = append(s.Volumes, d.volume(i))
	}
	names := []string{training.SliceJob}
	for i := range pick(d, 0, 0, 1, 2, pick(d, 3, 7, 8)) {
		j := d.job(i, names)
		s.Jobs = append(s.Jobs, j)
		names = append(names, j.Name)
	}
	if len(names) > 1 && d.IntN(6) == 0 {
		s.DependsOn = append(s.DependsOn, d.dependency(names[1:]))
	}
	if d.IntN(8) == 0 {
		s.Overrides = pick(d, overrides...)
	}
	if d.IntN(4) == 0 {
		d.pathways(&s)
	}
	if d.IntN(4) == 0 {
		d.place(&s)
	}
	s.Held = d.IntN(5) == 0
	return s
}

func (d jobDice) pathways(s *training.Spec) {
	p := &training.Pathways{
		Scratch: pick(d, "gs://scratch", "gs://scratch/a"), ProxyImage: pick(d, "", "proxy:1"), ServerImage: pick(d, "", "server:1"),
		ProxyArgs: pick(d, nil, []string{"--a=$(B)"}), WorkerArgs: pick(d, nil, []string{"--b"}),
		ProxyResources: d.resources(), ServerResources: d.resources(), ElasticSlices: d.IntN(2), MaxSliceRestarts: pick(d, 0, 1, 1000000),
		ColocatedPython: pick(d, "", "python:1"),
	}
	if p.ElasticSlices > 0 {
		s.Restart.OnPreemption = pick(d, "", training.PreemptionRestarts)
	}
	if d.IntN(3) == 0 {
		p.HeadNodeSelector = map[string]string{pick(d, "pool", "a.b/c"): "heads"}
	}
	if d.IntN(4) == 0 {
		p.Headless, s.Image, s.Shell, s.Command, s.Args, s.Resources = true, "", "", nil, nil, training.Resources{}
		s.Env, s.EnvFrom, s.Files, s.Volumes, s.Jobs, s.DependsOn = nil, nil, nil, nil, nil, nil
	}
	if d.rarely() {
		p.Scratch, p.HeadNodeSelector = pick(d, "", "/a", "gs://", "gs://B"), map[string]string{pick(d, "a", "a b", ""): pick(d, "a", "a b")}
	}
	if d.rarely() {
		p.ServerArgs, p.WorkerArgs = pick(d, nil, []string{""}), []string{"--server_port=1"}
	}
	if d.rarely() {
		p.ElasticSlices, p.MaxSliceRestarts = pick(d, -1, 200), pick(d, -1, 0)
	}
	if d.rarely() {
		s.Env = map[string]string{"JAX_PLATFORMS": "cpu"}
	}
	if d.rarely() {
		s.Image, p.Headless = "train:1", true
	}
	s.Pathways = p
}

func (d jobDice) place(s *training.Spec) {
	resolve := func(name string) accelerator.Slice {
		slice, err := accelerator.Resolve(name)
		if err != nil {
			panic(err)
		}
		return slice
	}
	switch s.Placement.Provisioning = queue.Provisioning(pick(d, append(slices.Clone(queue.Provisionings), "")...)); s.Placement.Provisioning {
	case queue.Reserved:
		s.Placement.Reservation = "r"
	case queue.FlexStart:
		s.Slice = resolve("v6e-16")
	}
	if s.Pathways != nil && !d.rarely() {
		return // parts do not go with it
	}
	if s.Queue != "" && d.IntN(2) == 0 {
		s.Slice, s.Placement.Pool = resolve(pick(d, "v6e-64", "v6e-16", "v6e-8")), pick(d, "v6e-256", "v6e-128")
	} else if s.Queue != "" {
		s.Slice, s.Placement.Pool = resolve(pick(d, "tpu7x-256", "tpu7x-512")), "tpu7x-128"
		s.Placement.Policy = pick(d, "", "policy")
		if s.Pathways == nil {
			s.ContainersPerHost = d.IntN(3)
		}
	}
	if d.rarely() {
		s.Placement.Pool = pick(d, "v5litepod-256", "h100", "tpu7x-256")
	}
	if d.rarely() {
		s.Placement.Provisioning, s.Placement.Reservation, s.Placement.Policy = pick(d, "", queue.Reserved, "preemptible"), pick(d, "projects/p/reservations/r", "a b"), pick(d, "", "a b")
	}
	if d.rarely() {
		s.ContainersPerHost = 3
	}
}

// What we render the real webhooks, CRD rules and, for the Jobs that JobSet
// makes of it, the API server take; what we refuse they refuse too, or it is
// refused on purpose.
func TestRandomObjects(t *testing.T) {
	k := cluster(t)
	d := jobDice{rand.New(rand.NewPCG(*randomSeed, 1))}
	samples := make([]training.Spec, *randomJobs)
	for n := range samples {
		samples[n] = d.spec()
	}
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
	taken, used := 0, map[string]int{}
	for n, s := range samples {
		if trouble[n] != nil {
			t.Fatalf("sample %d: %v", n, trouble[n])
		}
		switch says := s.Validate(); {
		case says == nil && verdicts[n] == nil:
			taken++
		case says == nil:
			t.Errorf("sample %d: we take what the cluster refuses: %v\n%s", n, verdicts[n], rendered(s))
		case verdicts[n] == nil:
			why := reason(says)
			if why == "" {
				t.Errorf("sample %d: the cluster takes what we refuse: %v\n%s", n, says, rendered(s))
			}
			used[why]++
		}
	}
	t.Logf("%d of %d taken; refused on purpose: %v", taken, len(samples), used)
	if share := taken * 100 / len(samples); share < 10 || share > 90 {
		t.Errorf("%d%% of the samples are right: the dice show little", share)
	}
}

// verdict is what the cluster says to creating the JobSet, its files, and the
// Jobs of it, which the JobSet controller would create later.
func verdict(ctx context.Context, k *kube.Client, s training.Spec) (refused, trouble error) {
	js := s.JobSet()
	objects := []client.Object{js.DeepCopy()}
	if cm := s.FilesObject(nil); cm != nil {
		objects = append(objects, cm)
	}
	for i := range js.Spec.ReplicatedJobs {
		rj := js.Spec.ReplicatedJobs[i]
		job := &batchv1.Job{ObjectMeta: rj.Template.ObjectMeta, Spec: rj.Template.Spec}
		job.Namespace, job.Name = js.Namespace, fmt.Sprintf("%s-%s-%d", js.Name, rj.Name, max(rj.Replicas-1, 0))
		job.Spec.Suspend = ptr.To(true)
		objects = append(objects, job)
	}
	for _, o := range objects {
		for attempt := 0; ; attempt++ {
			err := k.Create(ctx, o, client.DryRunAll)
			if err == nil {
				break
			}
			if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || o.GetName() == "" {
				return err, nil
			}
			if !kube.Transient(err) || attempt > 5 {
				if strings.Contains(err.Error(), "denied the request") || strings.Contains(err.Error(), "Invalid") || strings.Contains(err.Error(), "namespaces") {
					return err, nil
				}
				return nil, err
			}
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
				break
			}
		}
		if why == "" {
			return ""
		}
	}
	return why
}

func rendered(s training.Spec) string {
	b, err := yaml.Marshal(s.JobSet())
	if err != nil {
		return err.Error()
	}
	return string(b)
}
