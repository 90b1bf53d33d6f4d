package training

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
)

// report takes one problem of a setting.
type report = func(field, format string, args ...any)

// imageReference is what a kubelet can pull; the API server takes any text, and
// the pods would wait for ever.
var imageReference = regexp.MustCompile(`^(([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:]+\])(:[0-9]+)?/)?` + // registry
	`[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*` + // path
	`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9+._-]*:[0-9A-Fa-f]{32,})?$`)

const notAnImage = "no image can have this name: want REGISTRY/PATH:TAG, such as us-docker.pkg.dev/my-project/images/train:v1 or python:3.13, the path in lowercase letters"

// maxFileBytes is what a ConfigMap may hold.
const maxFileBytes = 1 << 20

func validateProgram(add report, at string, shell string, command, args []string) {
	if shell != "" && len(command)+len(args) > 0 {
		add(at+"shell", "a script stands for command and args: set one or the other")
	}
	if shell != "" && strings.TrimSpace(shell) == "" {
		add(at+"shell", "the script is empty")
	}
	if len(command) > 0 && strings.TrimSpace(command[0]) == "" {
		add(at+"command", "it begins with %q, which is no program: name one, or leave the command out to run the image's own", command[0])
	}
}

func validateEnvFrom(add report, at string, all []EnvSource) {
	for i, e := range all {
		where := fmt.Sprintf("element %d", i)
		switch {
		case (e.Secret == "") == (e.ConfigMap == ""):
			add(at+"env_from", "%s: set secret or config_map, one of the two", where)
		default:
			for _, problem := range naming.Object(e.Secret + e.ConfigMap) {
				add(at+"env_from", "%s: %q: %s", where, e.Secret+e.ConfigMap, problem)
			}
		}
		if e.Prefix != "" {
			for _, problem := range naming.Variable(e.Prefix) {
				add(at+"env_from", "%s: prefix %q: %s", where, e.Prefix, problem)
			}
		}
	}
}

// Kubernetes counts bytes and thousandths of a CPU.
func validateResources(add report, at string, r Resources) {
	for name, q := range map[string]*resource.Quantity{"cpu": r.CPU, "memory": r.Memory, "ephemeral_storage": r.EphemeralStorage} {
		field, bytes := at+"resources."+name, name != "cpu"
		switch {
		case q == nil:
		case q.Sign() <= 0:
			add(field, "%s = %s; ask for more than nothing, or leave it out", name, q)
		case bytes && q.MilliValue()%1000 != 0:
			add(field, "%s = %s is no whole number of bytes", name, q)
		case bytes && q.Cmp(leastBytes) < 0:
			add(field, "%s = %s are bytes, too few for any program: a unit is missing, as in %sGi", name, q, q)
		}
	}
}

// leastBytes is what no program runs with less of: who asks for less forgot the
// unit.
var leastBytes = resource.MustParse("1Mi")

// mountable says what is wrong with a path to mount something at, or "".
func mountable(p string) string {
	switch {
	case p == "":
		return "a path is needed"
	case !path.IsAbs(p):
		return "the path must start with /"
	case strings.Contains(p, ":"):
		return "a colon cannot be part of it"
	case path.Clean(p) != p:
		return "write it as " + path.Clean(p)
	case p == "/":
		return "that would hide the whole image"
	case p == "/dev/shm":
		return "every container has its shared memory there"
	}
	return ""
}

func (s Spec) validateStorage(add report) {
	taken := map[string]string{}
	mount := func(field, what, at string) {
		if problem := mountable(at); problem != "" {
			add(field, "%s: path %q: %s", what, at, problem)
			return
		}
		if other := taken[at]; other != "" {
			add(field, "%s: %s is there already (%s)", what, at, other)
		}
		taken[at] = what
	}
	size := 0
	for _, at := range s.filePaths() {
		mount("files", "file", at)
		size += len(s.Files[at])
	}
	if size > maxFileBytes {
		add("files", "%d bytes together; a ConfigMap holds %d. Put what is larger into a Cloud Storage bucket, and mount that (volumes)", size, maxFileBytes)
	}
	names := map[string]bool{}
	for _, v := range s.Volumes {
		what := fmt.Sprintf("volume %q", v.Name)
		for _, problem := range naming.Label(v.Name) {
			add("volumes", "%s: name: %s", what, problem)
		}
		if v.Name == volumeShm || v.Name == volumeFiles || strings.HasPrefix(v.Name, "gke-gcsfuse-") {
			add("volumes", "%s: another volume of every job has this name", what)
		}
		if names[v.Name] {
			add("volumes", "%s is listed twice", what)
		}
		names[v.Name] = true
		mount("volumes", what, v.Path)
		v.validate(func(format string, args ...any) { add("volumes", what+": "+format, args...) })
	}
}

