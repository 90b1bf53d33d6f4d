package jobs

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// specFlags are a job as flags give it.
type specFlags struct {
	namespace, queue, priority      string
	accelerator, image, shell       string
	slices                          int
	env, envFile, envSecret, envMap []string
	files                           []string
	outputDir, runID                string
	owner, experiment, note         string
	labels, annotations             []string
	account                         string
	cpu, memory                     string
	maxRestarts                     int
	fatal                           []int32
	onPreemption                    string
	ttl, maxRunTime, grace          time.Duration
	hasTTL, hasMaxRunTime, hasGrace bool
	name                            string
	argv                            []string
	lookupEnv                       func(string) (string, bool)
	readFile                        func(string) ([]byte, error)
}

// annotationNote is where --note goes.
const annotationNote = "tpu-training.github.io/note"

// flagOf maps settings of a training.Spec, as its errors name them, to flags
// that are called otherwise.
var flagOf = map[string]string{
	"name": "NAME", "command": "the command after --", "args": "the command after --",
	"annotations": "annotation", "labels": "label", "files": "file", "env_from": "env-from-secret",
	"ttl_after_finished": "ttl", "termination_grace_period": "grace-period",
}

func (o *specFlags) add(cmd *cobra.Command) {
	o.lookupEnv, o.readFile = os.LookupEnv, os.ReadFile
	f := cmd.Flags()
	f.StringVarP(&o.namespace, "namespace", "n", "", `the job's namespace (env TPU_NAMESPACE; "default" by default)`)
	f.StringVar(&o.queue, "queue", "", `the queue to wait in; the namespace's only one by default, "none" to start at once`)
	f.StringVar(&o.priority, "priority", "", "the priority class, such as low, medium or high")
	f.StringVar(&o.accelerator, "accelerator", "", "the slice: a type name such as v5litepod-16, or v6e-4x4 (tpuctl accelerators lists them)")
	f.IntVar(&o.slices, "slices", 1, "how many slices")
	f.StringVar(&o.image, "image", "", "the container image")
	f.StringVar(&o.shell, "shell", "", "a script for the image's shell, instead of a command after --")
	f.StringArrayVarP(&o.env, "env", "e", nil, "NAME=VALUE for the program; NAME alone takes the value it has here")
	f.StringArrayVar(&o.envFile, "env-file", nil, "a file of NAME=VALUE lines; # begins a comment line")
	f.StringArrayVar(&o.envSecret, "env-from-secret", nil, "every key of this Secret as a variable")
	f.StringArrayVar(&o.envMap, "env-from-configmap", nil, "every key of this ConfigMap as a variable")
	f.StringArrayVar(&o.files, "file", nil, "LOCAL=/PATH: a small file to have in the containers")
	f.StringVar(&o.outputDir, "output-dir", "", "where the program writes; it gets OUTPUT_DIR with the run id appended")
	f.StringVar(&o.runID, "run-id", "", "the run that this job is, or continues; the name by default")
	f.StringVar(&o.owner, "owner", "", "who submits it, as a label")
	f.StringVar(&o.experiment, "experiment", "", "what it belongs to, as a label")
	f.StringVar(&o.note, "note", "", "a sentence about it")
	f.StringArrayVarP(&o.labels, "label", "l", nil, "KEY=VALUE: a further label")
	f.StringArrayVar(&o.annotations, "annotation", nil, "KEY=VALUE: a further annotation")
	f.StringVar(&o.account, "service-account", "", "the Kubernetes service account to run as")
	f.StringVar(&o.cpu, "cpu", "", "CPUs that each host's container asks for")
	f.StringVar(&o.memory, "memory", "", "memory that each host's container asks for, such as 100Gi")
	f.IntVar(&o.maxRestarts, "max-restarts", training.DefaultMaxRestarts, "crashes to forgive; a preempted host is never counted unless --on-preemption says so")
	f.Int32SliceVar(&o.fatal, "fatal-exit-codes", training.DefaultFatalExitCodes, "exit codes that fail the job at once")
	f.StringVar(&o.onPreemption, "on-preemption", string(training.PreemptionRestarts), "what the loss of a host does: "+strings.Join(training.OnPreemptions, ", "))
	f.DurationVar(&o.ttl, "ttl", 0, "delete the job this long after its end")
	f.DurationVar(&o.maxRunTime, "max-run-time", 0, "fail it when it was admitted for longer")
	f.DurationVar(&o.grace, "grace-period", 0, "time between SIGTERM and SIGKILL (30s by default; a spot host gets about 15s)")
	_ = cmd.RegisterFlagCompletionFunc("on-preemption", cobra.FixedCompletions(training.OnPreemptions, cobra.ShellCompDirectiveNoFileComp))
}

// read takes what arguments and flags say beyond the flags' own variables.
func (o *specFlags) read(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	names := args
	if dash >= 0 {
		names, o.argv = args[:dash], args[dash:]
		if len(o.argv) == 0 {
			return exit.Usagef("there is no command after --: leave -- out to run the image's own")
		}
	}
	switch {
	case len(names) == 0:
		return exit.Usagef("the job has no name: tpuctl submit NAME [flags] [-- COMMAND...]")
	case len(names) > 1:
		return exit.Usagef("want one name, not %s: what the job runs comes after --, as in tpuctl submit %s [flags] -- %s", strings.Join(names, " "), names[0], strings.Join(names[1:], " "))
	}
	o.name = names[0]
	f := cmd.Flags()
	o.hasTTL, o.hasMaxRunTime, o.hasGrace = f.Changed("ttl"), f.Changed("max-run-time"), f.Changed("grace-period")
	return nil
}

