package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/sandboxcmd"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/version"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// jobsScene is the jobs of one cluster, under Terraform and under tpuctl.
type jobsScene struct {
	*testing.T
	d       *tfrun.Dir
	cl      *kube.Client
	project string
}

// terraform runs a command that must pass, and returns all it printed, without
// its line breaks.
func (s jobsScene) terraform(args ...string) string {
	s.Helper()
	var out bytes.Buffer
	if err := s.d.Run(s.Context(), &out, append(args, "-no-color")...); err != nil {
		s.Fatalf("%v\n%s", err, &out)
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(out.String(), "│", " ")), " ")
}

func (s jobsScene) apply(args ...string) string {
	s.Helper()
	return s.terraform(append([]string{"apply", "-auto-approve"}, args...)...)
}

// try runs tpuctl on the scene's cluster, as a user would in the sandbox's
// environment.
func (s jobsScene) try(line string, more ...string) (string, error) {
	s.Helper()
	var out bytes.Buffer
	cmd := cli.New(&term.Streams{In: strings.NewReader(""), Out: &out, Err: &out}, version.Build{})
	args := append(strings.Fields(line), more...)
	if args[0] != "sandbox" {
		args = append(args, "--project", s.project)
	}
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(s.Context())
	return out.String(), err
}

func (s jobsScene) tpuctl(line string, more ...string) string {
	s.Helper()
	out, err := s.try(line, more...)
	if err != nil {
		s.Fatalf("tpuctl %s: %v\n%s", line, err, out)
	}
	return out
}

// jobStatus is what `tpuctl status -o json` shows of a job.
type jobStatus struct {
	UID, State, Reason, Message string
	Hosts                       struct{ Wanted, Ready int }
	Restarts                    struct{ Total, Counted int }
}

func (s jobsScene) status(job string) (st jobStatus) {
	s.Helper()
	if err := json.Unmarshal([]byte(s.tpuctl("status vision/"+job+" -o json")), &st); err != nil {
		s.Fatal(err)
	}
	return st
}

// becomes waits until a job stands as it should, which tpuctl then shows.
func (s jobsScene) becomes(job, what string, ok func(jobStatus) bool) {
	s.Helper()
	began := time.Now()
	settles(s.T, job+" "+what, func() error {
		r, err := training.Get(s.Context(), s.cl, "vision", job)
		if err != nil {
			return err
		}
		var st jobStatus
		st.State, st.Reason, st.Message = string(r.State), r.Reason, r.Message
		st.Hosts.Wanted, st.Hosts.Ready, st.Restarts.Total, st.Restarts.Counted = r.HostsWanted, r.HostsReady, r.Restarts, r.CountedRestarts
		if !ok(st) {
			return fmt.Errorf("it is %+v; %+v", st, r.Conditions)
		}
		return nil
	})
	s.Logf("%s %s after %.1fs", job, what, time.Since(began).Seconds())
	if st := s.status(job); !ok(st) {
		s.Errorf("%s %s, but tpuctl shows %+v", job, what, st)
	}
}

func is(state training.State) func(jobStatus) bool {
	return func(st jobStatus) bool { return st.State == string(state) }
}

// state is what Terraform's state holds of a job.
func (s jobsScene) state(job string) (attributes map[string]any, tainted bool) {
	s.Helper()
	b, err := os.ReadFile(filepath.Join(s.d.Path, "terraform.tfstate"))
	if err != nil {
		s.Fatal(err)
	}
	var state struct {
		Resources []struct {
			Name      string
			Instances []struct {
				Status     string
				Attributes map[string]any
			}
		}
	}
	if err := json.Unmarshal(b, &state); err != nil {
		s.Fatal(err)
	}
	for _, r := range state.Resources {
		if r.Name == job && len(r.Instances) == 1 {
			return r.Instances[0].Attributes, r.Instances[0].Status != ""
		}
	}
	s.Fatalf("the state does not hold %s", job)
	return nil, false
}

// stands tells how a job stands everywhere: in Terraform's state, for tpuctl,
// and for Kueue, whose business spec.suspend is.
func (s jobsScene) stands(when, job string, want training.State) {
	s.Helper()
	if a, tainted := s.state(job); a["status"] != string(want) || tainted {
		s.Errorf("%s the state has %s as %v (tainted: %t), want %s", when, job, a["status"], tainted, want)
	}
	if st := s.status(job); st.State != string(want) {
		s.Errorf("%s tpuctl has %s as %s, want %s", when, job, st.State, want)
	}
	js, wl := s.objects(job)
	active := want != training.Suspended
	if ptr.Deref(wl.Spec.Active, true) != active || ptr.Deref(js.Spec.Suspend, false) == active {
		s.Errorf("%s the Workload of %s is active: %t; its JobSet is suspended: %t", when, job, ptr.Deref(wl.Spec.Active, true), ptr.Deref(js.Spec.Suspend, false))
	}
}