func (v Volume) validate(add func(string, ...any)) {
	switch set := v.sources(); {
	case len(set) == 0:
		add("it says nothing about its storage: set one of %s", Sources)
	case len(set) > 1:
		add("it is several things at once (%s): set one of them", strings.Join(set, ", "))
	}
	if v.SubPath != "" && (path.IsAbs(v.SubPath) || slices.Contains(strings.Split(v.SubPath, "/"), "..")) {
		add("sub_path %q: a relative path without .. is wanted", v.SubPath)
	}
	for _, name := range []string{v.Claim, v.Secret, v.ConfigMap} {
		if name == "" {
			continue
		}
		for _, problem := range naming.Object(name) {
			add("%q: %s", name, problem)
		}
	}
	if b := v.Bucket; b != "" {
		switch {
		case strings.HasPrefix(b, "gs://"):
			add("bucket %q: write the name alone, without gs://", b)
		case strings.Contains(b, "/"):
			add("bucket %q: write the name alone; a folder of it is sub_path, or the mount option only-dir=FOLDER", b)
		case b != "_" && validBucket(b) != "": // _ is every bucket of the account
			add("bucket %q: %s", b, validBucket(b))
		}
	}
	if len(v.MountOptions) > 0 && v.Bucket == "" {
		add("mount_options are for a bucket")
	}
	if v.HostPath != "" && (!path.IsAbs(v.HostPath) || slices.Contains(strings.Split(v.HostPath, "/"), "..")) {
		add("host_path %q: an absolute path without .. is wanted", v.HostPath)
	}
	for name, q := range map[string]*resource.Quantity{"memory": v.Memory, "scratch": v.Scratch} {
		if q != nil && q.Sign() <= 0 {
			add("%s = %s; a size above 0 is wanted", name, q)
		}
	}
	if n := v.NFS; n != nil && (n.Server == "" || !path.IsAbs(n.Path)) {
		add("nfs needs a server and an absolute path")
	}
}

// validBucket says why no bucket can have a name, or "".
func validBucket(name string) string {
	const ends = "abcdefghijklmnopqrstuvwxyz0123456789"
	good := len(name) >= 3 && len(name) <= 222 && strings.Trim(name, ends+"-_.") == "" && strings.Contains(ends, name[:1]) && strings.Contains(ends, name[len(name)-1:])
	for part := range strings.SplitSeq(name, ".") {
		good = good && len(part) > 0 && len(part) <= 63
	}
	if !good {
		return "no bucket can have this name: 3 to 63 lowercase letters, digits, dashes and underscores, more in parts between dots, with a letter or digit at both ends"
	}
	return ""
}

// validateOutput checks the folder that runs write to: a path of the containers,
// a folder of Cloud Storage, or one of a kind that only the program knows.
func (s Spec) validateOutput(add report) {
	dir := s.OutputDir
	bucket, inBucket := strings.CutPrefix(dir, "gs://")
	bucket, _, _ = strings.Cut(bucket, "/")
	switch {
	case dir != strings.TrimSpace(dir):
		add("output_dir", "%q starts or ends with a space", dir)
	case inBucket && bucket == "":
		add("output_dir", "%q names no bucket: write gs://BUCKET or gs://BUCKET/FOLDER", dir)
	case inBucket && validBucket(bucket) != "":
		add("output_dir", "%q: bucket %q: %s", dir, bucket, validBucket(bucket))
	case !inBucket && strings.HasPrefix(strings.ToLower(dir), "gs:"):
		add("output_dir", "%q is no folder in Cloud Storage: write gs://BUCKET or gs://BUCKET/FOLDER", dir)
	}
}