// spec makes the job of the flags, and says of all of them what is wrong. The
// queue may still be open.
func (o *specFlags) spec() (training.Spec, error) {
	var problems []string
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	s := training.Spec{
		Namespace: o.namespace, Name: o.name, Queue: o.queue, Priority: o.priority, Slices: o.slices, Image: o.image, Shell: o.shell, Command: o.argv,
		RunID: o.runID, OutputDir: o.outputDir, Owner: o.owner, Experiment: o.experiment, ServiceAccount: o.account,
		Restart: training.RestartPolicy{MaxRestarts: o.maxRestarts, FatalExitCodes: o.fatal, OnPreemption: training.OnPreemption(o.onPreemption)},
	}
	if s.Restart.OnPreemption == training.PreemptionRestarts {
		s.Restart.OnPreemption = ""
	}
	switch slice, err := accelerator.Resolve(o.accelerator); {
	case o.accelerator == "":
		bad("--accelerator is missing: a type name such as v5litepod-16; tpuctl accelerators lists them")
	case err != nil:
		bad("--accelerator: %v", err)
	default:
		s.Slice = slice
	}
	s.Env = o.environment(bad)
	for _, name := range o.envSecret {
		s.EnvFrom = append(s.EnvFrom, training.EnvSource{Secret: name})
	}
	for _, name := range o.envMap {
		s.EnvFrom = append(s.EnvFrom, training.EnvSource{ConfigMap: name})
	}
	s.Files = o.smallFiles(bad)
	s.Labels, s.Annotations = pairs("--label", o.labels, bad), pairs("--annotation", o.annotations, bad)
	if o.note != "" {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[annotationNote] = o.note
	}
	s.Resources.CPU, s.Resources.Memory = quantity("--cpu", o.cpu, bad), quantity("--memory", o.memory, bad)
	given := func(d *time.Duration, given bool) *time.Duration {
		if !given {
			return nil
		}
		return d
	}
	s.TTL, s.MaxRunTime, s.GracePeriod = given(&o.ttl, o.hasTTL), given(&o.maxRunTime, o.hasMaxRunTime), given(&o.grace, o.hasGrace)
	if len(problems) > 0 {
		return s, exit.Usagef("%s", strings.Join(problems, "\n"))
	}
	return s, nil
}

// check is Spec.Validate in the words of the command line.
func check(s training.Spec) error {
	err := s.Validate()
	if err == nil {
		return nil
	}
	var problems []string
	for _, f := range training.FieldErrors(err) {
		name, ok := flagOf[f.Field]
		if !ok {
			name = strings.ReplaceAll(f.Field, "_", "-")
		}
		if !strings.Contains(name, " ") && name != "NAME" {
			name = "--" + name
		}
		problems = append(problems, name+": "+f.Problem)
	}
	if len(problems) == 0 {
		return &exit.UsageError{Err: err}
	}
	return exit.Usagef("%s", strings.Join(problems, "\n"))
}

func (o *specFlags) environment(bad func(string, ...any)) map[string]string {
	out := map[string]string{}
	take := func(where, line string) {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			if value, ok = o.lookupEnv(name); !ok {
				bad("%s: %q has no value, and there is no such variable here: write %s=VALUE", where, line, line)
				return
			}
		}
		out[name] = value
	}
	for _, file := range o.envFile {
		data, err := o.readFile(file)
		if err != nil {
			bad("--env-file: %v", err)
			continue
		}
		for i, line := range strings.Split(string(data), "\n") {
			line = strings.TrimSuffix(line, "\r")
			if trimmed := strings.TrimSpace(line); trimmed == "" || strings.HasPrefix(trimmed, "#") {
				continue
			}
			take(fmt.Sprintf("--env-file %s, line %d", file, i+1), line)
		}
	}
	for _, e := range o.env {
		take("--env", e)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (o *specFlags) smallFiles(bad func(string, ...any)) map[string]string {
	if len(o.files) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, arg := range o.files {
		local, to, ok := strings.Cut(arg, "=")
		if !ok || local == "" || !path.IsAbs(to) {
			bad("--file: %q; want LOCAL=/PATH, such as train.yaml=/etc/train/train.yaml", arg)
			continue
		}
		data, err := o.readFile(local)
		if err != nil {
			bad("--file: %v", err)
			continue
		}
		if _, twice := out[to]; twice {
			bad("--file: two files for %s", to)
		}
		out[to] = string(data)
	}
	return out
}

func pairs(flag string, args []string, bad func(string, ...any)) map[string]string {
	if len(args) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			bad("%s: %q; want KEY=VALUE", flag, arg)
			continue
		}
		out[key] = value
	}
	return out
}

func quantity(flag, text string, bad func(string, ...any)) *resource.Quantity {
	if text == "" {
		return nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		bad("%s: %q; want a quantity such as 4 or 100Gi", flag, text)
		return nil
	}
	return &q
}

// queueNone is what --queue says of a job that waits for no quota.
const queueNone = "none"

// chooseQueue settles the queue of a job that names none: the namespace's only
// one.
func chooseQueue(namespace string, queues []string) (string, error) {
	switch len(queues) {
	case 1:
		return queues[0], nil
	case 0:
		return "", exit.Usagef("namespace %s has no queue (tpu_kueue_queue makes one that lists the namespace): choose another --namespace, or start the job at once with --queue %s", namespace, queueNone)
	}
	return "", exit.Usagef("namespace %s has %d queues, %s: name one with --queue", namespace, len(queues), strings.Join(slices.Sorted(slices.Values(queues)), ", "))
}