func (s jobsScene) objects(job string) (*jobset.JobSet, *kueue.Workload) {
	s.Helper()
	js := &jobset.JobSet{}
	if err := s.cl.Get(s.Context(), client.ObjectKey{Namespace: "vision", Name: job}, js); err != nil {
		s.Fatal(err)
	}
	var all kueue.WorkloadList
	if err := s.cl.List(s.Context(), &all, client.InNamespace("vision"), client.MatchingLabels{"kueue.x-k8s.io/job-uid": string(js.UID)}); err != nil || len(all.Items) != 1 {
		s.Fatalf("%d Workloads of %s: %v", len(all.Items), job, err)
	}
	return js, &all.Items[0]
}

// settled is that the second plan is empty and that nobody writes to a job
// while plans are made: who fights over it writes.
func (s jobsScene) settled(when, job string, vars ...string) {
	s.Helper()
	js, wl := s.objects(job)
	planIsEmpty(s.T, s.d, vars...)
	js2, wl2 := s.objects(job)
	if js.Generation != js2.Generation || wl.Generation != wl2.Generation {
		s.Errorf("%s somebody writes to %s: JobSet %d to %d, Workload %d to %d", when, job, js.Generation, js2.Generation, wl.Generation, wl2.Generation)
	}
}

// How jobs end and are held back, by Terraform and beside it, on the cluster of
// TestAccEverything, whose two slices are free.
func jobs(t *testing.T, cl *kube.Client, project string) {
	s := jobsScene{t, acctest.Workspace(t, "testdata/jobs", project), cl, project}
	acctest.UseSandbox(t) // tpuctl runs in this process
	t.Setenv(sandboxcmd.EnvDir, acctest.Sandbox(t).Dir())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
		defer cancel()
		if _, err := sandbox.Mend(ctx, acctest.Sandbox(t).Dir()); err != nil { // pods on lost hosts do not end
			t.Error(err)
		}
		if out, err := s.d.Output(ctx, "destroy", "-auto-approve", "-no-color"); err != nil {
			t.Errorf("destroy: %v\n%s", err, out)
		}
	})

	// A job that fails is a warning: no error, no taint, not run again.
	if out := s.apply(); !strings.Contains(out, "Warning: Job failed") || !strings.Contains(out, "exit code 127") || !strings.Contains(out, "2 added, 0 changed, 0 destroyed") {
		t.Errorf("the first apply says:\n%s", out)
	}
	first, tainted := s.state("typo")
	if first["status"] != "Failed" || first["reason"] != training.ReasonFatalExitCode || tainted {
		t.Errorf("the job that fails is %v (%v), tainted: %t", first["status"], first["reason"], tainted)
	}
	s.stands("running", "long", training.Running)
	s.settled("running", "long")
	if got := s.status("typo").UID; got != first["uid"] {
		t.Errorf("the job that failed is another one now: %s, was %s", got, first["uid"])
	}

	s.printed()
	s.suspends()
	s.actions()
	s.runsAgain(first)

	// Deleted by hand while it runs.
	if err := cl.Delete(t.Context(), &jobset.JobSet{ObjectMeta: inside("vision", "long")}); err != nil {
		t.Fatal(err)
	}
	again := []string{"-var=trigger=2"}
	if out := s.apply(again...); !strings.Contains(out, "Warning: Job is gone") || !strings.Contains(out, "0 added, 0 changed, 0 destroyed") {
		t.Errorf("with a job deleted by hand an apply says:\n%s", out)
	}
	if a, tainted := s.state("long"); a["status"] != "GONE" || tainted {
		t.Errorf("deleted by hand it is %v, tainted: %t", a["status"], tainted)
	}
	planIsEmpty(t, s.d, again...)

	s.disrupted(append(again, "-var=spot=true")...)
}

// What tpuctl prints of a job for Terraform is planned and applied as it is, and
// makes the object that tpuctl makes of the job.
func (s jobsScene) printed() {
	const line = "submit printed -n vision --queue research --accelerator v5litepod-8 --image train:1 --owner team --priority high --env LR=3e-4" +
		" --output-dir gs://runs --experiment e --label a=b --tag nightly --cpu 1500m --max-restarts 5 --ttl 1h --grace-period 45s --annotation c=d"
	script := []string{"--note", "why \"not\" ${this}", "--shell", "python train.py | tee \"/tmp/$RUN_ID\""}
	cluster := "projects/" + s.project + "/locations/us-west4-a/clusters/main"
	text := s.tpuctl(line, append(script, "--cluster", cluster, "--dry-run=client", "-o", "hcl")...)
	if err := s.d.Write("printed.tf", text); err != nil {
		s.Fatal(err)
	}
	const at = "tpu_training_jobset.printed"
	if diff := cmp.Diff(map[string][]string{at: {"create"}}, plan(s.T, s.d).changes()); diff != "" {
		s.Fatalf("what tpuctl printed is planned as:\n%s\n%s", diff, text)
	}
	s.apply()
	s.becomes("printed", "runs by Terraform", is(training.Running))
	applied, _ := s.objects("printed")
	s.settled("applied as printed", "printed")
	if err := os.Remove(filepath.Join(s.d.Path, "printed.tf")); err != nil {
		s.Fatal(err)
	}
	s.apply()
	s.tpuctl(line, script...)
	s.becomes("printed", "runs by tpuctl", is(training.Running))
	submitted, _ := s.objects("printed")
	s.tpuctl("delete vision/printed --yes")
	for _, js := range []*jobset.JobSet{applied, submitted} {
		for i := range js.Spec.ReplicatedJobs { // Kueue names its Workload after the object
			delete(js.Spec.ReplicatedJobs[i].Template.Spec.Template.Annotations, "kueue.x-k8s.io/workload")
		}
	}
	if diff := cmp.Diff(applied.Spec, submitted.Spec); diff != "" {
		s.Errorf("the JobSet of tpuctl and of Terraform (-applied +submitted):\n%s", diff)
	}
	if diff := cmp.Diff([]map[string]string{applied.Labels, applied.Annotations}, []map[string]string{submitted.Labels, submitted.Annotations}); diff != "" {
		s.Errorf("their metadata (-applied +submitted):\n%s", diff)
	}
}

