package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

const quickstartModule = "../../examples/quickstart"

// run is a command line at work, with what it has printed so far.
type run struct {
	out  *acctest.Output
	done chan error
	pid  int
}

func start(t *testing.T, d *tfrun.Dir, args ...string) *run {
	t.Helper()
	r := &run{out: &acctest.Output{}, done: make(chan error, 1)}
	cmd := d.Command(t.Context(), args...)
	cmd.Stdout, cmd.Stderr = r.out, r.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.pid = cmd.Process.Pid
	go func() { r.done <- cmd.Wait() }()
	return r
}

// until waits for a sign, and fails when the command ends first.
func (r *run) until(t *testing.T, what string, seen func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(3 * time.Minute)
	for !seen() {
		select {
		case err := <-r.done:
			t.Fatalf("the command ended (%v) before %s:\n%s", err, what, r.out)
		case <-deadline:
			t.Fatalf("%s never came:\n%s", what, r.out)
		case <-tick.C:
		}
	}
}

func (r *run) ends(t *testing.T, within time.Duration) (took time.Duration, err error) {
	t.Helper()
	began := time.Now()
	select {
	case err := <-r.done:
		return time.Since(began), err
	case <-time.After(within):
		t.Fatalf("still running after %v:\n%s", within, r.out)
		return 0, nil
	}
}

// provider returns the pid of the provider process below the command line.
func (r *run) provider(t *testing.T) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range stats {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it ended meanwhile
		}
		// pid (comm) state ppid ...; comm may hold spaces, so look behind it.
		head, rest, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(r.pid) || !strings.Contains(head, "(terraform-prov") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	t.Fatalf("no provider process below %d:\n%s", r.pid, r.out)
	return 0
}

// pools lists a cluster's node pools by Google's own client, so that what is
// there is not told by the code under test.
func pools(t *testing.T, project string) map[string]containerpb.NodePool_Status {
	t.Helper()
	resp, err := googleClient(t).ListClusters(t.Context(), &containerpb.ListClustersRequest{Parent: "projects/" + project + "/locations/-"})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]containerpb.NodePool_Status{}
	for _, c := range resp.Clusters {
		for _, p := range c.NodePools {
			found[p.Name] = p.Status
		}
	}
	return found
}

