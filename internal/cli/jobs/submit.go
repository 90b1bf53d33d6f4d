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
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

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
	// then follows a job that was submitted, instead of telling of it.
	then func(ctx context.Context, cluster Cluster, spec training.Spec, what string) error
}

// The rehearsals that --dry-run knows.
const (
	dryClient = "client"
	dryServer = "server"
)

// settleTime is how long an interrupted submission looks whether its job is
// there.
const settleTime = 5 * time.Second

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

A job file (-f) says the same and more in YAML, with the arguments of the resource
tpu_training_jobset as keys; flags win over it. Its JSON schema is published as
docs/job.schema.json. --set KEY=VALUE adds an argument --KEY=VALUE to the command,
or what the file's aliases make of KEY.

The program finds RUN_ID, ATTEMPT (0 and up, over restarts) and, with
--output-dir, OUTPUT_DIR in its environment.

Submitting the same job again changes nothing and says so. A name that another
job has is refused, unless --suffix chooses a free one (NAME-2, NAME-3, ...) or
--replace deletes the other job first. When the command is interrupted, it says
whether the job is there.

Before it submits, the command looks whether anything is in the way: the
controllers, the namespace, the queue and its quota, the image, the bucket of
--output-dir, and slices of that shape. What could never run is not submitted;
what cannot be asked is said, and holds nothing up. --skip-preflight looks at
nothing of it and changes nothing else.

