package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// againOptions make a job out of one that is there.
type againOptions struct {
	submission
	called string // the name of the new job
	goesOn bool   // with the run, rather than afresh
}

func newRerun(d Deps) *cobra.Command {
	o := &againOptions{submission: submission{Deps: d}}
	cmd := &cobra.Command{
		Use:   "rerun JOB [flags] [-- COMMAND...]",
		Short: "Run a training job again from its beginning, as a job of its own",
		Long: `Submit a new job like one that is there, whatever has become of that one: with
a RUN_ID of its own, so that it finds no checkpoint, and ATTEMPT 0. It is called
JOB-2, JOB-3, ..., or as --name says; --replace deletes the old job and takes its
name. Flags, and a command after --, change what the job is.`,
		Example: `  tpuctl rerun train
  tpuctl rerun train --set lr=1e-4 --name train-slow
  tpuctl rerun train --replace`,
	}
	o.complete(cmd)
	return cmd
}

func newContinue(d Deps) *cobra.Command {
	o := &againOptions{submission: submission{Deps: d}, goesOn: true}
	cmd := &cobra.Command{
		Use:   "continue JOB [flags] [-- COMMAND...]",
		Short: "Go on with the run of a training job that is over, as a new job",
		Long: `Submit a new job that goes on with the run of one that is over: finished, failed
or cancelled. It has the same RUN_ID and OUTPUT_DIR, so that it finds the
checkpoints, and its ATTEMPT goes on from the last one. Flags change what the job
is, such as the accelerator or the number of slices.

A run is gone on with by one job at a time: while a job of it is not over, the
command refuses. Of a job whose object is gone nothing is known: submit it again
with --run-id and --output-dir.

The attempts are added by the image's /bin/sh, which then gives way to the
program. A job without a command of its own cannot be gone on with: say it after
--.`,
		Example: `  tpuctl continue train
  tpuctl continue train --accelerator v6e-16 --slices 2
  tpuctl continue train --max-restarts 20 -- python train.py --resume`,
	}
	o.complete(cmd)
	return cmd
}

// complete gives cmd its argument and flags.
func (o *againOptions) complete(cmd *cobra.Command) {
	o.add(cmd)
	o.addTaken(cmd)
	f := cmd.Flags()
	f.StringVar(&o.called, "name", "", "how to call the new job")
	if o.goesOn {
		_ = f.MarkHidden("run-id")
		_ = f.MarkHidden("output-dir")
	}
	f.Lookup("namespace").Usage = "the job's namespace (the context's; else it is looked for in all)"
	o.addDryRun(cmd)
	output.AddFlag(cmd, &o.format, output.HCL)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeJobs(cmd, o.Deps, o.target, o.namespace, nil, typed)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.start(cmd, args, o.run) }
}

func (o *againOptions) run(ctx context.Context) error {
	old := o.name
	o.name = o.called
	switch {
	case o.replace && (o.suffix || o.called != ""):
		return exit.Usagef("--replace takes the name of the old job: leave --name and --suffix out")
	case o.goesOn && (o.flags.Changed("run-id") || o.flags.Changed("output-dir")):
		return exit.Usagef("a run that is gone on with keeps its run id and output folder: leave --run-id and --output-dir out, or start another run with tpuctl rerun")
	}
	cluster, err := o.Open(ctx, o.target)
	if err != nil {
		return err
	}
	where := o.namespace
	if !strings.Contains(old, "/") {
		if err := o.inContext(o.target, &where); err != nil {
			return err
		}
	}
	run, err := find(ctx, cluster, where, old)
	if err != nil {
		return err
	}
	had, err := cluster.Spec(ctx, keyOf(run))
	if err != nil {
		return err
	}
	next, err := o.next(ctx, cluster, run, had)
	if err != nil {
		return err
	}
	spec, err := o.changed(ctx, next)
	if err != nil {
		return err
	}
	if o.called == run.Name && spec.Namespace == run.Namespace && !o.suffix {
		return exit.Usagef("--name: %s is the job's own name: --replace deletes it and takes its name, and without either the new one is numbered", o.called)
	}
	o.fate.name = spec.Namespace + "/" + spec.Name
	if o.suffix { // it is still to be numbered
		o.fate.name = ""
	}
	if o.dryRun == dryClient {
		if err := o.number(ctx, cluster, &spec); err != nil {
			return err
		}
		return o.print(spec, spec.JobSet())
	}
	if err := o.look(ctx, cluster, &spec); err != nil {
		return err
	}
	return o.submit(ctx, cluster, spec)
}

