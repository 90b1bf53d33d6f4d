package training

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

func quantity(s string) *resource.Quantity { return ptr.To(resource.MustParse(s)) }

// everything is a job with all that the plain one lacks: a CPU evaluator, an
// uploader for TensorBoard, a preparation, and storage of every kind.
func everything(t testing.TB) Spec {
	s := spec(t)
	s.Command, s.Shell = nil, "set -e\npython train.py | tee log"
	s.EnvFrom = []EnvSource{{Secret: "tokens", Prefix: "HF_"}, {ConfigMap: "settings", Optional: true}}
	s.Files = map[string]string{"/etc/train/config.yaml": "lr: 1\n", "/etc/train/vocab.txt": "a\n"}
	s.Volumes = []Volume{
		{Name: "data", Path: "/data", Bucket: "my-data", MountOptions: []string{"implicit-dirs", "only-dir=v1"}, ReadOnly: true},
		{Name: "shared", Path: "/shared", Claim: "filestore", SubPath: "runs/7"},
		{Name: "keys", Path: "/keys", Secret: "keys"},
		{Name: "conf", Path: "/conf", ConfigMap: "conf"},
		{Name: "traces", Path: "/traces", HostPath: "/var/traces"},
		{Name: "ramdisk", Path: "/ckpt", Ramdisk: true},
		{Name: "tiers", Path: "/tiers", MultiTier: true},
		{Name: "fast", Path: "/fast", Memory: quantity("1Gi")},
		{Name: "scratch", Path: "/scratch", Scratch: quantity("100Gi")},
		{Name: "home", Path: "/home/ada", NFS: &NFS{Server: "10.0.0.2", Path: "/home"}},
	}
	s.Resources = Resources{CPU: quantity("100"), Memory: quantity("180Gi"), EphemeralStorage: quantity("50Gi")}
	s.MaxRunTime, s.SchedulerName, s.HostNetwork = ptr.To(90*time.Minute), "gang", true
	s.Restart.OnPreemption = PreemptionCounts
	s.DependsOn = []Dependency{{Job: "prepare", Until: UntilComplete}}
	s.Jobs = []Job{
		{Name: "tensorboard", Pods: 1, Image: "uploader:1", Args: []string{"--logdir=/shared"}, DependsOn: []Dependency{{Job: SliceJob, Until: UntilReady}}},
		{Name: "eval", Pods: 2, Shell: "python eval.py", Env: map[string]string{"B": "1", envProcessID: "own"}, OnFailure: FailureRestarts,
			Resources: Resources{CPU: quantity("4"), Memory: quantity("16Gi")}, NodeSelector: map[string]string{"pool": "cpu"}},
		{Name: "prepare", Pods: 1, Command: []string{"prepare"}, EnvFrom: []EnvSource{{Secret: "tokens"}}, OnFailure: FailureFails},
	}
	s.Overrides = `{"metadata":{"labels":{"cost":"a"}},"spec":{"replicatedJobs":[{"name":"slice","template":{"spec":{"template":{"spec":{"priorityClassName":"gold","containers":[{"name":"train","imagePullPolicy":"Always"}]}}}}}]}}`
	return s
}

func TestEverythingRendered(t *testing.T) {
	s := everything(t)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, o := range []any{s.JobSet(), s.FilesObject(nil)} {
		b, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, "---\n"...), b...)
	}
	golden(t, "everything.yaml", all)

	// Read back, but for the files, which are in their own object.
	want := s
	want.Files = nil
	got := FromJobSet(s.JobSet())
	got.Labels, want.Labels = nil, nil // the override's
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b accelerator.Slice) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHeldJobsWaitOutsideTheirQueue(t *testing.T) {
	s := spec(t)
	s.Held = true
	js := s.JobSet()
	if !ptr.Deref(js.Spec.Suspend, false) || js.Labels["kueue.x-k8s.io/queue-name"] != "" {
		t.Errorf("suspend %v, labels %v", js.Spec.Suspend, js.Labels)
	}
	if FromJobSet(js).Queue != "research" {
		t.Errorf("the queue it is for is forgotten: %+v", FromJobSet(js))
	}
	free := s
	if free.Held = false; free.Hash() != s.Hash() {
		t.Error("a held job is taken for another than the same one started")
	}
}

