package training

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// pathwaysSpec is a Pathways job with everything that other jobs have too.
func pathwaysSpec(t testing.TB) Spec {
	s := spec(t)
	s.Slice = slice(t, "v6e-16")
	s.Pathways = &Pathways{Scratch: "gs://scratch/pathways"}
	s.TTL, s.MaxRunTime, s.OutputDir = ptr.To(time.Hour), ptr.To(48*time.Hour), "gs://runs"
	s.Env, s.EnvFrom = map[string]string{"A": "1"}, []EnvSource{{Secret: "tokens"}}
	s.Files = map[string]string{"/etc/train.yaml": "lr: 1"}
	s.Volumes = []Volume{{Name: "data", Path: "/data", Bucket: "my-data"}, {Name: "ram", Path: "/ram", Ramdisk: true}}
	return s
}

func replicated(js *jobset.JobSet, name string) *jobset.ReplicatedJob {
	for i := range js.Spec.ReplicatedJobs {
		if js.Spec.ReplicatedJobs[i].Name == name {
			return &js.Spec.ReplicatedJobs[i]
		}
	}
	return nil
}

func TestRenderedPathways(t *testing.T) {
	elastic := pathwaysSpec(t)
	elastic.Pathways = &Pathways{
		Scratch: "gs://scratch", ElasticSlices: 1, MaxSliceRestarts: 2, ColocatedPython: "python:1", ProxyImage: "proxy:1", ServerImage: "server:1",
		ProxyArgs: []string{"--xla_tpu_x=1"}, ServerArgs: []string{"--y"}, WorkerArgs: []string{"--z=2"}, HeadNodeSelector: map[string]string{"pool": "heads"},
	}
	elastic.HostNetwork = true
	headless := pathwaysSpec(t)
	headless.Pathways.Headless = true
	headless.Image, headless.Command, headless.Env, headless.EnvFrom, headless.Files, headless.Volumes = "", nil, nil, nil, nil, nil
	for name, s := range map[string]Spec{"pathways": pathwaysSpec(t), "pathways-elastic": elastic, "pathways-headless": headless} {
		t.Run(name, func(t *testing.T) {
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			js := s.JobSet()
			b, err := yaml.Marshal(js)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".yaml", b)
			back := FromJobSet(js)
			back.Files = s.Files // their ConfigMap's
			if back.Hash() != s.Hash() {
				t.Errorf("read back it is another job: %+v", back)
			}
		})
	}
}

// What other jobs have, a Pathways job has: restarts, exit codes, TTL, limits
// and storage, on the head, where the program is.
func TestPathwaysDropsNothing(t *testing.T) {
	s := pathwaysSpec(t)
	s.Restart = RestartPolicy{MaxRestarts: 7, FatalExitCodes: []int32{42}}
	s.GracePeriod = ptr.To(2 * time.Minute)
	js := s.JobSet()
	if js.Spec.FailurePolicy.MaxRestarts != 7 || *js.Spec.TTLSecondsAfterFinished != 3600 || js.Labels[labelMaxRunTime] != "172800" {
		t.Errorf("restarts, ttl or run time are lost: %+v %v", js.Spec, js.Labels)
	}
	head := replicated(js, HeadJob)
	if diff := cmp.Diff([]int32{42}, fatalCodes(head.Template.Spec.PodFailurePolicy)); diff != "" {
		t.Errorf("exit codes (-want +got):\n%s", diff)
	}
	pod := head.Template.Spec.Template.Spec
	if *pod.TerminationGracePeriodSeconds != 120 || len(pod.Volumes) != 3 || len(pod.Containers[0].VolumeMounts) != 3 || len(pod.Containers[0].EnvFrom) != 1 {
		t.Errorf("grace period, volumes or environment are lost: %+v", pod)
	}
	workers := replicated(js, SliceJob)
	if n := len(workers.Template.Spec.Template.Spec.Volumes); n != 4 { // the host's too
		t.Errorf("workers have %d volumes", n)
	}
	if _, there := head.Template.Annotations[jobset.ExclusiveKey]; there || workers.Template.Annotations[jobset.ExclusiveKey] == "" {
		t.Error("a slice is a node pool, and the head is in none")
	}
}

