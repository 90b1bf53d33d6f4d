package gke

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
)

// domains of label keys that GKE and Kubernetes keep for themselves: "Node
// labels with key ... are managed by GKE or Kubernetes and must not be manually
// specified" (https://github.com/GoogleCloudPlatform/magic-modules/pull/11878).
var reservedDomains = []string{"kubernetes.io", "k8s.io", "cloud.google.com", "gke.io"}

func reservedDomain(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	return ok && slices.ContainsFunc(reservedDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

func refuseLabels(_ SlicePool, np *containerpb.NodePool) string {
	labels := np.GetConfig().GetLabels()
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if reservedDomain(key) {
			return fmt.Sprintf("node.labels: %s is reserved for GKE and Kubernetes: use a domain of your own, such as example.com/%s", key, key[strings.LastIndexByte(key, '/')+1:])
		}
		if why := naming.Key(key); len(why) > 0 {
			return fmt.Sprintf("node.labels: %q is not a label key: %s", key, why[0])
		}
		if why := naming.LabelValue(labels[key]); len(why) > 0 {
			return fmt.Sprintf("node.labels: %s = %q is not a label value: %s", key, labels[key], why[0])
		}
	}
	return ""
}

// refuseTaints leaves cloud.google.com/... alone: people put its gke-spot on
// their pools, and GKE lets them.
func refuseTaints(_ SlicePool, np *containerpb.NodePool) string {
	seen := map[string]bool{}
	for _, t := range np.GetConfig().GetTaints() {
		key := t.GetKey()
		if key == accelerator.TaintKey {
			return "node.taints: GKE taints TPU nodes with " + accelerator.TaintKey + " by itself: leave it out"
		}
		if strings.HasPrefix(key, "node.kubernetes.io/") || strings.HasPrefix(key, "node.cloudprovider.kubernetes.io/") {
			return fmt.Sprintf("node.taints: %s is Kubernetes' own word on a node's health, which it sets and removes by itself: use a domain of your own", key)
		}
		if why := naming.Key(key); len(why) > 0 {
			return fmt.Sprintf("node.taints: %q is not a taint key: %s", key, why[0])
		}
		if why := naming.LabelValue(t.GetValue()); len(why) > 0 {
			return fmt.Sprintf("node.taints: %s = %q is not a taint value: %s", key, t.GetValue(), why[0])
		}
		both := key + ":" + t.GetEffect().String()
		if seen[both] {
			return fmt.Sprintf("node.taints: %s is there twice with the same effect: leave one out", key)
		}
		seen[both] = true
	}
	return ""
}
