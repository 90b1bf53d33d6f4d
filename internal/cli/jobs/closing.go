package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// settleTime is how long an interrupted submission looks whether its job is
// there.
const settleTime = 5 * time.Second

// fate is what has become of a submission so far, for whoever interrupts it.
type fate struct {
	name    string        // of the job, as far as it is known: NAME or NAMESPACE/NAME
	cluster Cluster       // once a request that makes the job may be on its way
	spec    training.Spec // what it makes then
	there   string        // what is known of the job: "was created", "was there already"
	deleted string        // the job that had the name
}

// closing carries out a submission. One that is interrupted ends with a sentence
// that says whether the job exists.
func (o *submission) closing(ctx context.Context, do func(context.Context) error) error {
	err := do(ctx)
	var said *exit.CodeError
	if err == nil || ctx.Err() == nil || errors.As(err, &said) {
		return err
	}
	text := "interrupted: nothing is created by --dry-run"
	if o.dryRun == "" {
		text = "interrupted" + o.fate.tell(ctx, err)
	}
	return &exit.CodeError{Code: exit.Interrupted, Err: errors.New(text)}
}

// whose is whom we work as, where that is known without asking the cluster.
// Looking for it may mean to wait for this machine's network, which an interrupt
// ends.
func (d Deps) whose(ctx context.Context, t target.Options) string {
	found := make(chan string, 1)
	go func() { found <- d.Account(t) }()
	select {
	case account := <-found:
		return account
	case <-ctx.Done():
		return ""
	}
}

// tell says whether the job exists: the call that was under way may have had its
// effect.
func (f fate) tell(ctx context.Context, cause error) string {
	path := f.spec.Namespace + "/" + f.spec.Name
	back := fmt.Sprintf("tpuctl delete %s -n %s takes it back", f.spec.Name, f.spec.Namespace)
	gone := ""
	if f.deleted != "" {
		gone = "; job " + f.deleted + ", which had the name, was deleted"
	}
	switch {
	case f.cluster == nil && f.name == "":
		return ": no job was created"
	case f.cluster == nil:
		return ": no job " + f.name + " was created"
	case f.there != "":
		return fmt.Sprintf(": job %s %s; %s", path, f.there, back)
	}
	if errors.As(cause, new(*kube.UnsentError)) {
		return fmt.Sprintf(": no job %s was created%s", path, gone)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	run, err := f.cluster.Get(last, f.spec.Namespace, f.spec.Name)
	missing := new(training.NotFoundError)
	switch {
	case errors.As(err, &missing):
		return fmt.Sprintf(": no job %s was created%s", path, gone)
	case err != nil:
		return fmt.Sprintf(" (%v), and whether job %s was created is not known: %v%s\nSubmit it again to find out: that changes nothing if it was", cause, path, err, gone)
	case run.Annotations[training.AnnotationSpecHash] != f.spec.Hash():
		return fmt.Sprintf(": no job was created; another one has the name %s", path)
	case len(f.spec.Files) > 0:
		return fmt.Sprintf(": job %s was created (%s), perhaps without its files: submit it again to complete it, or %s", path, run.State, back)
	}
	return fmt.Sprintf(": job %s was created (%s); %s", path, run.State, back)
}

// stopped ends a command that only looked on and was interrupted: the job does
// not notice. doing is what the command did, and more how to do it again.
func stopped(s *term.Streams, run training.Run, doing, more string) error {
	path := pathOf(run)
	if run.Over() {
		fmt.Fprintf(s.Err, "\nStopped %s; job %s is %s. %s.\n", doing, path, run.State, more)
	} else {
		fmt.Fprintf(s.Err, "\nStopped %s; job %s goes on. %s, tpuctl cancel %s ends it.\n", doing, path, more, path)
	}
	return &exit.CodeError{Code: exit.Interrupted}
}

// stoppedReading is stopped for those who print logs.
func stoppedReading(s *term.Streams, run training.Run) error {
	follow := " --follow"
	if run.Over() {
		follow = ""
	}
	return stopped(s, run, "reading", "tpuctl logs "+pathOf(run)+follow+" reads on")
}

// deletedMeanwhile says of a job that was there and is not any more that it was
// deleted; any other error stays what it is.
func deletedMeanwhile(run training.Run, err error) error {
	if missing := new(training.NotFoundError); errors.As(err, &missing) {
		return fmt.Errorf("job %s was deleted meanwhile: %w", pathOf(run), err)
	}
	return err
}