--dry-run=client prints the JobSet without asking any server, server prints it
as the cluster's webhooks accept it. Neither keeps anything. With -o hcl either
prints the job as a resource tpu_training_jobset of Terraform.`,
		Example: `  tpuctl submit train --accelerator v5litepod-16 --slices 2 --image python:3.13 -- python -c 'print(1)'
  tpuctl submit sweep-1 -n vision --queue research --accelerator v6e-8 --image my/image \
      --env LR=3e-4 --env-from-secret wandb --shell 'python train.py | tee /tmp/log'
  tpuctl submit -f job.yaml --set lr=1e-4 --slices 4
  tpuctl submit train --accelerator v5p-128 --image my/image --queue research --dry-run=client`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.read(cmd, args); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
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
}

func (o *submission) addDryRun(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dryRun, "dry-run", "", "client or server: print the JobSet and keep nothing")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryClient, dryServer}, cobra.ShellCompDirectiveNoFileComp))
}

func (o *submission) run(ctx context.Context) error {
	switch {
	case o.dryRun != "" && o.dryRun != dryClient && o.dryRun != dryServer:
		return exit.Usagef("--dry-run: %q; want %s or %s", o.dryRun, dryClient, dryServer)
	case o.replace && o.suffix:
		return exit.Usagef("--replace takes the name and --suffix another one: give one of them")
	}
	if o.format == output.HCL && o.dryRun == "" {
		return exit.Usagef("-o %s prints the job for Terraform, which would find it taken: add --dry-run=%s or --dry-run=%s, which submit nothing", output.HCL, dryClient, dryServer)
	}
	job, err := o.job(o.Streams.In)
	if err != nil {
		return err
	}
	job.Namespace = cmp.Or(job.Namespace, os.Getenv("TPU_NAMESPACE"), "default")
	// Before any server is asked; what the queue is does not matter for the rest.
	spec, err := job.Spec()
	if err := o.refuse(err); err != nil {
		return err
	}
	if spec.Owner == "" {
		spec.Owner = jobfile.OwnerOf(o.Account(o.target))
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
		queues, err := cluster.Queues(ctx, spec.Namespace)
		if err != nil {
			return err
		}
		if spec.Queue, err = chooseQueue(spec.Namespace, queues); err != nil {
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
	owner, before := spec.Owner, *spec
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
		tell(o.Streams, items)
		return nil
	}
	if had, err := cluster.Get(ctx, spec.Namespace, spec.Name); err == nil && had.Annotations[training.AnnotationSpecHash] == spec.Hash() && !o.replace && !o.suffix {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: no job %s/%s was created: %w", spec.Namespace, spec.Name, context.Cause(ctx))
	}
	tell(o.Streams, items)
	return fmt.Errorf("job %s/%s was not submitted: %s in its way (--skip-preflight submits it all the same)", spec.Namespace, spec.Name, plural(len(stops), "thing"))
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
		js, err := cluster.Submit(ctx, spec, o.dryRun == dryServer)
		taken := new(training.ExistsError)
		switch {
		case err == nil && o.dryRun == dryServer:
			return o.print(spec, js)
		case err == nil:
			return o.submitted(ctx, cluster, spec, "Submitted")
		case ctx.Err() != nil && o.dryRun == "":
			return interrupted(ctx, cluster, spec, err)
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
			return o.submitted(ctx, cluster, spec, "Unchanged: there is already")
		default:
			return exists(ctx, cluster, spec, err)
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
	fmt.Fprintf(o.Streams.Err, "Deleting %s/%s (%s)\n", had.Namespace, had.Name, had.State)
	return cluster.Delete(ctx, had.Namespace, had.Name, had.UID)
}

// exists says what has the name, and what can be done.
func exists(ctx context.Context, cluster Cluster, spec training.Spec, err error) error {
	state := ""
	if had, err := cluster.Get(ctx, spec.Namespace, spec.Name); err == nil {
		state = fmt.Sprintf(", made from another specification (%s)", had.State)
	}
	return fmt.Errorf("%w%s; nothing was changed.\nChoose another name, or --suffix to have it numbered, or --replace to delete that job first", err, state)
}

// interrupted says whether the job came to be: the call that was under way may
// have had its effect.
func interrupted(ctx context.Context, cluster Cluster, spec training.Spec, cause error) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	run, err := cluster.Get(last, spec.Namespace, spec.Name)
	missing := new(training.NotFoundError)
	var text string
	switch {
	case errors.As(err, &missing):
		text = fmt.Sprintf("interrupted: no job %s/%s was created", spec.Namespace, spec.Name)
	case err != nil:
		text = fmt.Sprintf("interrupted (%v), and whether job %s/%s was created is not known: %v\nSubmit it again to find out: that changes nothing if it was", cause, spec.Namespace, spec.Name, err)
	case run.Annotations[training.AnnotationSpecHash] == spec.Hash():
		text = fmt.Sprintf("interrupted: job %s/%s was created (%s); tpuctl delete %s -n %s takes it back", spec.Namespace, spec.Name, run.State, spec.Name, spec.Namespace)
	default:
		text = fmt.Sprintf("interrupted: no job was created; another one has the name %s/%s", spec.Namespace, spec.Name)
	}
	return &exit.CodeError{Code: exit.Interrupted, Err: errors.New(text)}
}

// submitted tells of the job that is there now.
func (o *submission) submitted(ctx context.Context, cluster Cluster, spec training.Spec, what string) error {
	if o.then != nil {
		return o.then(ctx, cluster, spec, what)
	}
	path := spec.Namespace + "/" + spec.Name
	v := output.View{Names: []string{path}, Page: func(w io.Writer, _ bool) error {
		text := fmt.Sprintf("%s %s: %d x %s", what, path, spec.Slices, spec.Slice.Name)
		if spec.Queue != "" {
			text += " in queue " + spec.Queue
		}
		_, err := fmt.Fprintf(w, "%s\nSee it: tpuctl status %s\n", text, path)
		return err
	}}
	if o.format.Structured() {
		run, err := cluster.Get(ctx, spec.Namespace, spec.Name)
		if err != nil {
			return fmt.Errorf("job %s is submitted, but reading it back failed: %w", path, err)
		}
		v.Data = view(run, true)
	}
	return output.Print(o.Streams, o.format, v)
}

// print shows a JobSet: as YAML for people too. As Terraform has it, the job is
// what it was submitted as.
func (o *submission) print(spec training.Spec, js *jobset.JobSet) error {
	if o.format == output.HCL {
		cluster := ""
		if strings.Contains(o.target.Cluster, "/") {
			cluster = o.target.Cluster
		}
		_, err := o.Streams.Out.Write(jobfile.HCL(spec, cluster))
		return err
	}
	js = js.DeepCopy()
	js.SetGroupVersionKind(jobset.SchemeGroupVersion.WithKind("JobSet"))
	js.ManagedFields = nil
	format := o.format
	if format != output.JSON && format != output.Name {
		format = output.YAML
	}
	return output.Print(o.Streams, format, output.View{Data: js, Names: []string{js.Namespace + "/" + js.Name}})
}

// keyOf is how the API server names a job.
func keyOf(r training.Run) types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// pathOf is how a job is named to people.
func pathOf(r training.Run) string { return r.Namespace + "/" + r.Name }
