package jobs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// specFlags are a job as flags give it, over a job file.
type specFlags struct {
	jobFile                         string
	namespace, queue, priority      string
	accelerator, image, shell       string
	slices                          int
	env, envFile, envSecret, envMap []string
	files, settings                 []string
	outputDir, runID                string
	owner, experiment, note         string
	tags, labels, annotations       []string
	account                         string
	cpu, memory                     string
	maxRestarts                     int
	fatal                           []int32
	onPreemption                    string
	ttl, maxRunTime, grace          time.Duration
	name                            string
	argv                            []string
	flags                           *pflag.FlagSet
	reader                          jobfile.Reader

	lines jobfile.Lines // of the job file
	// aliases are those for settings beside the job file's; nil = none.
	aliases func() (map[string]string, error)
}

// add gives cmd the flags of a job.
func (o *specFlags) add(cmd *cobra.Command) {
	o.reader = jobfile.Reader{
		File:     func(name string) ([]byte, error) { return term.File(cmd.Context(), name) },
		Variable: os.LookupEnv,
	}
	f := cmd.Flags()
	o.flags = f
	f.StringVarP(&o.namespace, "namespace", "n", "", `the job's namespace (the context's by default, env TPU_NAMESPACE, "default")`)
	f.StringVar(&o.queue, "queue", "", `the queue to wait in; the namespace's only one by default, "none" to start at once`)
	f.StringVar(&o.priority, "priority", "", "the priority class, such as low, medium or high")
	f.StringVar(&o.accelerator, "accelerator", "", "the slice: a type name such as v5litepod-16, or v6e-4x4 (tpuctl accelerators lists them)")
	f.IntVar(&o.slices, "slices", 1, "how many slices")
	f.StringVar(&o.image, "image", "", "the container image")
	f.StringVar(&o.shell, "shell", "", "a script for the image's shell, instead of a command after --")
	f.StringArrayVar(&o.settings, "set", nil, "KEY=VALUE: an argument --KEY=VALUE, or what KEY is an alias of, by the job file or the context")
	f.StringArrayVarP(&o.env, "env", "e", nil, "NAME=VALUE for the program; NAME alone takes the value it has here")
	f.StringArrayVar(&o.envFile, "env-file", nil, "a file of NAME=VALUE lines, in Docker's format")
	f.StringArrayVar(&o.envSecret, "env-from-secret", nil, "every key of this Secret as a variable")
	f.StringArrayVar(&o.envMap, "env-from-configmap", nil, "every key of this ConfigMap as a variable")
	f.StringArrayVar(&o.files, "file", nil, "LOCAL=/PATH: a small file to have in the containers")
	f.StringVar(&o.outputDir, "output-dir", "", "where the program writes; it gets OUTPUT_DIR with the run id appended")
	f.StringVar(&o.runID, "run-id", "", "the run that this job is, or continues; the name by default")
	f.StringVar(&o.owner, "owner", "", "who submits it, as a label; the account in use by default")
	f.StringVar(&o.experiment, "experiment", "", "what it belongs to, as a label")
	f.Var(&once{value: &o.note}, "note", "a sentence about it")
	f.StringArrayVar(&o.tags, "tag", nil, "a word to find it by; several with commas")
	f.StringArrayVarP(&o.labels, "label", "l", nil, "KEY=VALUE: a further label")
	f.StringArrayVar(&o.annotations, "annotation", nil, "KEY=VALUE: a further annotation")
	f.StringVar(&o.account, "service-account", "", "the Kubernetes service account to run as")
	f.StringVar(&o.cpu, "cpu", "", "CPUs that each host's container asks for")
	f.StringVar(&o.memory, "memory", "", "memory that each host's container asks for, such as 100Gi")
	f.IntVar(&o.maxRestarts, "max-restarts", training.DefaultMaxRestarts, "crashes to forgive; a preempted host is never counted unless --on-preemption says so")
	f.Int32SliceVar(&o.fatal, "fatal-exit-codes", training.DefaultFatalExitCodes, "exit codes that fail the job at once; none when empty")
	f.StringVar(&o.onPreemption, "on-preemption", string(training.PreemptionRestarts), "what the loss of a host does: "+strings.Join(training.OnPreemptions, ", "))
	f.DurationVar(&o.ttl, "ttl", 0, "delete the job this long after its end")
	f.DurationVar(&o.maxRunTime, "max-run-time", 0, "fail it when it was admitted for longer")
	f.DurationVar(&o.grace, "grace-period", 0, "time between SIGTERM and SIGKILL (30s by default; a spot host gets about 15s)")
	_ = cmd.RegisterFlagCompletionFunc("on-preemption", cobra.FixedCompletions(training.OnPreemptions, cobra.ShellCompDirectiveNoFileComp))
}

