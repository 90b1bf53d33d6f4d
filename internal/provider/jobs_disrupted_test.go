package provider_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// hostsDisrupted is what `tpuctl sandbox disrupt list` shows of the scene's
// cluster, host by host.
func (s jobsScene) hostsDisrupted() map[string]string {
	s.Helper()
	var all []struct{ Cluster, Host, Kind string }
	if err := json.Unmarshal([]byte(s.tpuctl("sandbox disrupt list -o json")), &all); err != nil {
		s.Fatal(err)
	}
	out := map[string]string{}
	for _, h := range all {
		if strings.HasPrefix(h.Cluster, "projects/"+s.project+"/") {
			out[h.Host] = h.Kind
		}
	}
	return out
}

// host is where the first host of a job's slice runs.
func (s jobsScene) host(job string, slice int) (node string) {
	s.Helper()
	settles(s.T, fmt.Sprintf("slice %d of %s runs", slice, job), func() error {
		var pods corev1.PodList
		if err := s.cl.List(s.Context(), &pods, client.InNamespace("vision"), client.MatchingLabels{
			"jobset.sigs.k8s.io/jobset-name": job, "jobset.sigs.k8s.io/job-index": fmt.Sprint(slice), "batch.kubernetes.io/job-completion-index": "0",
		}); err != nil {
			return err
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
				node = p.Spec.NodeName
				return nil
			}
		}
		return fmt.Errorf("no pod of %d does", len(pods.Items))
	})
	return node
}

// What happens to hosts and programs by tpuctl's sandbox commands, and what
// `tpuctl status` shows of it.
func (s jobsScene) disrupted(vars ...string) {
	s.apply(vars...)
	s.stands("made", "spot", training.Running)
	s.refused()
	on := "--cluster projects/" + s.project + "/locations/us-west4-a/clusters/main"
	ofJob := " -n vision " + on
	restarted := func(total, counted int) func(jobStatus) bool {
		return func(st jobStatus) bool { return st.Restarts.Total == total && st.Restarts.Counted == counted }
	}
	runs := func(total int) func(jobStatus) bool {
		return func(st jobStatus) bool { return restarted(total, 0)(st) && is(training.Running)(st) }
	}
	disrupt := func(kind string, slice int, flags string) string {
		s.Helper()
		host := s.host("spot", slice)
		if out := s.tpuctl("sandbox disrupt " + kind + " --job spot --slice " + strconv.Itoa(slice) + " --host-index 0" + ofJob + flags); !strings.HasPrefix(out, host+": "+kind+"\n") {
			s.Errorf("%s of slice %d, on %s, says %q", kind, slice, host, out)
		}
		return host
	}
	lasts := func(host, kind string) {
		s.Helper()
		if got := s.hostsDisrupted(); len(got) != 1 || got[host] != kind {
			s.Errorf("hosts to which something happened: %v, want %s: %s", got, host, kind)
		}
	}
	end := func(host string) {
		s.Helper()
		if out := s.tpuctl("sandbox disrupt end " + host); out != "Brought back 1 host.\n" {
			s.Errorf("bringing back %s says %q", host, out)
		}
	}
	over := func() {
		s.Helper()
		settles(s.T, "hosts are back by themselves", func() error {
			if got := s.hostsDisrupted(); len(got) > 0 {
				return fmt.Errorf("not %v", got)
			}
			return nil
		})
	}

	disrupt("evict", 1, "")
	s.becomes("spot", "restarts after an eviction", runs(1))

	host := s.host("spot", 0)
	if out := s.tpuctl("sandbox disrupt taint " + host + " " + on); !strings.HasPrefix(out, host+": taint\nBring it back:") {
		s.Errorf("a taint by the node's name says %q", out)
	}
	lasts(host, "taint")
	s.becomes("spot", "restarts after a taint, and lacks a host", func(st jobStatus) bool {
		return restarted(2, 0)(st) && !is(training.Running)(st) && st.Hosts.Ready < st.Hosts.Wanted
	})
	end(host)
	s.becomes("spot", "runs on the host that is back", runs(2))

	disrupt("preempt", 1, " --for 2s")
	s.becomes("spot", "restarts after a preemption, once its host is free", runs(3))
	over()
	disrupt("shutdown", 0, " --for 2s")
	s.becomes("spot", "restarts after a shutdown, once its host is back", runs(4))
	over()

	host = disrupt("lose", 1, "")
	lasts(host, "lose")
	s.becomes("spot", "lacks a host that is silent", func(st jobStatus) bool {
		return restarted(4, 0)(st) && st.State == string(training.Restarting) && st.Reason == "WaitForRecovery" && st.Hosts.Ready == 3
	})
	end(host)
	s.becomes("spot", "has its host again", runs(4))

	// Nobody misses the pods of a machine that is gone for the first 40 s: the
	// slice shows it, and its job goes on when it is back by then.
	host = disrupt("delete", 0, "")
	lasts(host, "delete")
	if found, err := s.cl.Fetch(s.Context(), &corev1.Node{ObjectMeta: named(host)}); err != nil || found {
		s.Errorf("the node of a machine that is gone: found %t, %v", found, err)
	}
	if out := s.tpuctl("slices -o json"); strings.Count(out, `"joined": 1,`) != 1 {
		s.Errorf("with a machine gone the slices are:\n%s", out)
	}
	end(host)
	s.becomes("spot", "runs on", is(training.Running))

	// Programs end.
	before := s.status("spot").Restarts
	if out := s.tpuctl("sandbox exit spot --slice 0 --code 1"+ofJob, "--log", "it broke"); strings.Count(out, "\n") != 2 || !strings.Contains(out, "with exit code 1") {
		s.Errorf("a crash says %q", out)
	}
	s.becomes("spot", "restarts after a crash, which is counted", func(st jobStatus) bool {
		return st.Restarts.Total == before.Total+1 && st.Restarts.Counted == 1 && is(training.Running)(st)
	})
	host = s.host("spot", 1)
	s.tpuctl("sandbox exit spot --slice 1 --host-index 0 --code 2"+ofJob, "--log", "usage: train.py [--steps N]")
	s.becomes("spot", "fails by a fatal exit code", func(st jobStatus) bool {
		return is(training.Failed)(st) && st.Reason == training.ReasonFatalExitCode
	})
	if got, want := s.status("spot").Message, "Slice 1, host 0 ("+host+") ended with exit code 2; it last said:\nusage: train.py [--steps N]"; !strings.HasSuffix(got, want) {
		s.Errorf("the job failed with %q, want %q", got, want)
	}
}

