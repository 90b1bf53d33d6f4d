package queue

import (
	"errors"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate checks what the API server would refuse, or undo.
func (n Namespace) Validate() error {
	p := &problems{what: "namespace " + n.Name}
	if err := CheckNamespace(n.Name); err != nil {
		p.note(err)
	} else if SystemNamespace(n.Name) {
		p.add("it belongs to Kubernetes, GKE or the job controllers, and a destroy would delete it: jobs run in namespaces of their own")
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		if err := checkLabel(key, n.Labels[key]); err != nil {
			p.add("%w", err)
		}
		switch key {
		case LabelNamespaceName:
			p.add("label %s is the namespace's own name; Kubernetes sets it", key)
		case LabelManagedBy:
			p.add("label %s says what made the namespace; leave it out", key)
		}
	}
	for _, err := range validation.ValidateAnnotations(n.Annotations, field.NewPath("annotations")) {
		p.add("%s", err.Error())
	}
	if n.ServiceAccount == "" && len(n.PullSecrets) > 0 {
		p.add("image pull secrets need a service account to belong to")
	}
	if n.ServiceAccount != "" {
		if err := checkName("service account", n.ServiceAccount); err != nil {
			p.add("%w", err)
		}
	}
	seen := map[string]bool{}
	for _, name := range n.PullSecrets {
		if err := checkName("image pull secret", name); err != nil {
			p.add("%w", err)
		}
		if seen[name] {
			p.add("image pull secret %s is listed twice", name)
		}
		seen[name] = true
	}
	for _, s := range slices.Concat(n.Submitters, n.Viewers) {
		if s.Kind != rbacv1.ServiceAccountKind {
			continue
		}
		if err := checkName("service account", s.Name); err != nil {
			p.add("%w", err)
		}
		if err := checkName("namespace", s.Namespace); err != nil { // also one of the system's
			p.add("%w", err)
		}
	}
	return errors.Join(p.errs...)
}
