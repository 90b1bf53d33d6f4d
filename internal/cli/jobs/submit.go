package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
	"github.com/tpu-training/terraform-provider-tpu/internal/preflight"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// submission is what commands share that submit a job.
type submission struct {
	Deps
	specFlags
	target  target.Options
	format  output.Format
	dryRun  string
	replace bool
	suffix  bool
	unasked bool // without a preflight
	fate    fate
	found   *training.Run // this very job, where it was there already
	// then follows a job that was submitted, instead of telling of it.
	then func(ctx context.Context, cluster Cluster, spec training.Spec, what string) error
}

// The rehearsals that --dry-run knows.
const (
	dryClient = "client"
	dryServer = "server"
)

// maxSuffix bounds --suffix.
const maxSuffix = 99

func newSubmit(d Deps) *cobra.Command {
	o := &submission{Deps: d}
	cmd := &cobra.Command{
		Use:   "submit [NAME] --accelerator SLICE --image IMAGE [flags] [-- COMMAND...]",
		Short: "Submit a training job",
		Long: `Submit a training job: the same program on every host of a number of slices. What
stands after -- is the program with its arguments, as it is; --shell runs a
script instead, and without either the image's own command runs.

A job file (-f) says the same in YAML, with the arguments of the resource
tpu_training_jobset as keys, and what no flag says: storage, further jobs,
placement, Pathways. Flags win over it. Its JSON schema is docs/job.schema.json.
--set KEY=VALUE adds an argument --KEY=VALUE to the command, or what KEY is an
alias of: in the file, else in the context (tpuctl config set --alias).

The program finds RUN_ID, ATTEMPT (0 and up, over restarts) and, with
--output-dir, OUTPUT_DIR in its environment.

Submitting the same job again changes nothing and says so. A name that another
job has is refused, unless --suffix chooses a free one (NAME-2, NAME-3, ...) or
--replace deletes the other job first. With --suffix each submission is a job of
its own: look at tpuctl list before repeating one that was killed. When the command is interrupted, it says
whether the job is there.

Before it submits, the command looks whether anything is in the way: the
namespace, the controllers, the queue and its quota, the priority class, the
service account, Secrets, ConfigMaps and claims that the job names, another job
at the same run, the image, the bucket of --output-dir, and slices of that
shape. What could never run is not submitted; what cannot be asked is said, and
holds nothing up. --skip-preflight looks at nothing of it and changes nothing
else.

--dry-run=client, or --dry-run alone, prints the JobSet without asking any
server; --dry-run=server prints it as the cluster's webhooks accept it. Neither
keeps anything. With -o hcl either prints the job as a resource
tpu_training_jobset of Terraform.`,
		Example: `  tpuctl submit train --accelerator v5litepod-16 --slices 2 --image python:3.13 -- python -c 'print(1)'
  tpuctl submit sweep-1 -n vision --queue research --accelerator v6e-8 --image my/image \
      --env LR=3e-4 --env-from-secret wandb --shell 'python train.py | tee /tmp/log'
  tpuctl submit -f job.yaml --set lr=1e-4 --slices 4
  tpuctl submit train --accelerator v5p-128 --image my/image --queue research --dry-run=client`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.start(cmd, args, o.run) },
	}
	o.add(cmd)
	o.addJobFile(cmd)
	o.addTaken(cmd)
	o.addDryRun(cmd)
	output.AddFlag(cmd, &o.format, output.HCL)
	return cmd
}

// addTaken gives cmd the flags of every submission: what to do about a name that
// is taken, and where to.
func (o *submission) addTaken(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.replace, "replace", false, "delete the job that has the name first")
	f.BoolVar(&o.suffix, "suffix", false, "number the name when it is taken")
	f.BoolVar(&o.unasked, "skip-preflight", false, "submit without looking first whether anything is in the way")
	o.target.AddFlags(cmd)
	completeNames(cmd, &o.target, &o.namespace)
}

func (o *submission) addDryRun(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dryRun, "dry-run", "", "=client or =server: print the JobSet and keep nothing")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = dryClient
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryClient, dryServer}, cobra.ShellCompDirectiveNoFileComp))
}

// start begins a submission: it reads the arguments, carries do out, and closes.
func (o *submission) start(cmd *cobra.Command, args []string, do func(context.Context) error) error {
	if err := o.read(cmd, args); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.Aliases != nil {
		o.aliases = func() (map[string]string, error) { return o.Aliases(o.target) }
	}
	return o.closing(cmd.Context(), do)
}