// What cannot happen is refused in words, whatever the command.
func (s jobsScene) refused() {
	on := " --cluster projects/" + s.project + "/locations/us-west4-a/clusters/main"
	for _, k := range []string{"evict", "taint", "preempt", "shutdown", "delete", "lose"} {
		for line, want := range map[string]string{
			k + " nowhere" + on:                             "there is no such host",
			k + " nowhere --cluster no-such-cluster":        "there is no cluster no-such-cluster; there are ",
			k + " --job nobody" + on:                        "no pod of it runs",
			k + " --job spot -n default" + on:               "no pod of it runs",
			k + " --job spot -n vision --slice 7" + on:      "no pod of it runs in slice 7",
			k + " --job spot -n vision --host-index 3" + on: "no pod of it runs on host 3",
			k + " " + s.controllersHost() + on:              "a controller; only hosts of jobs are disrupted",
		} {
			s.refuses("sandbox disrupt "+line, exit.Failure, want)
		}
		s.refuses("sandbox disrupt "+k, exit.Usage, "want one NODE, or --job")
		s.refuses("sandbox disrupt "+k+" a --slice 1", exit.Usage, "--slice")
		s.refuses("sandbox disrupt "+k+" --job spot --slice -2", exit.Usage, "--slice=-2")
		s.refuses("sandbox disrupt "+k+" --job spot --host-index -7", exit.Usage, "--host-index=-7")
	}
	s.refuses("sandbox disrupt evict a --for 3s", exit.Usage, "--for")
	s.refuses("sandbox disrupt lose a --for soon", exit.Usage, "soon")
	s.refuses("sandbox disrupt explode a", exit.Usage, "explode")
	s.refuses("sandbox disrupt end nowhere", exit.Failure, "nothing lasts on host nowhere")
	s.refuses("sandbox exit nobody --code 3"+on, exit.Failure, "no pod of it runs")
	s.refuses("sandbox exit spot -n vision --slice 2"+on, exit.Failure, "no pod of it runs in slice 2")
	s.refuses("sandbox exit spot --code 256", exit.Usage, "exit codes are 0 to 255")
	s.refuses("sandbox exit spot --slice -2", exit.Usage, "--slice=-2")
	if st := s.status("spot"); !is(training.Running)(st) || st.Restarts.Total != 0 {
		s.Errorf("after all that was refused the job is %+v", st)
	}
}

func (s jobsScene) refuses(line string, code int, want string) {
	s.Helper()
	out, err := s.try(line)
	if exit.Code(err) != code || !strings.Contains(fmt.Sprint(err), want) {
		s.Errorf("tpuctl %s: exit %d, %v, want exit %d, %q\n%s", line, exit.Code(err), err, code, want, out)
	}
}

// controllersHost is a node where a controller runs.
func (s jobsScene) controllersHost() string {
	s.Helper()
	var pods corev1.PodList
	if err := s.cl.List(s.Context(), &pods, client.InNamespace("kueue-system")); err != nil || len(pods.Items) == 0 {
		s.Fatalf("%d pods of Kueue: %v", len(pods.Items), err)
	}
	return pods.Items[0].Spec.NodeName
}