// number gives a job that is only printed the name that it would be submitted
// under.
func (o *againOptions) number(ctx context.Context, cluster Cluster, spec *training.Spec) error {
	name := spec.Name
	for n := 2; o.suffix && n <= maxSuffix; n++ {
		_, err := cluster.Get(ctx, spec.Namespace, spec.Name)
		if missing := new(training.NotFoundError); errors.As(err, &missing) {
			break
		}
		if err != nil {
			return err
		}
		spec.Name = fmt.Sprintf("%s-%d", name, n)
	}
	return o.refuse(spec.Validate())
}

// next is the job that follows, under the name that it is numbered from.
func (o *againOptions) next(ctx context.Context, cluster Cluster, run training.Run, had training.Spec) (training.Spec, error) {
	o.suffix = o.suffix || o.called == "" && !o.replace
	if !o.goesOn {
		return had.Afresh(run.Name), nil
	}
	past, err := cluster.Past(ctx, run.Namespace, run.RunID)
	if err != nil {
		return had, err
	}
	if past.Going != nil {
		err := &training.GoingError{Run: *past.Going}
		advice := "end it first: tpuctl cancel"
		if past.Going.State == training.Suspended {
			advice = "let it run again: tpuctl resume"
		}
		return had, fmt.Errorf("%w; %s %s", err, advice, pathOf(*past.Going))
	}
	base := run.Name
	if run.RunID != "" && strings.HasPrefix(run.Name, run.RunID) && !o.replace { // train-2 is followed by train-3
		base = run.RunID
	}
	return had.GoOn(base, past.Next), nil
}

// changed puts the flags over the job.
func (o *againOptions) changed(ctx context.Context, next training.Spec) (training.Spec, error) {
	job := jobfile.From(next)
	job.Owner = jobfile.OwnerOf(o.whose(ctx, o.target)) // else look asks the cluster
	job, err := o.over(job)
	if err != nil {
		return next, err
	}
	spec, err := job.Spec()
	return spec, o.refuse(err)
}

func newCancel(d Deps) *cobra.Command {
	o := &cancelOptions{oneJob{Deps: d}}
	cmd := &cobra.Command{
		Use:   "cancel JOB",
		Short: "End a training job for good, and keep its record",
		Long: `End a training job. Its pods get SIGTERM and the grace period to save their work,
then its slices and quota are free for others. The job stays in the lists, as
Suspended (Cancelled), until it is deleted; tpuctl wait takes it for one that
ended without success. tpuctl continue goes on with its run.`,
		Example: `  tpuctl cancel train`,
	}
	o.add(cmd, o.run)
	return cmd
}

type cancelOptions struct{ oneJob }

func (o *cancelOptions) run(ctx context.Context, cluster Cluster, run training.Run) error {
	if run.Over() {
		fmt.Fprintf(o.Streams.Out, "%s is over already: %s\n", pathOf(run), strings.TrimSuffix(strings.TrimSpace(string(run.State)+", "+run.Reason), ","))
		return nil
	}
	var finished *training.FinishedError
	switch err := cluster.Cancel(ctx, keyOf(run), o.Now()); {
	case errors.As(err, &finished):
		fmt.Fprintf(o.Streams.Out, "%s is over already: %s\n", pathOf(run), finished.Run.State)
		return nil
	case err != nil:
		return err
	}
	fmt.Fprintf(o.Streams.Out, "Cancelled %s\n", pathOf(run))
	return nil
}