// What asks for cpu or memory comes last, the head after all.
func TestPathwaysOrder(t *testing.T) {
	s := pathwaysSpec(t)
	s.Jobs = []Job{{Name: "eval", Pods: 1, Resources: DefaultServerResources}, {Name: "upload", Pods: 1}}
	order := func() (names []string) {
		for _, rj := range s.JobSet().Spec.ReplicatedJobs {
			names = append(names, rj.Name)
		}
		return names
	}
	if diff := cmp.Diff([]string{SliceJob, "upload", "eval", HeadJob}, order()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Jobs[0].DependsOn = []Dependency{{Job: HeadJob, Until: UntilReady}}
	s.DependsOn = []Dependency{{Job: SliceJob, Until: UntilReady}, {Job: "upload", Until: UntilReady}}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{SliceJob, "upload", HeadJob, "eval"}, order()); diff != "" {
		t.Errorf("with dependencies (-want +got):\n%s", diff)
	}
}

// Slices that may come and go do not fail their Job, others do.
func TestPathwaysDisruption(t *testing.T) {
	s := pathwaysSpec(t)
	action := func() batchv1.PodFailurePolicyAction {
		return replicated(s.JobSet(), SliceJob).Template.Spec.PodFailurePolicy.Rules[0].Action
	}
	if got := action(); got != batchv1.PodFailurePolicyActionFailJob {
		t.Errorf("a lost host: %s", got)
	}
	s.Pathways.ElasticSlices = 2
	if got := action(); got != batchv1.PodFailurePolicyActionIgnore {
		t.Errorf("a lost host of an elastic slice: %s", got)
	}
	if got := *replicated(s.JobSet(), SliceJob).Template.Spec.BackoffLimit; got != 4*DefaultSliceRestarts {
		t.Errorf("restarts of a slice's hosts: %d", got)
	}
}

