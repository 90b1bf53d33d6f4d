package kubeobject

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// Writer is one creation or update of an object.
type Writer[M any] struct {
	*kube.Client
	Before *M // what state had; nil in a creation
	Diags  *diag.Diagnostics

	child *conn.Child
	kind  Kind
	id    string
	made  bool
	save  func()
}

// Apply writes the object that the resource is. In a creation its name must be
// free, or what has it must be this configuration's own, which is then taken
// over with a warning. From here on the model is in state as it stands: fill in
// what is computed before, and an error afterwards does not lose the object.
func (w *Writer[M]) Apply(ctx context.Context, obj client.Object) error {
	taken, err := w.claim(ctx, obj)
	if err != nil {
		return err
	}
	if err := w.Part(ctx, obj); err != nil {
		return err
	}
	if taken {
		w.warn(obj.GetName())
	}
	w.made = true
	w.save()
	return nil
}

// Part writes a further object, which belongs to the one that the resource is.
// Whatever has its name is overwritten.
func (w *Writer[M]) Part(ctx context.Context, obj client.Object) error {
	w.child.Stamp(obj)
	return conn.ApplyRetry(ctx, w.Client, obj, !w.kind.Shared)
}

// Claim makes sure that a further object may be written: that nothing has its
// name, or only what this configuration made.
func (w *Writer[M]) Claim(ctx context.Context, obj client.Object) error {
	_, err := w.child.Claim(ctx, w.Client, obj, w.kind.Type, w.id)
	return err
}

func (w *Writer[M]) claim(ctx context.Context, obj client.Object) (taken bool, err error) {
	if w.Before != nil {
		return false, nil
	}
	return w.child.Claim(ctx, w.Client, obj, w.kind.Type, w.id)
}

// warn tells of an object that was there already. Without an owner nobody can
// say which configuration made it.
func (w *Writer[M]) warn(name string) {
	noun := strings.ToUpper(w.kind.Noun[:1]) + w.kind.Noun[1:]
	if owner := w.child.Owner(); owner != "" {
		w.Diags.AddWarning(noun+" taken over", fmt.Sprintf("%s %s was on cluster %s already, made by a configuration with owner %q, as this one has: "+
			"most likely by an apply whose state was lost. It now is as this configuration says.", noun, name, w.Name, owner))
		return
	}
	w.Diags.AddWarning(noun+" taken over", fmt.Sprintf("%s %s was on cluster %s already, made by a configuration without an owner, as this one is: "+
		"by an apply whose state was lost, or by another configuration. It now is as this configuration says. "+
		"If another one manages it as well, take it out of one of the two (terraform state rm); set owner on the provider to tell configurations apart.", noun, name, w.Name))
}