func TestMerge(t *testing.T) {
	base := spec(t).JobSet()
	for _, c := range []struct{ name, over, want string }{
		{"nothing", ``, ""},
		{"no JSON", `{`, "not a JSON object"},
		{"a list", `[]`, "not a JSON object"},
		{"null", `null`, ""},
		{"status", `{"status":{}}`, "status cannot"},
		{"name", `{"metadata":{"name":"x"}}`, "metadata.name cannot"},
		{"suspend", `{"spec":{"suspend":true}}`, "use active"},
		{"ttl", `{"spec":{"ttlSecondsAfterFinished":1}}`, "use ttl_after_finished"},
		{"our label", `{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"x"}}}`, "kueue.x-k8s.io/queue-name is written"},
		{"our label away", `{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":null}}}`, "kueue.x-k8s.io/queue-name is written"},
		{"metadata of a wrong kind", `{"metadata":1}`, "not an object"},
		{"a misspelt field", `{"spec":{"replicatedJobs":[{"name":"slice","replcas":1}]}}`, `unknown field "spec.replicatedJobs[0].replcas"`},
		{"a wrong type", `{"spec":{"replicatedJobs":[{"name":"slice","replicas":"two"}]}}`, "no JobSet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Merge(base, c.over)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	got, err := Merge(base, `{"spec":{"failurePolicy":{"maxRestarts":7},"replicatedJobs":[{"name":"slice","template":{"spec":{"template":{"spec":{
		"terminationGracePeriodSeconds":null,"tolerations":[{"operator":"Exists"}],"containers":[{"name":"train","args":["x"]},{"name":"side","image":"s"}]}}}}}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	pod := got.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	if got.Spec.FailurePolicy.MaxRestarts != 7 || len(got.Spec.FailurePolicy.Rules) != 2 || got.Spec.ReplicatedJobs[0].Replicas != 2 ||
		pod.TerminationGracePeriodSeconds != nil || len(pod.Tolerations) != 1 || len(pod.Containers) != 2 || pod.Containers[0].Image != "train:1" || pod.Containers[0].Args[0] != "x" {
		t.Errorf("%+v", got.Spec)
	}
	if base.Spec.FailurePolicy.MaxRestarts == 7 {
		t.Error("the base was changed")
	}
}

// Where runs may write: what is no bucket is the program's affair.
func TestOutputs(t *testing.T) {
	for _, dir := range []string{"", "/runs", "runs", "s3://b", "gs://my_runs-2/a b", "gs://runs/", "gs://" + strings.Repeat("a", 63) + ".example.com"} {
		s := spec(t)
		s.OutputDir = dir
		if err := s.Validate(); err != nil {
			t.Errorf("%q: %v", dir, err)
		}
	}
}