// Every slice of several hosts has a name in Pathways, but for those that no
// public documentation knows.
func TestInstanceTypes(t *testing.T) {
	for _, name := range []string{"v4-16", "v5litepod-16", "v5litepod-8-8t", "v5p-64", "v6e-256", "v6e-8-8t", "tpu7x-128"} {
		if got := (Spec{Slice: slice(t, name)}).instanceType(); !strings.HasSuffix(got, ":"+slice(t, name).Topology.String()) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestPathwaysRefusals(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(*Spec)
		field string
		want  string
	}{
		{"as it is", func(*Spec) {}, "", ""},
		{"no scratch", func(s *Spec) { s.Pathways.Scratch = "" }, "pathways.scratch_location", "gs://BUCKET"},
		{"scratch elsewhere", func(s *Spec) { s.Pathways.Scratch = "/tmp" }, "pathways.scratch_location", "no folder"},
		{"scratch without a bucket", func(s *Spec) { s.Pathways.Scratch = "gs://" }, "pathways.scratch_location", "no folder"},
		{"single chip", func(s *Spec) { s.Slice = slice(t, "v6e-1") }, "accelerator", "does not run"},
		{"image that is none", func(s *Spec) { s.Pathways.ServerImage = "Server:1" }, "pathways.server_image", "lowercase"},
		{"image with a space", func(s *Spec) { s.Pathways.ProxyImage = " a" }, "pathways.proxy_image", "space"},
		{"own argument", func(s *Spec) { s.Pathways.WorkerArgs = []string{"--server_port=1"} }, "pathways.worker_args", "--server_port"},
		{"own elasticity", func(s *Spec) { s.Pathways.ProxyArgs = []string{"--num_elastic_slices=1"} }, "pathways.proxy_args", "elastic_slices"},
		{"empty argument", func(s *Spec) { s.Pathways.ServerArgs = []string{""} }, "pathways.server_args", "empty"},
		{"nothing asked for", func(s *Spec) {
			s.Pathways.ProxyResources.CPU = ptr.To(DefaultProxyResources.CPU.DeepCopy())
			s.Pathways.ProxyResources.CPU.Neg()
		}, "pathways.proxy_resources", "more than nothing"},
		{"bad selector", func(s *Spec) { s.Pathways.HeadNodeSelector = map[string]string{"a b": "c"} }, "pathways.head_node_selector", "a b"},
		{"more elastic than there are", func(s *Spec) { s.Pathways.ElasticSlices = 3 }, "pathways.elastic_slices", "3 of 2"},
		{"negative elasticity", func(s *Spec) { s.Pathways.ElasticSlices = -1 }, "pathways.elastic_slices", "negative"},
		{"elastic and counted", func(s *Spec) { s.Pathways.ElasticSlices, s.Restart.OnPreemption = 1, PreemptionCounts }, "pathways.elastic_slices", "on_preemption"},
		{"negative restarts", func(s *Spec) { s.Pathways.MaxSliceRestarts = -1 }, "pathways.max_slice_restarts", "want 1"},
		{"own platform", func(s *Spec) { s.Env = map[string]string{"JAX_PLATFORMS": "cpu"} }, "env", "JAX_PLATFORMS"},
		{"further head", func(s *Spec) { s.Jobs = []Job{{Name: HeadJob, Pods: 1}} }, "jobs", "head of a Pathways"},
		{"too many jobs", func(s *Spec) {
			for i := range 7 {
				s.Jobs = append(s.Jobs, Job{Name: "a" + string(rune('a'+i)), Pods: 1})
			}
		}, "jobs", "takes 6"},
		{"after the end of the head", func(s *Spec) {
			s.Jobs = []Job{{Name: "a", Pods: 1, DependsOn: []Dependency{{Job: HeadJob, Until: UntilComplete}}}}
		}, "jobs", "never start"},
		{"headless with a program", func(s *Spec) { s.Pathways.Headless, s.Env, s.EnvFrom, s.Files, s.Volumes = true, nil, nil, nil, nil }, "command", "no program"},
		{"containers", func(s *Spec) { s.Slice, s.ContainersPerHost = slice(t, "tpu7x-128"), 2 }, "containers_per_host", "all its chips"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := pathwaysSpec(t)
			c.edit(&s)
			problems := FieldErrors(s.Validate())
			if c.field == "" {
				if len(problems) > 0 {
					t.Fatal(problems[0])
				}
				return
			}
			if !slices.ContainsFunc(problems, func(e *FieldError) bool { return e.Field == c.field && strings.Contains(e.Problem, c.want) }) {
				t.Errorf("got %v, want %q at %s", problems, c.want, c.field)
			}
		})
	}
}

// The head counts as much as the slices; elastic slices are missed less.
func TestPathwaysState(t *testing.T) {
	s := pathwaysSpec(t)
	running := func(elastic int, head, slicesReady int32, podsReady metav1.ConditionStatus) (State, string) {
		s.Pathways.ElasticSlices = elastic
		js := s.JobSet()
		js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: HeadJob, Ready: head, Active: 1 - head}, {Name: SliceJob, Ready: slicesReady, Active: 2 - slicesReady}}
		wl := &kueue.Workload{}
		wl.Status.Conditions = []metav1.Condition{
			{Type: kueue.WorkloadAdmitted, Status: metav1.ConditionTrue},
			{Type: kueue.WorkloadPodsReady, Status: podsReady, Reason: kueue.WorkloadWaitForRecovery},
		}
		r := Read(js, wl)
		if r.ProxyAddress != "grpc://train-head-0-0.train:29000" {
			t.Errorf("proxy at %q", r.ProxyAddress)
		}
		return r.State, r.Message
	}
	for _, c := range []struct {
		elastic   int
		head      int32
		slices    int32
		podsReady metav1.ConditionStatus
		state     State
		message   string
	}{
		{0, 1, 2, metav1.ConditionTrue, Running, ""},
		{0, 0, 2, metav1.ConditionUnknown, Starting, "the head is not ready yet"},
		{0, 1, 1, metav1.ConditionUnknown, Starting, "not every host"},
		{0, 1, 1, metav1.ConditionFalse, Restarting, "being replaced"},
		{1, 1, 1, metav1.ConditionFalse, Running, "1 of 2 slices are ready"},
		{1, 0, 2, metav1.ConditionFalse, Restarting, "being replaced"},
	} {
		if state, message := running(c.elastic, c.head, c.slices, c.podsReady); state != c.state || !strings.Contains(message, c.message) {
			t.Errorf("%+v: %s (%s)", c, state, message)
		}
	}
}

