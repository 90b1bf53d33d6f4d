package jobcontrollers

import (
	"cmp"
	"context"

	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Listing implements kubeobject.Listed.
func (r *Resource) Listing() (description, plural string) {
	return "Lists the JobSet and Kueue controllers of clusters: one result for each cluster that has any of them, whoever installed them.", "job controllers"
}

// ID implements kubeobject.Listed. A cluster has its job controllers once.
func (r *Resource) ID(cluster, _ string) string { return cluster + suffix }

// Find implements kubeobject.Listed.
func (r *Resource) Find(ctx context.Context, k *kube.Client) (names []string, err error) {
	c, err := controllers.Installed(ctx, k)
	if err != nil {
		return nil, err
	}
	status, err := controllers.Observe(ctx, k, *cmp.Or(c, &controllers.Config{}))
	if err != nil || status.State == controllers.Absent {
		return nil, err
	}
	return []string{"job controllers"}, nil
}
