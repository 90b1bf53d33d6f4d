package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Frameworks are what Kueue manages by default: JobSets, and plain Jobs for
// what runs beside them. Every other framework of the official manifests comes
// with webhooks that fail closed, so that a Kueue that is down would keep its
// objects from being made.
var Frameworks = []string{"batch/job", "jobset.x-k8s.io/jobset"}

// more are the frameworks that can be asked for beside the default ones, with
// the first Kueue release that has them ("" for all that are embedded).
var more = map[string]string{
	"kubeflow.org/jaxjob": "", "kubeflow.org/mpijob": "", "kubeflow.org/paddlejob": "",
	"kubeflow.org/pytorchjob": "", "kubeflow.org/tfjob": "", "kubeflow.org/xgboostjob": "",
	"ray.io/raycluster": "", "ray.io/rayjob": "", "ray.io/rayservice": "v0.19.0",
	"sparkoperator.k8s.io/sparkapplication": "v0.19.0",
	"trainer.kubeflow.org/trainjob":         "",
	"workload.codeflare.dev/appwrapper":     "",
}

// podBased frameworks put a webhook in front of every pod, Deployment or
// StatefulSet: with Kueue down, no namespace could start a pod.
var podBased = []string{"pod", "deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"}

// frameworks is what k manages.
func (k KueueConfig) frameworks() []string {
	if len(k.Frameworks) == 0 {
		return Frameworks
	}
	return k.Frameworks
}

func validateFrameworks(frameworks []string, kueueVersion string) error {
	known := slices.Sorted(maps.Keys(more))
	for i, f := range frameworks {
		since, ok := more[f]
		switch {
		case slices.Contains(podBased, f):
			return fmt.Errorf("framework %s: its webhooks would keep every namespace from starting pods while Kueue is down. Wrap what you run in a JobSet or a Job", f)
		case !ok && !slices.Contains(Frameworks, f):
			return fmt.Errorf("framework %q is not known: want some of %s", f, strings.Join(slices.Concat(Frameworks, known), ", "))
		case older(kueueVersion, since):
			return fmt.Errorf("framework %s needs Kueue %s or newer, not %s", f, since, kueueVersion)
		case slices.Contains(frameworks[:i], f):
			return fmt.Errorf("framework %s is listed twice", f)
		}
	}
	for _, f := range Frameworks {
		if !slices.Contains(frameworks, f) {
			return fmt.Errorf("framework %s is missing: the training jobs and what runs beside them need %s", f, strings.Join(Frameworks, " and "))
		}
	}
	return nil
}

// jobResource is the plural that rules of webhooks and roles use: batch/job -> jobs.
func jobResource(framework string) (group, plural string) {
	group, kind, _ := strings.Cut(framework, "/")
	return group, kind + "s"
}