// A provider that is killed while it creates node pools leaves them to the
// next apply, which takes them up: two pools, none twice, none forgotten.
func TestAccProviderKilledInNodePoolCreation(t *testing.T) {
	const project = "acc-kill"
	d := acctest.Workspace(t, quickstartModule, project)
	first := start(t, d, "apply", "-auto-approve", "-no-color")
	first.until(t, "the first node pool of the slices", func() bool {
		_, ok := pools(t, project)["v5e-0"]
		return ok
	})
	if err := syscall.Kill(first.provider(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := first.ends(t, time.Minute); err == nil {
		t.Fatalf("the apply passed although its provider was killed:\n%s", first.out)
	}

	second, err := d.Output(t.Context(), "apply", "-auto-approve", "-no-color")
	if err != nil {
		t.Fatalf("the apply after the kill: %v\n%s", err, second)
	}
	want := map[string]containerpb.NodePool_Status{
		"system": containerpb.NodePool_RUNNING, "v5e-0": containerpb.NodePool_RUNNING, "v5e-1": containerpb.NodePool_RUNNING,
	}
	if got := pools(t, project); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("node pools after the second apply: %v, want %v", got, want)
	}
	planIsEmpty(t, d)
	destroy(t, d, project)
}

// Ctrl-C in each phase of an apply: it returns soon and says so, the next apply
// goes on from there, and in the end nothing is left.
func TestAccInterruptInEachPhase(t *testing.T) {
	const project = "acc-interrupt"
	d := acctest.Workspace(t, quickstartModule, project)
	for _, resource := range []string{
		"tpu_training_cluster.main", "tpu_slice_pool.v5e", "tpu_job_controllers.main", "tpu_training_jobset.train",
	} {
		r := start(t, d, "apply", "-auto-approve", "-no-color")
		r.until(t, resource+" being made", func() bool {
			return strings.Contains(r.out.String(), resource+": Creating...") || strings.Contains(r.out.String(), resource+": Modifying...")
		})
		if err := syscall.Kill(r.pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		took, err := r.ends(t, 30*time.Second)
		t.Logf("%s: interrupted apply returned after %v: %v", resource, took.Round(time.Millisecond), err)
		for _, bad := range []string{"panic", "rpc error", "Plugin did not respond", "goroutine ", "context canceled"} {
			if strings.Contains(r.out.String(), bad) {
				t.Errorf("%s: the interrupted apply shows %q:\n%s", resource, bad, r.out)
			}
		}
	}
	if out, err := d.Output(t.Context(), "apply", "-auto-approve", "-no-color"); err != nil {
		t.Fatalf("the apply after the interrupts: %v\n%s", err, out)
	}
	if got := pools(t, project); len(got) != 3 {
		t.Errorf("node pools after the interrupts: %v, want system, v5e-0, v5e-1", got)
	}
	planIsEmpty(t, d)
	destroy(t, d, project)
}

// Neither the state nor any log carries the token, and the logs of the
// sandbox's parts do not either.
func TestAccNoSecretInStateOrLogs(t *testing.T) {
	const project = "acc-secrets"
	d := acctest.Workspace(t, quickstartModule, project)
	log := filepath.Join(d.Path, "trace.log")
	d.Env = append(d.Env, "TF_LOG=TRACE", "TF_LOG_PATH="+log)
	var printed bytes.Buffer
	if err := d.Run(t.Context(), &printed, "apply", "-auto-approve", "-no-color"); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	secrets := secretsOf(t, acctest.Sandbox(t).Dir())
	secrets["token"] = acctest.Sandbox(t).Token()
	if len(secrets) < 2 {
		t.Fatalf("found only %d secrets: the test would prove nothing", len(secrets))
	}
	look := func(path string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for name, secret := range secrets {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s holds the %s", path, name)
			}
		}
	}
	look(filepath.Join(d.Path, "terraform.tfstate"))
	if info, err := os.Stat(log); err != nil || info.Size() < 10_000 {
		t.Fatalf("no trace to look at: %v", err)
	}
	look(log)
	logs := 0
	err := filepath.WalkDir(acctest.Sandbox(t).Dir(), func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".log") {
			logs++
			look(path)
		}
		return nil
	})
	if err != nil || logs < 5 {
		t.Fatalf("looked at %d logs of the sandbox: %v", logs, err)
	}
	destroy(t, d, project)
	look(filepath.Join(d.Path, "terraform.tfstate.backup"))
}

// secretsOf finds the private keys below dir: a line of each is enough to
// know it by. It also sees to it that nobody else can read them.
func secretsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Size() > 1<<20 {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		_, key, ok := strings.Cut(string(b), "PRIVATE KEY-----\n")
		if !ok {
			return nil
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s holds a private key and is readable by others: %v", path, info.Mode())
		}
		// The second line of PEM is random; the first begins like all others.
		if lines := strings.Split(key, "\n"); len(lines) > 2 {
			found["key in "+filepath.Base(path)] = lines[1]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func planIsEmpty(t *testing.T, d *tfrun.Dir, args ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd := d.Command(t.Context(), append([]string{"plan", "-detailed-exitcode", "-no-color"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("the plan is not empty (%v):\n%s", err, out.String())
	}
}

// destroy removes everything and sees to it that nothing is left.
func destroy(t *testing.T, d *tfrun.Dir, project string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if out, err := d.Output(ctx, "destroy", "-auto-approve", "-no-color"); err != nil {
		t.Fatalf("destroy: %v\n%s", err, out)
	}
	left, err := googleClient(t).ListClusters(ctx, &containerpb.ListClustersRequest{Parent: "projects/" + project + "/locations/-"})
	if err != nil || len(left.Clusters) != 0 {
		t.Errorf("left after destroy: %v, %v", left, err)
	}
	var state struct {
		Resources []json.RawMessage `json:"resources"`
	}
	b, err := os.ReadFile(filepath.Join(d.Path, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &state); err != nil || len(state.Resources) > 0 {
		t.Errorf("state after destroy holds %d resources: %v", len(state.Resources), err)
	}
}