func TestRefusalsOfTheRest(t *testing.T) {
	job := func(edit func(*Job)) func(*Spec) {
		return func(s *Spec) {
			j := Job{Name: "eval", Pods: 1}
			edit(&j)
			s.Jobs = []Job{j}
		}
	}
	volume := func(v Volume) func(*Spec) {
		return func(s *Spec) {
			if v.Name == "" {
				v.Name = "v"
			}
			if v.Path == "" {
				v.Path = "/v"
			}
			s.Volumes = []Volume{v}
		}
	}
	for _, c := range []struct {
		name  string
		edit  func(*Spec)
		field string
		want  string
	}{
		{"script and command", func(s *Spec) { s.Shell = "x" }, "shell", "one or the other"},
		{"secret and config map", func(s *Spec) { s.EnvFrom = []EnvSource{{Secret: "a", ConfigMap: "b"}} }, "env_from", "one of the two"},
		{"neither", func(s *Spec) { s.EnvFrom = []EnvSource{{}} }, "env_from", "one of the two"},
		{"bad prefix", func(s *Spec) { s.EnvFrom = []EnvSource{{Secret: "a", Prefix: "a="}} }, "env_from", "prefix"},
		{"no memory", func(s *Spec) { s.Resources.Memory = quantity("0") }, "resources.memory", "more than nothing"},
		{"half a byte", func(s *Spec) { s.Resources.Memory = quantity("1500m") }, "resources.memory", "whole number of bytes"},
		{"memory without a unit", func(s *Spec) { s.Resources.Memory = quantity("100") }, "resources.memory", "a unit is missing, as in 100Gi"},
		{"storage without a unit", func(s *Spec) { s.Resources.EphemeralStorage = quantity("50") }, "resources.ephemeral_storage", "as in 50Gi"},
		{"no program", func(s *Spec) { s.Command = []string{""} }, "command", "which is no program"},
		{"output in no bucket", func(s *Spec) { s.OutputDir = "gs://" }, "output_dir", "names no bucket"},
		{"output in no bucket but a folder", func(s *Spec) { s.OutputDir = "gs:///a" }, "output_dir", "names no bucket"},
		{"output in a bucket of one slash", func(s *Spec) { s.OutputDir = "gs:/runs" }, "output_dir", "write gs://BUCKET"},
		{"output in a bucket of two words", func(s *Spec) { s.OutputDir = "gs://my runs/a" }, "output_dir", `bucket "my runs": no bucket`},
		{"output in a bucket of capitals", func(s *Spec) { s.OutputDir = "gs://RUNS" }, "output_dir", "lowercase"},
		{"output in a bucket with a dash last", func(s *Spec) { s.OutputDir = "gs://runs-" }, "output_dir", "at both ends"},
		{"output in a short bucket", func(s *Spec) { s.OutputDir = "gs://ab/c" }, "output_dir", "3 to 63"},
		{"output in a long bucket", func(s *Spec) { s.OutputDir = "gs://" + strings.Repeat("a", 64) }, "output_dir", "3 to 63"},
		{"output after a space", func(s *Spec) { s.OutputDir = " gs://runs" }, "output_dir", "starts or ends with a space"},
		{"relative file", func(s *Spec) { s.Files = map[string]string{"a": "b"} }, "files", "start with /"},
		{"unclean file", func(s *Spec) { s.Files = map[string]string{"/a//b": "b"} }, "files", "write it as /a/b"},
		{"large files", func(s *Spec) { s.Files = map[string]string{"/a": strings.Repeat("x", 1<<20+1)} }, "files", "Cloud Storage"},
		{"file over a volume", func(s *Spec) {
			volume(Volume{Claim: "c"})(s)
			s.Files = map[string]string{"/v": "b"}
		}, "volumes", "there already"},
		{"volume of nothing", volume(Volume{}), "volumes", "set one of"},
		{"volume of two things", volume(Volume{Claim: "a", Secret: "b"}), "volumes", "claim, secret"},
		{"volume twice", func(s *Spec) {
			s.Volumes = []Volume{{Name: "a", Path: "/a", Claim: "a"}, {Name: "a", Path: "/b", Claim: "a"}}
		}, "volumes", "twice"},
		{"volume at /", volume(Volume{Path: "/", Claim: "c"}), "volumes", "whole image"},
		{"volume at /dev/shm", volume(Volume{Path: "/dev/shm", Claim: "c"}), "volumes", "shared memory"},
		{"volume called shm", volume(Volume{Name: "shm", Claim: "c"}), "volumes", "another volume"},
		{"bucket as URL", volume(Volume{Bucket: "gs://b"}), "volumes", "without gs://"},
		{"bucket with folder", volume(Volume{Bucket: "bucket/folder"}), "volumes", "only-dir"},
		{"options without a bucket", volume(Volume{Claim: "c", MountOptions: []string{"a"}}), "volumes", "for a bucket"},
		{"path upwards", volume(Volume{Claim: "c", SubPath: "../a"}), "volumes", "sub_path"},
		{"time without a queue", func(s *Spec) { s.Queue, s.MaxRunTime = "", ptr.To(time.Hour) }, "max_run_time", "set queue"},
		{"no time", func(s *Spec) { s.MaxRunTime = ptr.To(time.Duration(0)) }, "max_run_time", "between 1"},
		{"part of a second", func(s *Spec) { s.MaxRunTime = ptr.To(time.Millisecond) }, "max_run_time", "whole seconds"},
		{"unknown policy", func(s *Spec) { s.Restart.OnPreemption = "never" }, "restart_policy.on_preemption", "restart, count, fail"},
		{"scheduler", func(s *Spec) { s.SchedulerName = "A" }, "scheduler_name", "A"},
		{"job without pods", job(func(j *Job) { j.Pods = 0 }), "jobs", "eval: pods"},
		{"job called as the main one", job(func(j *Job) { j.Name = "slice" }), "jobs", "main job's name"},
		{"job with a bad name", job(func(j *Job) { j.Name = "E" }), "jobs", "cannot name"},
		{"job with a long name", job(func(j *Job) { j.Name = strings.Repeat("e", 60) }), "jobs", "characters"},
		{"job with own RUN_ID", job(func(j *Job) { j.Env = map[string]string{"RUN_ID": "a"} }), "jobs", "set for every job"},
		{"unknown failure", job(func(j *Job) { j.OnFailure = "ignore" }), "jobs", "retry, restart, fail"},
		{"after itself", job(func(j *Job) { j.DependsOn = []Dependency{{"eval", UntilReady}} }), "jobs", "itself"},
		{"after nobody", job(func(j *Job) { j.DependsOn = []Dependency{{"evil", UntilReady}} }), "jobs", "there are eval, slice"},
		{"after the end", job(func(j *Job) { j.DependsOn = []Dependency{{SliceJob, UntilComplete}} }), "jobs", "would never start"},
		{"main after what never fails", func(s *Spec) {
			job(func(*Job) {})(s)
			s.DependsOn = []Dependency{{"eval", UntilComplete}}
		}, "starts_after", "on_failure"},
		{"in a circle", func(s *Spec) {
			job(func(j *Job) { j.DependsOn = []Dependency{{SliceJob, UntilReady}} })(s)
			s.DependsOn = []Dependency{{"eval", UntilReady}}
		}, "jobs", "eval -> slice -> eval"},
		{"too many", func(s *Spec) {
			for _, name := range strings.Split("abcdefgh", "") {
				s.Jobs = append(s.Jobs, Job{Name: name, Pods: 1})
			}
		}, "jobs", "takes 7"},
		{"overrides that break a name", func(s *Spec) {
			s.Overrides = `{"spec":{"replicatedJobs":[{"name":"` + strings.Repeat("x", 60) + `","replicas":1,"template":{"spec":{"template":{"spec":{"containers":[{"name":"a"}]}}}}}]}}`
		}, "jobset_overrides", "characters"},
		{"overrides of a gate", func(s *Spec) { s.Overrides = `{"spec":{"failurePolicy":{"restartStrategy":"InPlaceRestart"}}}` }, "jobset_overrides", "feature gate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spec(t)
			c.edit(&s)
			problems := FieldErrors(s.Validate())
			if len(problems) == 0 {
				t.Fatal("accepted")
			}
			if problems[0].Field != c.field || !strings.Contains(problems[0].Problem, c.want) {
				t.Errorf("got %v, want %q at %s", problems[0], c.want, c.field)
			}
		})
	}
}

// What a further job's failure means for the run.
func TestFurtherJobsAreTargeted(t *testing.T) {
	js := everything(t).JobSet()
	got := map[string][]string{}
	for _, r := range js.Spec.FailurePolicy.Rules {
		got[string(r.Action)+" "+r.Name] = r.TargetReplicatedJobs
	}
	want := map[string][]string{
		"RestartJobSet disruption": {"slice", "eval"}, "FailJobSet fatalExitCode": {"slice", "eval"}, "FailJobSet furtherJob": {"prepare"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"slice"}, js.Spec.SuccessPolicy.TargetReplicatedJobs); diff != "" {
		t.Errorf("success (-want +got):\n%s", diff)
	}
	// What asks for cpu comes last: Kueue admits the job otherwise never.
	var order []string
	for i := range js.Spec.ReplicatedJobs {
		order = append(order, js.Spec.ReplicatedJobs[i].Name)
	}
	if diff := cmp.Diff([]string{"prepare", "slice", "tensorboard", "eval"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