// once is a text that is given once: of two, neither is meant more.
type once struct {
	value *string
	set   bool
}

// String implements pflag.Value.
func (o *once) String() string {
	if o.value == nil { // as pflag asks for the default of the type
		return ""
	}
	return *o.value
}

// Set implements pflag.Value.
func (o *once) Set(text string) error {
	if o.set {
		return fmt.Errorf("there is one before it, %q: leave one out", *o.value)
	}
	*o.value, o.set = text, true
	return nil
}

// Type names the value in help texts.
func (*once) Type() string { return "string" }

// addJobFile gives cmd the flag of a job file as well.
func (o *specFlags) addJobFile(cmd *cobra.Command) {
	cmd.Flags().VarP(&once{value: &o.jobFile}, "job-file", "f", "a job file (YAML; - is standard input); flags win")
	_ = cmd.MarkFlagFilename("job-file", "yaml", "yml")
}

// read takes what the arguments say: at most one name, and the program after
// --. what is how the command is called.
func (o *specFlags) read(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	names := args
	if dash >= 0 {
		names, o.argv = args[:dash], args[dash:]
		if len(o.argv) == 0 {
			return exit.Usagef("there is no command after --: leave -- out to run the image's own")
		}
	}
	if f := cmd.Flags().Lookup("dry-run"); f != nil && f.Changed {
		for _, name := range names {
			if name == dryClient || name == dryServer {
				return exit.Usagef("%q is not read as the value of --dry-run, which stands behind =: write --dry-run=%s", name, name)
			}
		}
	}
	switch {
	case len(names) == 0 && o.jobFile == "":
		return exit.Usagef("the job has no name: %s NAME [flags] [-- COMMAND...]", cmd.CommandPath())
	case len(names) > 1:
		return exit.Usagef("want one name, not %s: what the job runs comes after --, as in %s %s [flags] -- %s", strings.Join(names, " "), cmd.CommandPath(), names[0], strings.Join(names[1:], " "))
	case len(names) == 1:
		o.name = names[0]
	}
	return nil
}

// fileName is what messages call the job file.
func (o *specFlags) fileName() string {
	if o.jobFile == "-" {
		return "standard input"
	}
	return o.jobFile
}

// stringFlags and the keys of a job that they stand for.
func (o *specFlags) stringFlags(j *jobfile.Job) map[string]*string {
	return map[string]*string{
		"namespace": &j.Namespace, "queue": &j.Queue, "priority": &j.Priority, "accelerator": &j.Accelerator, "image": &j.Image,
		"output-dir": &j.OutputDir, "run-id": &j.RunID, "owner": &j.Owner, "experiment": &j.Experiment, "note": &j.Note, "service-account": &j.ServiceAccount,
	}
}

// flagOf maps settings of a training.Spec, as its errors name them, to flags
// that are called otherwise.
var flagOf = map[string]string{
	"name": "NAME", "command": "the command after --", "args": "the command after --",
	"annotations": "annotation", "labels": "label", "tags": "tag", "files": "file", "env_from": "env-from-secret",
	"ttl_after_finished": "ttl", "termination_grace_period": "grace-period",
	"restart_policy.max_restarts": "max-restarts", "restart_policy.fatal_exit_codes": "fatal-exit-codes", "restart_policy.on_preemption": "on-preemption",
	"resources.cpu": "cpu", "resources.memory": "memory", "resources": "cpu and --memory",
}

// refuse says what is wrong with a job in the words of the command line: by the
// flag, or by the line of the job file.
func (o *specFlags) refuse(err error) error {
	if err == nil {
		return nil
	}
	var problems []string
	for _, f := range training.FieldErrors(err) {
		problems = append(problems, o.where(f.Field)+": "+f.Problem)
	}
	if len(problems) == 0 {
		return &exit.UsageError{Err: err}
	}
	slices.Sort(problems)
	return exit.Usagef("%s", strings.Join(slices.Compact(problems), "\n"))
}

func (o *specFlags) where(field string) string {
	name, ok := flagOf[field]
	if !ok {
		name = strings.ReplaceAll(field, "_", "-")
	}
	given := o.flags != nil && o.flags.Changed(name) || field == "name" && o.name != ""
	if line := o.lines.Of(field); line > 0 && !given {
		return jobfile.At(o.fileName(), line, field)
	}
	if name == "NAME" && o.flags != nil && o.flags.Changed("name") { // of a job made from another
		return "--name"
	}
	if name == "NAME" || strings.Contains(name, " after ") {
		return name
	}
	return "--" + name
}