type annotateOptions struct {
	oneJob
	note         string
	tags, untags []string
	edits        []string
}

func newAnnotate(d Deps) *cobra.Command {
	o := &annotateOptions{oneJob: oneJob{Deps: d}}
	cmd := &cobra.Command{
		Use:   "annotate JOB [KEY=VALUE...] [KEY-...]",
		Short: "Change the note, tags and annotations of a training job",
		Long: `Change what is said about a training job, whatever its state: its note, its tags,
and annotations of the JobSet. KEY- takes an annotation away. The job itself does
not notice.`,
		Example: `  tpuctl annotate train --note 'loss spikes at step 4000' --tag suspicious
  tpuctl annotate train ticket=ML-123 reviewed-`,
	}
	f := cmd.Flags()
	f.StringVar(&o.note, "note", "", "a sentence about it; empty takes it away")
	f.StringArrayVar(&o.tags, "tag", nil, "a word to find it by; several with commas")
	f.StringArrayVar(&o.untags, "untag", nil, "a tag to take away; several with commas")
	o.add(cmd, func(ctx context.Context, cluster Cluster, run training.Run) error {
		return o.run(ctx, cluster, keyOf(run), cmd.Flags().Changed("note"))
	})
	inner := cmd.RunE
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("want the name of one job, and what to say about it. tpuctl list shows the jobs")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.edits = args[1:]
		if len(o.edits) == 0 && len(o.tags) == 0 && len(o.untags) == 0 && !cmd.Flags().Changed("note") {
			return exit.Usagef("what is to be said about job %s? Give KEY=VALUE, --note or --tag", args[0])
		}
		return inner(cmd, args[:1])
	}
	return cmd
}

func (o *annotateOptions) run(ctx context.Context, cluster Cluster, key types.NamespacedName, noted bool) error {
	labels, annotations := map[string]*string{}, map[string]*string{}
	if noted {
		annotations[jobfile.AnnotationNote] = nil
		if o.note != "" {
			annotations[jobfile.AnnotationNote] = &o.note
		}
	}
	for flag, tags := range map[string][]string{"--tag": o.tags, "--untag": o.untags} {
		for _, tag := range words(tags) {
			if problem := jobfile.CheckTag(tag); problem != "" {
				return exit.Usagef("%s: %s", flag, problem)
			}
		}
	}
	for _, tag := range words(o.tags) {
		if slices.Contains(words(o.untags), tag) {
			return exit.Usagef("tag %s is given and taken away: leave --tag or --untag out", tag)
		}
		name, value := jobfile.TagLabel(tag)
		labels[name] = &value
	}
	for _, tag := range words(o.untags) {
		name, _ := jobfile.TagLabel(tag)
		labels[name] = nil
	}
	said := map[string]string{}
	for _, edit := range o.edits {
		name, value, given := strings.Cut(edit, "=")
		bare, away := strings.CutSuffix(name, "-")
		switch {
		case given && name != "":
			annotations[name] = &value
		case !given && away && bare != "":
			annotations[bare] = nil
		default:
			return exit.Usagef("%q; want KEY=VALUE, or KEY- to take the annotation away", edit)
		}
		key := name
		if !given {
			key = bare
		}
		if had, again := said[key]; again && had != edit {
			return exit.Usagef("annotation %s is given twice, as %q and as %q: leave one out", key, had, edit)
		}
		said[key] = edit
	}
	var wrong *training.FieldError
	err := cluster.Annotate(ctx, key, labels, annotations)
	switch {
	case errors.As(err, &wrong):
		return &exit.UsageError{Err: err}
	case err != nil:
		return err
	}
	fmt.Fprintf(o.Streams.Out, "Annotated %s\n", key)
	return nil
}
