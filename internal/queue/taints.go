package queue

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
)

// TaintEffects are those that nodes may have.
var TaintEffects = []string{string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute)}

func checkTaints(taints []corev1.Taint) error {
	if n := len(taints); n > maxFlavorTaints {
		return fmt.Errorf("%d node taints; Kueue allows %d", n, maxFlavorTaints)
	}
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[identity]bool{}
	for _, t := range taints {
		switch {
		case len(naming.Key(t.Key)) > 0:
			return fmt.Errorf("node taint %q: %s", t.Key, strings.Join(naming.Key(t.Key), "; "))
		case len(naming.LabelValue(t.Value)) > 0:
			return fmt.Errorf("node taint %s: value %q: %s", t.Key, t.Value, strings.Join(naming.LabelValue(t.Value), "; "))
		case !slices.Contains(TaintEffects, string(t.Effect)):
			return fmt.Errorf("node taint %s: effect %q: want %s", t.Key, t.Effect, strings.Join(TaintEffects, ", "))
		case seen[identity{t.Key, t.Effect}]:
			return fmt.Errorf("node taint %s is there twice with effect %s", t.Key, t.Effect)
		}
		seen[identity{t.Key, t.Effect}] = true
	}
	return nil
}

func checkTolerations(all []corev1.Toleration) error {
	for _, t := range all {
		named := t.Key
		if named == "" {
			named = "of every taint"
		}
		switch {
		case t.Key != "" && len(naming.Key(t.Key)) > 0:
			return fmt.Errorf("toleration %q: %s", t.Key, strings.Join(naming.Key(t.Key), "; "))
		case t.Operator != "" && t.Operator != corev1.TolerationOpEqual && t.Operator != corev1.TolerationOpExists:
			return fmt.Errorf("toleration %s: operator %q: want Equal or Exists", named, t.Operator)
		case t.Key == "" && t.Operator != corev1.TolerationOpExists:
			return fmt.Errorf("a toleration without a key tolerates every taint: say so with operator = \"Exists\"")
		case t.Operator == corev1.TolerationOpExists && t.Value != "":
			return fmt.Errorf("toleration %s: operator Exists looks at no value: leave %q out", named, t.Value)
		case len(naming.LabelValue(t.Value)) > 0:
			return fmt.Errorf("toleration %s: value %q: %s", named, t.Value, strings.Join(naming.LabelValue(t.Value), "; "))
		case t.Effect != "" && !slices.Contains(TaintEffects, string(t.Effect)):
			return fmt.Errorf("toleration %s: effect %q: want %s, or none for all of them", named, t.Effect, strings.Join(TaintEffects, ", "))
		case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
			return fmt.Errorf("toleration %s: seconds count for effect NoExecute only", named)
		}
	}
	return nil
}
