package controlplane

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestMerge(t *testing.T) {
	want := complete(tpuHosts("pool")[0], "pool")
	have := want.DeepCopy()
	have.Labels["by-others"] = "stays"
	have.Spec.Taints = append(have.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	if differs(have, want) {
		t.Error("labels and taints of others count as a difference")
	}
	want.Spec.Taints[0].Value = "other"
	want.Labels["new"] = "label"
	if !differs(have, want) {
		t.Error("a new label and another taint are no difference")
	}
	merge(have, want)
	if differs(have, want) || have.Labels["by-others"] != "stays" || len(have.Spec.Taints) != 2 {
		t.Errorf("merged: labels %v, taints %v", have.Labels, have.Spec.Taints)
	}
	if open(have) {
		t.Error("a node with the taint of new nodes is open")
	}
}
