package jobs

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
)

// job is the job of the file, if there is one, under the flags. It says of all
// of them what is wrong.
func (o *specFlags) job(in func() ([]byte, error)) (jobfile.Job, error) {
	if o.jobFile == "" {
		return o.over(jobfile.Job{})
	}
	reader, at := o.reader, o.jobFile
	if at == "-" {
		at = "stdin" // what it names is in the current folder
		reader.File = func(name string) ([]byte, error) {
			if name == "stdin" {
				return in()
			}
			return o.reader.File(name)
		}
	}
	job, lines, err := reader.Load(at, o.fileName())
	if err != nil {
		return job, &exit.UsageError{Err: fmt.Errorf("reading the job file: %w", err)}
	}
	o.lines = lines
	return o.over(job)
}

// over puts what the flags say over a job.
func (o *specFlags) over(j jobfile.Job) (jobfile.Job, error) {
	var problems []string
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	given := func(flag string) bool { return o.flags.Changed(flag) }
	for flag, key := range o.stringFlags(&j) {
		if given(flag) {
			*key = o.flags.Lookup(flag).Value.String()
		}
	}
	if o.name != "" {
		j.Name = o.name
	}
	if given("slices") {
		j.Slices = &o.slices
	}
	if len(o.argv) > 0 && given("shell") {
		bad("--shell: a script stands for the command after --: give one of them")
	}
	if given("shell") && strings.TrimSpace(o.shell) == "" { // of a variable that is not set, say: not the image's own command
		bad("--shell: the script is empty: leave --shell out to run the image's own command")
	}
	if given("shell") {
		j.Shell, j.Command, j.Args = o.shell, nil, nil
	}
	if len(o.argv) > 0 {
		j.Shell, j.Command, j.Args = "", o.argv, nil
	}
	j.Env = merged(j.Env, o.environment(bad))
	for flag, names := range map[string][]string{"env-from-secret": o.envSecret, "env-from-configmap": o.envMap} {
		if slices.Contains(names, "") {
			bad("--%s: it is empty; want a name", flag)
		}
	}
	for _, name := range o.envSecret {
		j.EnvFrom = append(j.EnvFrom, jobfile.EnvFrom{Secret: name})
	}
	for _, name := range o.envMap {
		j.EnvFrom = append(j.EnvFrom, jobfile.EnvFrom{ConfigMap: name})
	}
	j.Files = merged(j.Files, o.smallFiles(bad))
	j.Settings = merged(j.Settings, pairs("--set", o.settings, bad))
	j.Labels = merged(j.Labels, pairs("--label", o.labels, bad))
	j.Annotations = merged(j.Annotations, pairs("--annotation", o.annotations, bad))
	for _, tag := range words(o.tags) {
		if !slices.Contains(j.Tags, tag) {
			j.Tags = append(slices.Clip(j.Tags), tag)
		}
	}
	if len(j.Settings) > 0 && o.aliases != nil {
		own, err := o.aliases()
		if err != nil {
			return j, err
		}
		j.Aliases = merged(own, j.Aliases)
	}
	o.numbers(&j)
	if len(problems) > 0 {
		return j, exit.Usagef("%s", strings.Join(problems, "\n"))
	}
	return j, nil
}

// numbers puts quantities, times and the restart policy over a job.
func (o *specFlags) numbers(j *jobfile.Job) {
	given := o.flags.Changed
	if given("cpu") || given("memory") {
		var r jobfile.Resources
		if j.Resources != nil {
			r = *j.Resources
		}
		if given("cpu") {
			r.CPU = jobfile.Quantity(o.cpu)
		}
		if given("memory") {
			r.Memory = jobfile.Quantity(o.memory)
		}
		j.Resources = &r
	}
	if given("max-restarts") || given("fatal-exit-codes") || given("on-preemption") {
		var r jobfile.Restart
		if j.Restart != nil {
			r = *j.Restart
		}
		if given("max-restarts") {
			r.MaxRestarts = &o.maxRestarts
		}
		if given("fatal-exit-codes") {
			r.FatalExitCodes = append([]int32{}, o.fatal...)
		}
		if given("on-preemption") {
			r.OnPreemption = o.onPreemption
		}
		j.Restart = &r
	}
	for flag, key := range map[string]*jobfile.Duration{"ttl": &j.TTL, "max-run-time": &j.MaxRun, "grace-period": &j.Grace} {
		if given(flag) {
			d, _ := o.flags.GetDuration(flag)
			*key = jobfile.Duration(d.String())
		}
	}
}

// merged is a map with another over it.
func merged(under, over map[string]string) map[string]string {
	if len(over) == 0 {
		return under
	}
	out := maps.Clone(under)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, over)
	return out
}

func (o *specFlags) environment(bad func(string, ...any)) map[string]string {
	out := map[string]string{}
	for _, file := range o.envFile {
		env, err := o.reader.EnvFile(file)
		if err != nil {
			bad("--env-file: %v", err)
		}
		maps.Copy(out, env)
	}
	said := twice{}
	for _, e := range o.env {
		name, value, ok := strings.Cut(e, "=")
		if ok && name == "" {
			bad("--env: %q has no name before =; want NAME=VALUE", e)
			continue
		}
		if !ok {
			if value, ok = o.reader.Variable(name); !ok {
				bad("--env: %q has no value, and there is no such variable here: write %s=VALUE", e, e)
				continue
			}
		}
		said.check("--env", name, value, bad)
		out[name] = value
	}
	return out
}

func (o *specFlags) smallFiles(bad func(string, ...any)) map[string]string {
	out := map[string]string{}
	for _, arg := range o.files {
		local, to, ok := strings.Cut(arg, "=")
		if !ok || local == "" || !path.IsAbs(to) {
			bad("--file: %q; want LOCAL=/PATH, such as train.yaml=/etc/train/train.yaml", arg)
			continue
		}
		text, err := o.reader.SmallFile(local)
		if err != nil {
			bad("--file: %v", err)
			continue
		}
		if _, twice := out[to]; twice {
			bad("--file: two files for %s", to)
		}
		out[to] = text
	}
	return out
}

// words are those of a flag that takes several, by commas or by being repeated.
func words(args []string) []string {
	var all []string
	for _, arg := range args {
		all = append(all, strings.Split(arg, ",")...)
	}
	return all
}

// twice finds keys that a flag gives two values.
type twice map[string]string

func (t twice) check(flag, key, value string, bad func(string, ...any)) {
	if had, again := t[key]; again && had != value {
		bad("%s: %s is given twice, as %q and as %q: leave one out", flag, key, had, value)
	}
	t[key] = value
}

func pairs(flag string, args []string, bad func(string, ...any)) map[string]string {
	if len(args) == 0 {
		return nil
	}
	out, said := map[string]string{}, twice{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			bad("%s: %q; want KEY=VALUE", flag, arg)
			continue
		}
		said.check(flag, key, value, bad)
		out[key] = value
	}
	return out
}
