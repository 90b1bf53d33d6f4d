package queue

import (
	"fmt"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
)

// LabelManagedBy marks what this project made, for people and for tools that
// list objects by their origin. Ownership itself is the field manager's.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "terraform-provider-tpu"
)

// Labels by which a job joins a queue and takes a priority.
const (
	LabelQueueName     = "kueue.x-k8s.io/queue-name"
	LabelPriorityClass = "kueue.x-k8s.io/priority-class"
	// LabelJobUID is on every Workload: the uid of the job it was made for.
	LabelJobUID = "kueue.x-k8s.io/job-uid"
	// LabelNamespaceName is on every namespace: its own name.
	LabelNamespaceName = "kubernetes.io/metadata.name"
)

// Priorities are the classes that a cluster has unless its administrator says
// otherwise, lowest first. They are Kueue's (WorkloadPriorityClass), not the
// core PriorityClass: names such as "low" are taken there on many clusters.
var Priorities = []struct {
	Name  string
	Value int32
}{
	{"very-low", 100}, {"low", 250}, {"medium", 500}, {"high", 750}, {"very-high", 1000},
}

// DefaultPriority tells whether name is that of one of the Priorities.
func DefaultPriority(name string) bool {
	for _, p := range Priorities {
		if p.Name == name {
			return true
		}
	}
	return false
}

// SystemNamespace tells whether a namespace belongs to Kubernetes, GKE or the
// job controllers, and so to nobody's jobs.
func SystemNamespace(name string) bool {
	switch name {
	case "default", "jobset-system", "kueue-system":
		return true
	}
	for _, prefix := range []string{"kube-", "gke-", "gmp-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func managed() map[string]string { return map[string]string{LabelManagedBy: ManagedBy} }

// CheckName says why name cannot name a Kueue object (DNS-1123 subdomain).
func CheckName(name string) error { return checkName("name", name) }

func checkName(what, name string) error {
	if problems := naming.Object(name); len(problems) > 0 {
		return fmt.Errorf("%s %q: %s", what, name, strings.Join(problems, "; "))
	}
	return nil
}

// CheckNamespace says why name cannot name a namespace (DNS-1123 label).
func CheckNamespace(name string) error {
	if problems := naming.Label(name); len(problems) > 0 {
		return fmt.Errorf("namespace %q: %s", name, strings.Join(problems, "; "))
	}
	if strings.HasPrefix(name, "kube-") {
		return fmt.Errorf("namespace %q: names that start with \"kube-\" belong to Kubernetes", name)
	}
	return nil
}

func checkLabel(key, value string) error {
	if problems := naming.Key(key); len(problems) > 0 {
		return fmt.Errorf("label key %q: %s", key, strings.Join(problems, "; "))
	}
	if problems := naming.LabelValue(value); len(problems) > 0 {
		return fmt.Errorf("label %s: value %q: %s", key, value, strings.Join(problems, "; "))
	}
	return nil
}

// CheckQueueName says why name cannot name a queue: jobs carry it as the value
// of a label, which is shorter than an object's name may be.
func CheckQueueName(name string) error {
	if err := checkName("queue", name); err != nil {
		return err
	}
	if problems := naming.LabelValue(name); len(problems) > 0 {
		return fmt.Errorf("queue %q: jobs carry the name as a label: %s", name, strings.Join(problems, "; "))
	}
	return nil
}