// check refuses what cannot be meant.
func (o *submission) check() error {
	switch {
	case (o.dryRun != "" || o.flags.Changed("dry-run")) && o.dryRun != dryClient && o.dryRun != dryServer: // an empty variable, too: nothing is to be submitted by mistake
		return exit.Usagef("--dry-run: %q; want %s or %s", o.dryRun, dryClient, dryServer)
	case o.replace && o.suffix:
		return exit.Usagef("--replace takes the name and --suffix another one: give one of them")
	case o.format == output.HCL && o.dryRun == "":
		return exit.Usagef("-o %s prints the job for Terraform, which would find it taken: add --dry-run=%s or --dry-run=%s, which submit nothing", output.HCL, dryClient, dryServer)
	}
	return nil
}

func (o *submission) run(ctx context.Context) error {
	job, err := o.job(func() ([]byte, error) { return o.Streams.Input(ctx) })
	if err != nil {
		return err
	}
	if err := o.inContext(o.target, &job.Namespace); err != nil {
		return err
	}
	job.Namespace = cmp.Or(job.Namespace, os.Getenv("TPU_NAMESPACE"), "default")
	// Before any server is asked; what the queue is does not matter for the rest.
	spec, err := job.Spec()
	if err := o.refuse(err); err != nil {
		return err
	}
	o.fate.name = spec.Namespace + "/" + spec.Name
	if spec.Owner == "" {
		spec.Owner = jobfile.OwnerOf(o.whose(ctx, o.target))
	}
	open := job.Queue == ""
	if o.dryRun == dryClient {
		if open {
			return exit.Usagef("--dry-run=%s asks no server which queues there are: name one with --queue, or --queue %s", dryClient, jobfile.QueueNone)
		}
		return o.print(spec, spec.JobSet())
	}
	cluster, err := o.Open(ctx, o.target)
	if err != nil {
		return err
	}
	if open {
		if spec.Queue, err = o.onlyQueue(ctx, cluster, spec); err != nil {
			return err
		}
	}
	if err := o.look(ctx, cluster, &spec); err != nil {
		return err
	}
	return o.submit(ctx, cluster, spec)
}

// look does what is left to do before a submission, all at once: it finds whose
// job it is where only the cluster knows, and asks whether anything is in the
// job's way. A job that is there already has had its way.
func (o *submission) look(ctx context.Context, cluster Cluster, spec *training.Spec) error {
	var tasks sync.WaitGroup
	owner, before := spec.Owner, o.asNamed(*spec)
	if owner == "" {
		tasks.Go(func() {
			account, err := cluster.Account(ctx)
			if err != nil { // an old cluster, or one that fails the submission too
				hclog.FromContext(ctx).Debug("the job gets no owner", "error", err)
			}
			owner = jobfile.OwnerOf(account)
		})
	}
	var items []preflight.Item
	if !o.unasked {
		tasks.Go(func() { items = cluster.Preflight(ctx, before) })
	}
	tasks.Wait()
	spec.Owner = owner
	stops := preflight.Stops(items)
	if len(stops) == 0 {
		o.tell(items)
		return nil
	}
	if had, err := cluster.Get(ctx, spec.Namespace, spec.Name); err == nil && had.Annotations[training.AnnotationSpecHash] == spec.Hash() && !o.replace && !o.suffix {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	o.tell(items)
	return &blockedError{spec.Namespace + "/" + spec.Name, " (--skip-preflight submits it all the same)", items}
}

// asNamed is the job as a preflight looks at its run. A job that writes to a
// folder is at the run of its own name, too; one whose name is still to be
// numbered is none that is there.
func (o *submission) asNamed(spec training.Spec) training.Spec {
	switch {
	case o.suffix:
		spec.Name = ""
	case spec.RunID == "" && spec.OutputDir != "":
		spec.RunID = spec.Name
	}
	return spec
}

// onlyQueue is the queue of a job that names none. That there is none may come of
// a namespace that there is not, which is said instead.
func (o *submission) onlyQueue(ctx context.Context, cluster Cluster, spec training.Spec) (string, error) {
	queues, err := cluster.Queues(ctx, spec.Namespace)
	if err != nil {
		return "", err
	}
	if len(queues) == 0 {
		items := cluster.Namespace(ctx, spec.Namespace)
		if stops := preflight.Stops(items); len(stops) > 0 && ctx.Err() == nil {
			o.tell(items)
			return "", &blockedError{job: spec.Namespace + "/" + spec.Name, items: items}
		}
	}
	return chooseQueue(spec.Namespace, queues)
}

// chooseQueue settles the queue of a job that names none: the namespace's only
// one.
func chooseQueue(namespace string, queues []string) (string, error) {
	switch len(queues) {
	case 1:
		return queues[0], nil
	case 0:
		return "", exit.Usagef("namespace %s has no queue (tpu_kueue_queue makes one that lists the namespace): choose another --namespace, or start the job at once with --queue %s", namespace, jobfile.QueueNone)
	}
	return "", exit.Usagef("namespace %s has %d queues, %s: name one with --queue", namespace, len(queues), strings.Join(slices.Sorted(slices.Values(queues)), ", "))
}

func (o *submission) submit(ctx context.Context, cluster Cluster, spec training.Spec) error {
	name := spec.Name
	for n := 2; ; n++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		o.fate.cluster, o.fate.spec = cluster, spec
		js, err := cluster.Submit(ctx, spec, o.dryRun == dryServer)
		taken := new(training.ExistsError)
		switch {
		case err == nil && o.dryRun == dryServer:
			return o.print(spec, js)
		case err == nil:
			o.fate.there = "was created"
			return o.submitted(ctx, cluster, spec, "Submitted")
		case ctx.Err() != nil:
			return err
		case !errors.As(err, &taken):
			return err
		case o.replace && o.dryRun == "":
			if err := o.remove(ctx, cluster, spec); err != nil {
				return err
			}
			o.replace = false // once: who takes the name meanwhile is somebody else
		case o.suffix && n <= maxSuffix:
			spec.Name = fmt.Sprintf("%s-%d", name, n)
			if err := o.refuse(spec.Validate()); err != nil {
				return err
			}
		case taken.Same:
			o.fate.there = "was there already"
			if had, err := cluster.Get(ctx, spec.Namespace, spec.Name); err == nil {
				o.found = &had
			}
			return o.submitted(ctx, cluster, spec, "Unchanged: there is already")
		case o.replace:
			return fmt.Errorf("%w: --dry-run=%s cannot have it checked under a name that is taken, and deletes nothing; --dry-run=%s prints it", err, dryServer, dryClient)
		default:
			return o.exists(ctx, cluster, spec, err)
		}
	}
}