// A head that failed is told of as such, and its sidecars take no blame.
func TestPathwaysFailure(t *testing.T) {
	at := metav1.Now()
	ended := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: at, Reason: "Error"}}}
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train-head-0-0-x", Labels: map[string]string{jobset.ReplicatedJobNameKey: HeadJob}}}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended(Container, 3)},
		InitContainerStatuses: []corev1.ContainerStatus{ended(ContainerManager, 143), ended(ContainerProxy, 143)},
	}
	f := failureOf([]corev1.Pod{pod}, "")
	if f == nil || f.String() != "the head ended with exit code 3" {
		t.Errorf("got %v", f)
	}
	js := pathwaysSpec(t).JobSet()
	c := &metav1.Condition{Reason: "FailJobSetFailurePolicyAction", Message: "jobset failed (first failed job: train-head-0)"}
	if got := failReason(js, c); got != ReasonFatalExitCode {
		t.Errorf("reason %s", got)
	}
}

// Placements: what pods select, tolerate and ask of Kueue.
func TestRenderedPlacements(t *testing.T) {
	part, parts, cubes, spot, reserved := spec(t), spec(t), spec(t), spec(t), spec(t)
	part.Slice, part.Slices, part.Placement.Pool = slice(t, "v6e-64"), 1, "v6e-256"
	parts.Slice, parts.Slices, parts.Placement.Pool = slice(t, "v6e-16"), 3, "v6e-256"
	cubes.Slice, cubes.Placement = slice(t, "tpu7x-256"), Placement{Pool: "tpu7x-128", Policy: "cubes", Provisioning: queue.Reserved, Reservation: "r"}
	cubes.ContainersPerHost = 1
	spot.Placement.Provisioning = queue.Spot
	reserved.Placement = Placement{Provisioning: queue.Reserved, Reservation: "r"}
	type look struct {
		Selector, Annotations map[string]string
		Tolerations           []string
		Exclusive             bool
		Containers            int
	}
	base := func(accelerator, topology, chips string, more ...string) map[string]string {
		m := map[string]string{"cloud.google.com/gke-tpu-accelerator": accelerator, "cloud.google.com/gke-tpu-topology": topology, "cloud.google.com/gke-accelerator-count": chips}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		spec Spec
		want look
	}{
		"part of a slice": {part, look{base("tpu-v6e-slice", "16x16", "4"), map[string]string{
			"cloud.google.com/gke-tpu-slice-topology": "8x8", "kueue.x-k8s.io/podset-required-topology": "cloud.google.com/gke-tpu-slice-8x8-id"},
			[]string{"google.com/tpu"}, false, 1}},
		"several parts": {parts, look{base("tpu-v6e-slice", "16x16", "4"), map[string]string{
			"cloud.google.com/gke-tpu-slice-topology": "4x4", "kueue.x-k8s.io/podset-slice-required-topology": "cloud.google.com/gke-tpu-slice-4x4-id", "kueue.x-k8s.io/podset-slice-size": "4"},
			[]string{"google.com/tpu"}, false, 1}},
		"formed of cubes": {cubes, look{base("tpu7x", "4x4x4", "4", "cloud.google.com/placement-policy-name", "cubes", "cloud.google.com/reservation-name", "r"), map[string]string{
			"cloud.google.com/gke-tpu-slice-topology": "4x4x8", "kueue.x-k8s.io/podset-required-topology": "cloud.google.com/gce-topology-block",
			"kueue.x-k8s.io/podset-slice-required-topology": "cloud.google.com/gke-tpu-partition-4x4x4-id", "kueue.x-k8s.io/podset-slice-size": "16"},
			[]string{"google.com/tpu"}, false, 1}},
		"spot":     {spot, look{base("tpu-v5-lite-podslice", "4x4", "4", "cloud.google.com/gke-spot", "true"), nil, []string{"google.com/tpu", "cloud.google.com/gke-spot"}, true, 1}},
		"reserved": {reserved, look{base("tpu-v5-lite-podslice", "4x4", "4", "cloud.google.com/reservation-name", "r"), nil, []string{"google.com/tpu"}, true, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.spec.Validate(); err != nil {
				t.Fatal(err)
			}
			js := c.spec.JobSet()
			rj := js.Spec.ReplicatedJobs[0]
			pod := rj.Template.Spec.Template
			got := look{Selector: pod.Spec.NodeSelector, Annotations: pod.Annotations, Exclusive: rj.Template.Annotations[jobset.ExclusiveKey] != "", Containers: len(pod.Spec.Containers)}
			for _, tol := range pod.Spec.Tolerations[:len(pod.Spec.Tolerations)-2] { // lost hosts
				got.Tolerations = append(got.Tolerations, tol.Key)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			back := FromJobSet(js)
			if back.Hash() != c.spec.Hash() || back.Slice != c.spec.Slice {
				t.Errorf("read back it is another job: %+v", back)
			}
			js.Annotations = nil // whoever reads it without our annotations finds the slice too
			if r := Read(js, nil); r.Slice.Topology != c.spec.Slice.Topology || r.Slice.Generation != c.spec.Slice.Generation {
				t.Errorf("status reads slices of %s", r.Slice.Name)
			}
		})
	}
}

// What a part of a slice needs, its flavor's Topology has.
func TestPartsAreLevelsOfTheFlavor(t *testing.T) {
	for _, name := range []string{"v6e-256", "v6e-128", "v6e-64", "v6e-32"} {
		pool := slice(t, name)
		for _, part := range pool.SubSliceTopologies() {
			sub, err := pool.SubSlice(part)
			if err != nil {
				t.Fatal(err)
			}
			s := spec(t)
			s.Slice, s.Slices, s.Placement.Pool = sub.Part, 1, name
			if err := s.Validate(); err != nil {
				t.Errorf("%s of %s: %v", part, name, err)
			}
			if diff := cmp.Diff(sub.PodAnnotations, s.topologyAnnotations()); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", part, name, diff)
			}
			if level := accelerator.SubSliceLabel(part); !slices.Contains(queue.DefaultLevels(pool), level) {
				t.Errorf("the flavor of %s has no level %s", name, level)
			}
		}
	}
}