// Suspending and resuming by Terraform, and by hand in between.
func (s jobsScene) suspends() {
	const at = "tpu_training_jobset.long"
	off, on := []string{"-var=active=false"}, []string{"-var=active=true"}
	drifts := func(when string, vars []string) {
		s.Helper()
		got := plan(s.T, s.d, vars...).changes()
		if len(got) != 1 || !slices.Contains(got[at], "active") {
			s.Errorf("%s a plan shows %v, want active of %s", when, got, at)
		}
	}
	changes := func(when string, vars []string, want training.State) {
		s.Helper()
		if out := s.apply(vars...); !strings.Contains(out, "0 added, 1 changed, 0 destroyed") {
			s.Errorf("%s an apply says:\n%s", when, out)
		}
		if want == training.Suspended { // Kueue takes its time over the pods
			s.becomes("long", "is suspended", is(training.Suspended))
		}
		s.stands(when, "long", want)
		s.settled(when, "long", vars...)
	}
	changes("suspended", off, training.Suspended)
	s.tpuctl("resume vision/long")
	s.becomes("long", "runs again", is(training.Running))
	drifts("resumed by hand, where it is to be suspended,", off)
	changes("suspended once more", off, training.Suspended)
	changes("resumed", on, training.Running)
	s.tpuctl("suspend vision/long")
	s.becomes("long", "is suspended by hand", is(training.Suspended))
	drifts("suspended by hand, where it is to run,", on)
	changes("resumed once more", on, training.Running)

	// Where nothing is said of it, it is nobody's business.
	nothing := func(when string, want training.State) {
		s.Helper()
		if out := s.apply(); !strings.Contains(out, "0 added, 0 changed, 0 destroyed") {
			s.Errorf("%s an apply says:\n%s", when, out)
		}
		s.stands(when, "long", want)
		s.settled(when, "long")
	}
	s.apply() // takes active out of the state
	s.tpuctl("suspend vision/long")
	s.becomes("long", "is suspended by hand", is(training.Suspended))
	nothing("suspended by hand", training.Suspended)
	s.tpuctl("resume vision/long")
	s.becomes("long", "runs again", is(training.Running))
	nothing("resumed by hand", training.Running)

	// All the time it was one run in its first attempt.
	js, _ := s.objects("long")
	if a, _ := s.state("long"); a["uid"] != string(js.UID) || js.Status.Restarts != 0 {
		s.Errorf("job %s after %d restarts, want %v after none", js.UID, js.Status.Restarts, a["uid"])
	}
}

// A changed trigger is another run of the same name: an object of its own, which
// begins at attempt 0 where the earlier one wrote.
func (s jobsScene) runsAgain(first map[string]any) {
	out := s.apply("-var=trigger=2")
	second, tainted := s.state("typo")
	if !strings.Contains(out, "1 added, 0 changed, 1 destroyed") || tainted || second["uid"] == first["uid"] || second["id"] != first["id"] || second["run_id"] != "typo" ||
		second["status"] != "Failed" || second["restarts"] != 0. {
		s.Errorf("run again it is %v, after %v:\n%s", second, first, out)
	}
	var pods corev1.PodList
	if err := s.cl.List(s.Context(), &pods, client.InNamespace("vision"), client.MatchingLabels{"jobset.sigs.k8s.io/jobset-name": "typo"}); err != nil || len(pods.Items) == 0 {
		s.Fatalf("%d pods: %v", len(pods.Items), err)
	}
	env := map[string]string{}
	for _, e := range pods.Items[0].Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	env[training.EnvAttempt] = pods.Items[0].Labels[training.LabelRestartAttempt]
	for name, want := range map[string]string{training.EnvRunID: "typo", training.EnvOutputDir: "gs://runs/typo", training.EnvAttempt: "0"} {
		if env[name] != want {
			s.Errorf("%s of the second run is %q, want %q", name, env[name], want)
		}
	}
	planIsEmpty(s.T, s.d, "-var=trigger=2")
}