func (s Spec) validateJobs(add report) {
	if n, most := len(s.Jobs), s.maxFurtherJobs(); n > most {
		add("jobs", "%d further jobs; beside the job itself Kueue takes %d", n, most)
	}
	byName := map[string]Job{SliceJob: {Name: SliceJob, DependsOn: s.DependsOn}}
	if s.Pathways != nil {
		byName[HeadJob] = Job{Name: HeadJob, DependsOn: s.DependsOn}
		byName[SliceJob] = Job{Name: SliceJob}
	}
	for _, j := range s.Jobs {
		problem := func(_, format string, args ...any) { add("jobs", "%s: "+format, append([]any{j.Name}, args...)...) }
		if problems := naming.Job(j.Name); len(problems) > 0 {
			add("jobs", "%q cannot name a job: %s", j.Name, strings.Join(problems, "; "))
		}
		if _, there := byName[j.Name]; there {
			what := "it is listed twice"
			switch {
			case j.Name == SliceJob:
				what = "that is the main job's name"
			case j.Name == HeadJob && s.Pathways != nil:
				what = "that is the name of the head of a Pathways job"
			}
			problem("", "%s", what)
		}
		byName[j.Name] = j
		j.validate(problem)
		for name := range j.Env {
			for _, p := range naming.Variable(name) {
				problem("", "env %q: %s", name, p)
			}
			if name == EnvRunID || name == EnvAttempt || name == EnvFirstAttempt || name == EnvOutputDir {
				problem("", "env %s is set for every job", name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		field, what := "jobs", name+" depends on "
		if name == s.deciding() {
			field, what = "starts_after", "the main job depends on "
		}
		seen := map[string]bool{}
		for _, d := range byName[name].DependsOn {
			_, there := byName[d.Job]
			switch {
			case d.Job == name:
				add(field, "%sitself", what)
			case !there:
				add(field, "%s%q, which is no job here: there are %s", what, d.Job, strings.Join(slices.Sorted(maps.Keys(byName)), ", "))
			case seen[d.Job]:
				add(field, "%s%s twice", what, d.Job)
			case d.Until != UntilReady && d.Until != UntilComplete:
				add(field, "%s%s until %q; want ready or complete", what, d.Job, d.Until)
			case (d.Job == SliceJob || d.Job == s.deciding()) && d.Until == UntilComplete:
				add(field, "%sthe end of the main job, and would never start: when the main job ends, all end. Depend on its being ready", what)
			case d.Until == UntilComplete && byName[d.Job].OnFailure != FailureFails && byName[d.Job].OnFailure != FailureRestarts:
				add(field, "%sthe end of %s, whose failures are retried for ever: set its on_failure to fail or restart", what, d.Job)
			}
			seen[d.Job] = true
		}
		if n := len(byName[name].DependsOn); n > maxDependencies {
			add(field, "%s%d jobs; JobSet takes %d", what, n, maxDependencies)
		}
	}
	if circle := circle(byName); circle != "" {
		add("jobs", "they wait for each other: %s", circle)
	}
}

func (j Job) validate(add report) {
	if j.Pods < 1 {
		add("", "pods = %d; it needs at least one", j.Pods)
	} else if j.Pods > 10000 {
		add("", "pods = %d; at most 10000", j.Pods)
	}
	validateProgram(add, "", j.Shell, j.Command, j.Args)
	validateEnvFrom(add, "", j.EnvFrom)
	validateResources(add, "", j.Resources)
	if j.Image != strings.TrimSpace(j.Image) {
		add("", "image %q starts or ends with a space", j.Image)
	} else if j.Image != "" && !imageReference.MatchString(j.Image) {
		add("", "image %q: %s", j.Image, notAnImage)
	}
	if !slices.Contains(OnFailures, string(j.OnFailure)) && j.OnFailure != "" {
		add("", "on_failure = %q; want %s", j.OnFailure, strings.Join(OnFailures, ", "))
	}
	for key, value := range j.NodeSelector {
		for _, problem := range append(naming.Key(key), naming.LabelValue(value)...) {
			add("", "node_selector %s = %q: %s", key, value, problem)
		}
	}
}

// circle finds jobs that depend on each other, or "".
func circle(all map[string]Job) string {
	done := map[string]bool{}
	var visit func(name string, path []string) string
	visit = func(name string, trail []string) string {
		if i := slices.Index(trail, name); i >= 0 {
			return strings.Join(append(trail[i:], name), " -> ")
		}
		if done[name] {
			return ""
		}
		for _, d := range all[name].DependsOn {
			if d.Job == name {
				continue // said already
			}
			if found := visit(d.Job, append(slices.Clone(trail), name)); found != "" {
				return found
			}
		}
		done[name] = true
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if found := visit(name, nil); found != "" {
			return found
		}
	}
	return ""
}