func TestPlacementRefusals(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(*Spec)
		field string
		want  string
	}{
		{"reservation without a name", func(s *Spec) { s.Placement.Provisioning = queue.Reserved }, "placement.provisioning", "needs the name"},
		{"reservation alone", func(s *Spec) { s.Placement.Reservation = "r" }, "placement.reservation", "provisioning"},
		{"reservation by path", func(s *Spec) {
			s.Placement.Provisioning, s.Placement.Reservation = queue.Reserved, "projects/p/reservations/r"
		}, "placement.reservation", "last part"},
		{"flex-start of v4", func(s *Spec) { s.Slice, s.Placement.Provisioning = slice(t, "v4-16"), queue.FlexStart }, "placement.provisioning", "flex-start"},
		{"policy of v5e", func(s *Spec) { s.Placement.Policy = "p" }, "placement.policy", "not placed"},
		{"bad policy", func(s *Spec) { s.Slice, s.Placement.Policy = slice(t, "tpu7x-128"), "a b" }, "placement.policy", "a b"},
		{"unknown pool", func(s *Spec) { s.Placement.Pool = "h100" }, "placement.pool_accelerator", "h100"},
		{"itself", func(s *Spec) { s.Placement.Pool = "v5litepod-4x4" }, "placement.pool_accelerator", "by themselves"},
		{"another generation", func(s *Spec) { s.Placement.Pool = "v6e-256" }, "placement.pool_accelerator", "cannot be made"},
		{"v5e has no parts", func(s *Spec) { s.Placement.Pool = "v5litepod-256" }, "placement.pool_accelerator", "cannot be divided"},
		{"larger than its pool", func(s *Spec) { s.Slice, s.Placement.Pool = slice(t, "v6e-256"), "v6e-64" }, "placement.pool_accelerator", "not a part"},
		{"part on other machines", func(s *Spec) { s.Slice, s.Placement.Pool = slice(t, "v6e-8-8t"), "v6e-64" }, "placement.pool_accelerator", "machines"},
		{"part without a queue", func(s *Spec) { s.Slice, s.Queue, s.Placement.Pool = slice(t, "v6e-16"), "", "v6e-64" }, "placement.pool_accelerator", "set queue"},
		{"not of cubes", func(s *Spec) { s.Slice, s.Placement.Pool = slice(t, "tpu7x-512"), "tpu7x-256" }, "placement.pool_accelerator", "cubes of 4x4x4"},
		{"less than a cube", func(s *Spec) { s.Slice, s.Placement.Pool = slice(t, "tpu7x-32"), "tpu7x-128" }, "placement.pool_accelerator", "smaller than a cube"},
		{"name too long for GKE's slices", func(s *Spec) {
			s.Slice, s.Placement.Pool, s.Name = slice(t, "tpu7x-256"), "tpu7x-128", strings.Repeat("a", 28)
		}, "placement.pool_accelerator", "27 fit"},
		{"part beside a job with resources", func(s *Spec) {
			s.Slice, s.Placement.Pool, s.Jobs = slice(t, "v6e-16"), "v6e-64", []Job{{Name: "eval", Pods: 1, Resources: DefaultServerResources}}
		}, "placement.pool_accelerator", "job eval"},
		{"part by Pathways", func(s *Spec) {
			s.Slice, s.Placement.Pool, s.Pathways = slice(t, "v6e-16"), "v6e-64", &Pathways{Scratch: "gs://scratch"}
		}, "placement.pool_accelerator", "the head"},
		{"three containers", func(s *Spec) { s.Slice, s.ContainersPerHost = slice(t, "tpu7x-128"), 3 }, "containers_per_host", "1 container, or for 2"},
		{"two containers on v5e", func(s *Spec) { s.ContainersPerHost = 2 }, "containers_per_host", "for 1 container"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spec(t)
			c.edit(&s)
			problems := FieldErrors(s.Validate())
			if len(problems) != 1 || problems[0].Field != c.field || !strings.Contains(problems[0].Problem, c.want) {
				t.Errorf("got %v, want %q at %s", problems, c.want, c.field)
			}
		})
	}
}

// The longest name of a job on cubes is xpk's, in its namespace.
func TestNameOfCubes(t *testing.T) {
	s := spec(t)
	s.Namespace, s.Slice, s.Placement.Pool, s.Name = "default", slice(t, "tpu7x-256"), "tpu7x-128", strings.Repeat("a", 28)
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	if s.Name += "a"; s.Validate() == nil {
		t.Error("29 characters are accepted")
	}
}
