package controllers

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// systemNamespaces never hold training jobs; a webhook that is down must not
// keep them from healing.
var systemNamespaces = []string{
	"gke-managed-cim", "gke-managed-system", "gmp-system", "jobset-system", "kube-node-lease",
	"kube-public", "kube-system", "kueue-system",
}

// webhooks keeps the webhooks of JobSet's and Kueue's own objects and of the
// enabled frameworks, and lets the frameworks' see only the namespaces that c
// selects.
func webhooks(c Config, p part, obj *unstructured.Unstructured) error {
	hooks, _, err := unstructured.NestedSlice(obj.Object, "webhooks")
	if err != nil {
		return err
	}
	var kept []any
	for _, h := range hooks {
		hook, ok := h.(map[string]any)
		if !ok {
			return fmt.Errorf("a webhook is a %T, want an object", h)
		}
		wanted, ofJobs := c.Kueue.wants(p, hook)
		if !wanted {
			continue
		}
		// Those of the releases' own objects need all namespaces.
		if ofJobs {
			hook["namespaceSelector"] = c.Kueue.selector()
		}
		kept = append(kept, hook)
	}
	if len(kept) == 0 {
		return fmt.Errorf("none of its %d webhooks would be left", len(hooks))
	}
	return unstructured.SetNestedSlice(obj.Object, kept, "webhooks")
}

// wants tells whether a webhook is about an object we use, and whether it is one
// of Kueue's for jobs. JobSet's pod webhook stays: it sees only pods of JobSets.
func (k KueueConfig) wants(p part, hook map[string]any) (wanted, ofJobs bool) {
	rules, _, _ := unstructured.NestedSlice(hook, "rules")
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
		resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
		if p == jobSet || slices.Contains(groups, "kueue.x-k8s.io") {
			return true, false
		}
		for _, f := range k.frameworks() {
			if group, plural := jobResource(f); slices.Contains(groups, group) && slices.Contains(resources, plural) {
				return true, true
			}
		}
	}
	return false, false
}

// labelSelector selects the namespaces whose jobs Kueue manages.
func (k KueueConfig) labelSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{
		MatchLabels: k.NamespaceSelector,
		MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: systemNamespaces,
		}},
	}
}

// selector is the same as content of a webhook.
func (k KueueConfig) selector() map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(k.labelSelector())
	if err != nil {
		panic(err) // a selector always converts
	}
	return content
}