// remove deletes the job that has the name, whichever that is now.
func (o *submission) remove(ctx context.Context, cluster Cluster, spec training.Spec) error {
	had, err := cluster.Get(ctx, spec.Namespace, spec.Name)
	if missing := new(training.NotFoundError); errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.format != output.JSON {
		fmt.Fprintf(o.Streams.Err, "Deleting %s/%s (%s)\n", had.Namespace, had.Name, had.State)
	}
	err = cluster.Delete(ctx, had.Namespace, had.Name, had.UID)
	if err == nil {
		o.fate.deleted = pathOf(had)
	}
	return err
}

// exists says what has the name, and what can be done. A rehearsal has not looked
// yet whether it is this very job.
func (o *submission) exists(ctx context.Context, cluster Cluster, spec training.Spec, err error) error {
	state := ""
	if had, err := cluster.Get(ctx, spec.Namespace, spec.Name); err == nil {
		if o.dryRun != "" && had.Annotations[training.AnnotationSpecHash] == spec.Hash() {
			o.found = &had
			return o.submitted(ctx, cluster, spec, "Unchanged: there is already")
		}
		state = fmt.Sprintf(", made from another specification (%s)", had.State)
	}
	return fmt.Errorf("%w%s; nothing was changed.\nChoose another name, or --suffix to have it numbered, or --replace to delete that job first", err, state)
}

// submittedLine is the one line that says what was submitted, and where to. Of a
// job that was there already it says also its state and, where nothing more comes
// of it, how it is run again.
func (o *submission) submittedLine(what string, spec training.Spec) string {
	line := fmt.Sprintf("%s %s/%s: %d x %s", what, spec.Namespace, spec.Name, spec.Slices, spec.Slice.Name)
	if spec.Queue != "" {
		line += " in queue " + spec.Queue
	}
	if o.found == nil {
		return line
	}
	line += fmt.Sprintf(" (%s)", o.found.State)
	if o.found.Over() {
		line += "\nIt has ended: tpuctl rerun " + pathOf(*o.found) + " runs it again"
	}
	return line
}

// submitted tells of the job that is there now.
func (o *submission) submitted(ctx context.Context, cluster Cluster, spec training.Spec, what string) error {
	if o.then != nil {
		return o.then(ctx, cluster, spec, what)
	}
	path := spec.Namespace + "/" + spec.Name
	console := cluster.Console(spec.Namespace, spec.Name)
	v := output.View{Names: []string{path}, Page: func(w io.Writer, _ bool) error {
		text := fmt.Sprintf("%s\nSee it: tpuctl status %s\n", o.submittedLine(what, spec), path)
		if console != "" {
			text += "Its logs in the console: " + console + "\n"
		}
		_, err := io.WriteString(w, text)
		return err
	}}
	if o.format.Structured() {
		run, err := cluster.Get(ctx, spec.Namespace, spec.Name)
		if err != nil {
			return fmt.Errorf("job %s is submitted, but reading it back failed: %w", path, err)
		}
		data := view(run, true)
		data.Console = console
		v.Data = data
	}
	return output.Print(o.Streams, o.format, v)
}

// keyOf is how the API server names a job.
func keyOf(r training.Run) types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// pathOf is how a job is named to people.
func pathOf(r training.Run) string { return r.Namespace + "/" + r.Name }
