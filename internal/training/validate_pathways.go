package training

import (
	"maps"
	"slices"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
)

// maxFurtherJobs is how many jobs fit beside the job itself.
func (s Spec) maxFurtherJobs() int {
	if s.Pathways != nil {
		return maxFurtherJobs - 1
	}
	return maxFurtherJobs
}

func (s Spec) validatePathways(report report) {
	p := s.Pathways
	if p == nil {
		return
	}
	add := func(field, format string, args ...any) { report("pathways."+field, format, args...) }
	switch bucket, _, _ := strings.Cut(strings.TrimPrefix(p.Scratch, "gs://"), "/"); {
	case p.Scratch == "":
		add("scratch_location", "Pathways needs a folder in Cloud Storage, such as gs://BUCKET/pathways")
	case !strings.HasPrefix(p.Scratch, "gs://") || validBucket(bucket) != "":
		add("scratch_location", "%q is no folder in Cloud Storage: write gs://BUCKET or gs://BUCKET/FOLDER", p.Scratch)
	case strings.ContainsAny(p.Scratch, " \t\n"):
		add("scratch_location", "%q has a space in it", p.Scratch)
	}
	if s.Slice.Hosts > 0 && s.instanceType() == "" {
		report("accelerator", "Pathways does not run on %s (%s)", s.Slice.Name, s.Slice.MachineType)
	}
	if n := s.ContainersPerHost; n > 1 {
		report("containers_per_host", "%d; Pathways' server on each host has all its chips: leave it out", n)
	}
	for field, image := range map[string]string{"proxy_image": p.ProxyImage, "server_image": p.ServerImage, "colocated_python_image": p.ColocatedPython} {
		if image != strings.TrimSpace(image) {
			add(field, "%q starts or ends with a space", image)
		} else if image != "" && !imageReference.MatchString(image) {
			add(field, "%q: %s", image, notAnImage)
		}
	}
	args := map[string][]string{"proxy_args": p.ProxyArgs, "server_args": p.ServerArgs, "worker_args": p.WorkerArgs}
	for _, field := range slices.Sorted(maps.Keys(args)) {
		for _, arg := range args[field] {
			validateServerArg(func(format string, args ...any) { add(field, format, args...) }, arg)
		}
	}
	for field, r := range map[string]Resources{"proxy_resources": p.ProxyResources, "server_resources": p.ServerResources} {
		validateResources(func(_, format string, args ...any) { add(field, format, args...) }, "", r)
	}
	for _, key := range slices.Sorted(maps.Keys(p.HeadNodeSelector)) {
		for _, problem := range append(naming.Key(key), naming.LabelValue(p.HeadNodeSelector[key])...) {
			add("head_node_selector", "%s = %q: %s", key, p.HeadNodeSelector[key], problem)
		}
	}
	switch n := p.ElasticSlices; {
	case n < 0:
		add("elastic_slices", "%d; it cannot be negative", n)
	case n > max(s.Slices, 1):
		add("elastic_slices", "%d of %d slices", n, s.Slices)
	case n > 0 && s.Restart.OnPreemption != "" && s.Restart.OnPreemption != PreemptionRestarts:
		add("elastic_slices", "elastic slices are replaced while the program runs, and restart_policy.on_preemption = %q would never come to it: leave one of the two out", s.Restart.OnPreemption)
	}
	if n := p.MaxSliceRestarts; n < 0 || n > 1000000 {
		add("max_slice_restarts", "%d; want 1 to 1000000, or leave it out for %d", n, DefaultSliceRestarts)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if slices.Contains(pathwaysEnv, name) {
			report("env", "%s is set for every Pathways job: leave it out", name)
		}
	}
	if p.Headless {
		s.validateHeadless(report)
	}
}

// ownArgs are set from the job: by their names, what to use instead.
var ownArgs = map[string]string{
	"--gcs_scratch_location":     "use scratch_location",
	"--num_elastic_slices":       "use elastic_slices",
	"--instance_count":           "it follows from slices",
	"--instance_type":            "it follows from the accelerator",
	"--node_type":                "it is set already",
	"--server_port":              "clients and workers look for the server where it is",
	"--resource_manager_address": "it follows from the job's name",
}

func validateServerArg(add func(string, ...any), arg string) {
	name, _, _ := strings.Cut(arg, "=")
	switch {
	case strings.TrimSpace(arg) == "":
		add("an argument is empty")
	case ownArgs[name] != "":
		add("%s cannot be set here: %s", name, ownArgs[name])
	}
}

// validateHeadless refuses what only a program of the job's own would use.
func (s Spec) validateHeadless(report report) {
	useless := func(field string, set bool) {
		if set {
			report(field, "a headless job has no program of its own that would use it: leave it out, or set pathways.headless = false")
		}
	}
	useless("image", s.Image != "" && len(s.Jobs) == 0)
	useless("command", len(s.Command) > 0)
	useless("args", len(s.Args) > 0)
	useless("shell", s.Shell != "")
	useless("resources", s.Resources != (Resources{}))
	colocated := s.Pathways.ColocatedPython != ""
	useless("env", len(s.Env) > 0 && !colocated)
	useless("env_from", len(s.EnvFrom) > 0 && !colocated)
	useless("files", len(s.Files) > 0 && !colocated && len(s.Jobs) == 0)
	useless("volumes", len(s.Volumes) > 0 && !colocated && len(s.Jobs) == 0)
	for _, j := range s.Jobs {
		if j.Image == "" && s.Image == "" {
			report("jobs", "%s: it needs an image of its own, since a headless job has none", j.Name)
		}
	}
}
