package lists

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
)

// InCluster lists objects of one kind in a cluster, or in a project's clusters;
// resource makes their resource, which is one of kubeobject with an identity.
func InCluster(resource func() resource.Resource) func() list.ListResource {
	return newList(resource, objects{listed(resource())})
}

func listed(r resource.Resource) kubeobject.Listed {
	if wrapped, ok := r.(interface{ Unwrap() resource.Resource }); ok {
		r = wrapped.Unwrap()
	}
	l, ok := r.(kubeobject.Listed)
	if !ok {
		panic(fmt.Sprintf("a %T is no object in a cluster", r))
	}
	return l
}

type objects struct{ kubeobject.Listed }

func (o objects) filters() schema.Schema {
	description, _ := o.Listing()
	return schema.Schema{MarkdownDescription: description, Attributes: clusterSchema("Only those of this cluster")}
}

func (o objects) find(ctx context.Context, config tfsdk.Config, data *conn.Data) iter.Seq2[Object, diag.Diagnostics] {
	var f inCluster
	diags := config.Get(ctx, &f)
	_, plural := o.Listing()
	return inClusters(ctx, f, diags, data, onAPIServer(ctx, data, plural, func(n gke.ClusterName, k *kube.Client) ([]Object, error) {
		names, err := o.Find(ctx, k)
		var found []Object
		for _, name := range names {
			found = append(found, Object{ID: o.ID(n.String(), name), Name: fmt.Sprintf("%s/%s (%s)", n.Cluster, name, n.Location)})
		}
		return found, err
	}))
}

// onAPIServer is for inClusters: what find reads off each cluster's API server.
// plural names that in messages.
func onAPIServer(ctx context.Context, data *conn.Data, plural string, find func(gke.ClusterName, *kube.Client) ([]Object, error)) perCluster {
	return func(n gke.ClusterName, only bool, yield func(Object, diag.Diagnostics) bool) bool {
		k, err := data.Cluster(ctx, n.String())
		var found []Object
		if err == nil {
			found, err = find(n, k)
		}
		if errors.Is(err, gke.NotFound) && !only {
			return true // deleted since it was listed
		}
		if err != nil {
			what, why := fmt.Sprintf("Cannot list the %s of %s", plural, n), err.Error()
			// One cluster of many that does not answer hides nothing of the others.
			if !only {
				return yield(Object{}, diag.Diagnostics{diag.NewWarningDiagnostic(what, why)})
			}
			yield(Object{}, diag.Diagnostics{diag.NewErrorDiagnostic(what, why)})
			return false
		}
		for _, o := range found {
			if !yield(o, nil) {
				return false
			}
		}
		return true
	}
}
