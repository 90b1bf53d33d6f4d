package queue

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// holderField is the field of Workloads that the server selects by, from Kueue
// 0.16 on: the queue whose quota one holds, or that it held when it finished.
const holderField = "status.admission.clusterQueue"

// doorsOf are the LocalQueues that lead to a queue.
func doorsOf(ctx context.Context, k *kube.Client, queue string) (map[client.ObjectKey]bool, error) {
	leads := map[client.ObjectKey]bool{}
	var page kueue.LocalQueueList
	err := k.Pages(ctx, &page, "of queue "+queue, func() error {
		for i := range page.Items {
			if string(page.Items[i].Spec.ClusterQueue) == queue {
				leads[client.ObjectKeyFromObject(&page.Items[i])] = true
			}
		}
		return nil
	})
	return leads, err
}

// eachWorkload calls do with every Workload that may hold quota of a queue, or
// wait at one of its doors, and with others. What changes while the pages are
// read may come twice, as it was and as it is. An older server, which selects by
// no field, sends all that there are.
func eachWorkload(ctx context.Context, k *kube.Client, queue string, doors map[client.ObjectKey]bool, do func(*kueue.Workload)) error {
	var page kueue.WorkloadList
	read := func(opts ...client.ListOption) error {
		return k.Pages(ctx, &page, "for queue "+queue, func() error {
			for i := range page.Items {
				do(&page.Items[i])
			}
			return nil
		}, opts...)
	}
	namespaces := map[string]bool{}
	for door := range doors {
		namespaces[door.Namespace] = true
	}
	for _, ns := range slices.Sorted(maps.Keys(namespaces)) {
		err := read(client.InNamespace(ns), client.MatchingFields{holderField: ""})
		if apierrors.IsBadRequest(err) {
			return read()
		}
		if err != nil {
			return err
		}
	}
	err := read(client.MatchingFields{holderField: queue})
	if apierrors.IsBadRequest(err) {
		return read()
	}
	return err
}

// holds tells whether a Workload holds quota of a queue.
func holds(wl *kueue.Workload, queue string) bool {
	a := wl.Status.Admission
	return a != nil && string(a.ClusterQueue) == queue && meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved) && !finished(wl)
}

func finished(wl *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished)
}

// Reserving are the jobs that hold quota of a queue.
func Reserving(ctx context.Context, k *kube.Client, queue string) (jobs []Job, err error) {
	err = eachWorkload(ctx, k, queue, nil, func(wl *kueue.Workload) {
		if holds(wl, queue) {
			jobs = append(jobs, job(wl))
		}
	})
	return jobs, err
}
