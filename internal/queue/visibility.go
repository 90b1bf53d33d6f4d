package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// visibilityPage is how many waiting Workloads one answer holds: Kueue's own
// default.
const visibilityPage = 1000

// visibilityVersions are those of Kueue's visibility API, the newest first; what
// is read here is the same in all of them.
var visibilityVersions = []string{"v1beta2", "v1beta1"}

// pendingOrder is the order in which Kueue will look at what waits in a queue,
// by Workload, from 0. told is false when nobody says: the API is not installed,
// does not answer, or this account may not use it.
func pendingOrder(ctx context.Context, k *kube.Client, queue string) (order map[client.ObjectKey]int, told bool, err error) {
	cfg := rest.CopyConfig(k.Config)
	cfg.NegotiatedSerializer = scheme.Codecs
	raw, err := rest.UnversionedRESTClientForConfigAndClient(cfg, k.HTTP)
	if err != nil {
		return nil, false, fmt.Errorf("preparing a client for cluster %s: %w", k.Name, err)
	}
	for _, version := range visibilityVersions {
		order, err = pendingPages(ctx, raw, version, queue)
		if err == nil {
			return order, true, nil
		}
		if ctx.Err() != nil {
			return nil, false, &kube.Error{Verb: "reading", Kind: "the order of queue", Key: queue, Cluster: k.Name, Err: err}
		}
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	return nil, false, nil
}

func pendingPages(ctx context.Context, raw rest.Interface, version, queue string) (map[client.ObjectKey]int, error) {
	order := map[client.ObjectKey]int{}
	for {
		text, err := raw.Get().
			AbsPath("/apis/visibility.kueue.x-k8s.io", version, "clusterqueues", queue, "pendingworkloads").
			Param("limit", strconv.Itoa(visibilityPage)).Param("offset", strconv.Itoa(len(order))).
			DoRaw(ctx)
		if err != nil {
			return nil, err
		}
		var page visibility.PendingWorkloadsSummary
		if err := json.Unmarshal(text, &page); err != nil {
			return nil, err
		}
		before := len(order)
		for _, w := range page.Items {
			key := client.ObjectKey{Namespace: w.Namespace, Name: w.Name}
			if _, had := order[key]; !had {
				order[key] = len(order)
			}
		}
		if len(page.Items) < visibilityPage || len(order) == before {
			return order, nil
		}
	}
}
