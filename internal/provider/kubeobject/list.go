package kubeobject

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Listing is how the objects of a kind are listed.
type Listing struct {
	Description string
	Objects     func() client.ObjectList // an empty list of them
	Hidden      func(client.Object) bool // tells which are not to be listed; nil = none
}

// Listed is a resource of this package, for whoever lists its objects.
type Listed interface {
	// Listing documents what is listed, and names the objects in messages.
	Listing() (description, plural string)
	// Find returns the names of the objects in a cluster, whatever made them.
	Find(ctx context.Context, k *kube.Client) (names []string, err error)
	// ID is the id of an object by its cluster's path and its name.
	ID(cluster, name string) string
}

// Listing implements Listed.
func (r *object[M, P]) Listing() (description, plural string) {
	return r.kind.Listing.Description, r.kind.Collection
}

// ID implements Listed.
func (r *object[M, P]) ID(cluster, name string) string {
	return cluster + "/" + r.kind.Collection + "/" + name
}

// Find implements Listed. What is being deleted is not listed, as a refresh
// drops it.
func (r *object[M, P]) Find(ctx context.Context, k *kube.Client) (names []string, err error) {
	list := r.kind.Listing.Objects()
	err = k.Pages(ctx, list, "for terraform query", func() error {
		return meta.EachListItem(list, func(o runtime.Object) error {
			live, ok := o.(client.Object)
			if ok && live.GetDeletionTimestamp() == nil && (r.kind.Listing.Hidden == nil || !r.kind.Listing.Hidden(live)) {
				names = append(names, live.GetName())
			}
			return nil
		})
	})
	return names, err
}
