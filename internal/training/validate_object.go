package training

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
)

// checkObject holds a whole JobSet against the rules of JobSet's webhook and
// CRD, and of the API server for the Jobs that JobSet makes of it: for what
// overrides made of a Spec that is right by itself.
func checkObject(js *jobset.JobSet) error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(js.Spec.ReplicatedJobs) == 0 {
		add("no replicated job is left")
	}
	names := map[string]bool{}
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		if names[rj.Name] {
			add("two replicated jobs are called %s", rj.Name)
		}
		for _, d := range rj.DependsOn {
			if !names[d.Name] {
				add("replicated job %s depends on %s, which is not before it", rj.Name, d.Name)
			}
			if d.Status != jobset.DependencyReady && d.Status != jobset.DependencyComplete {
				add("replicated job %s: dependsOn status %q; want Ready or Complete", rj.Name, d.Status)
			}
		}
		names[rj.Name] = true
		checkReplicatedJob(js, rj, add)
	}
	if p := js.Spec.SuccessPolicy; p != nil {
		for _, name := range p.TargetReplicatedJobs {
			if !names[name] {
				add("the success policy names %s, which is no replicated job", name)
			}
		}
	}
	if p := js.Spec.StartupPolicy; p != nil && p.StartupPolicyOrder == jobset.InOrder &&
		slices.ContainsFunc(js.Spec.ReplicatedJobs, func(rj jobset.ReplicatedJob) bool { return len(rj.DependsOn) > 0 }) {
		add("startupPolicy InOrder and dependsOn exclude each other")
	}
	checkFailurePolicy(js, names, add)
	if c := js.Spec.Coordinator; c != nil && !names[c.ReplicatedJob] {
		add("the coordinator is in %s, which is no replicated job", c.ReplicatedJob)
	}
	if n := js.Spec.Network; n != nil && n.Subdomain != "" {
		for _, problem := range naming.Job(n.Subdomain) {
			add("network.subdomain %q: %s", n.Subdomain, problem)
		}
	}
	return errors.Join(errs...)
}

func checkReplicatedJob(js *jobset.JobSet, rj *jobset.ReplicatedJob, add func(string, ...any)) {
	job := &rj.Template.Spec
	pods := int64(ptr.Deref(job.Parallelism, 1))
	if rj.Replicas < 0 || pods < 0 || int64(rj.Replicas)*pods > math.MaxInt32 {
		add("replicated job %s: %d replicas of %d pods are more than a JobSet can count", rj.Name, rj.Replicas, pods)
		return
	}
	longest := fmt.Sprintf("%s-%s-%d-%d-abcde", js.Name, rj.Name, max(rj.Replicas-1, 0), max(ptr.Deref(job.Completions, 1)-1, 0))
	if problems := naming.Job(longest); len(problems) > 0 {
		add("replicated job %s: its pods would be called %s, which has %d characters; %s", rj.Name, longest, len(longest), strings.Join(problems, "; "))
	}
	for _, problem := range naming.Job(rj.GroupName) {
		add("replicated job %s: groupName %q: %s", rj.Name, rj.GroupName, problem)
	}
	if len(job.Template.Spec.Containers) == 0 {
		add("replicated job %s has no container left", rj.Name)
	}
}

// ruleName is the form of a failure rule's name.
var ruleName = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func checkFailurePolicy(js *jobset.JobSet, names map[string]bool, add func(string, ...any)) {
	p := js.Spec.FailurePolicy
	if p == nil {
		return
	}
	if p.RestartStrategy == jobset.InPlaceRestart {
		add("failurePolicy.restartStrategy InPlaceRestart is behind a feature gate that is off")
	}
	seen := map[string]bool{}
	for _, r := range p.Rules {
		if seen[r.Name] {
			add("two failure rules are called %q", r.Name)
		}
		seen[r.Name] = true
		if r.Name != "" && (len(r.Name) > 128 || !ruleName.MatchString(r.Name)) {
			add("failure rule %q: a name has letters, digits, _ , and : and starts with a letter", r.Name)
		}
		switch r.Action {
		case jobset.FailJobSet, jobset.RestartJobSet, jobset.RestartJobSetAndIgnoreMaxRestarts:
		case jobset.RestartJob, jobset.RestartJobAndIgnoreMaxRestarts:
			add("failure rule %q: action %s is behind a feature gate that is off", r.Name, r.Action)
		default:
			add("failure rule %q: %q is no action", r.Name, r.Action)
		}
		for _, name := range r.TargetReplicatedJobs {
			if !names[name] {
				add("failure rule %q names %s, which is no replicated job", r.Name, name)
			}
		}
	}
}
