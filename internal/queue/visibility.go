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

// PendingJobs are the uids of the jobs that wait in a LocalQueue, as Kueue tells
// it; nil when nobody says (see pendingOrder).
func PendingJobs(ctx context.Context, k *kube.Client, namespace, name string) (map[string]bool, error) {
	cfg := rest.CopyConfig(k.Config)
	cfg.NegotiatedSerializer = scheme.Codecs
	raw, err := rest.UnversionedRESTClientForConfigAndClient(cfg, k.HTTP)
	if err != nil {
		return nil, fmt.Errorf("preparing a client for cluster %s: %w", k.Name, err)
	}
	for _, version := range visibilityVersions {
		uids := map[string]bool{}
		for offset := 0; ; offset += visibilityPage {
			var page visibility.PendingWorkloadsSummary
			page, err = pendingPage(ctx, raw, offset, version, "namespaces", namespace, "localqueues", name, "pendingworkloads")
			if err != nil {
				break
			}
			for _, w := range page.Items {
				for _, owner := range w.OwnerReferences {
					uids[string(owner.UID)] = true
				}
			}
			if len(page.Items) < visibilityPage {
				return uids, nil
			}
		}
		if ctx.Err() != nil {
			return nil, &kube.Error{Verb: "reading", Kind: "what waits in queue", Key: namespace + "/" + name, Cluster: k.Name, Err: err}
		}
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	return nil, nil
}

func pendingPage(ctx context.Context, raw rest.Interface, offset int, version string, path ...string) (page visibility.PendingWorkloadsSummary, err error) {
	text, err := raw.Get().
		AbsPath(append([]string{"/apis/visibility.kueue.x-k8s.io", version}, path...)...).
		Param("limit", strconv.Itoa(visibilityPage)).Param("offset", strconv.Itoa(offset)).
		DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(text, &page)
	}
	return page, err
}

func pendingPages(ctx context.Context, raw rest.Interface, version, queue string) (map[client.ObjectKey]int, error) {
	order := map[client.ObjectKey]int{}
	for {
		page, err := pendingPage(ctx, raw, len(order), version, "clusterqueues", queue, "pendingworkloads")
		if err != nil {
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
