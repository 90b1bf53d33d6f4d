package training

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Cancel ends a run for good and keeps its object: it is suspended, which frees
// its slices and quota, and says that nobody will resume it. A run that has
// finished is a *FinishedError. Cancelling again changes nothing.
func Cancel(ctx context.Context, c *kube.Client, key types.NamespacedName, now time.Time) error {
	if err := SetActive(ctx, c, key, false, ""); err != nil {
		return err
	}
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	found, err := c.Fetch(ctx, js)
	if err != nil || found && js.Annotations[AnnotationCancelled] != "" {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{AnnotationCancelled: now.UTC().Format(time.RFC3339)}}})
	if err != nil {
		return err
	}
	err = c.Patch(ctx, js, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(kube.FieldManager))
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return &NotFoundError{Cluster: c.Name, Namespace: key.Namespace, Name: key.Name}
	}
	return &kube.Error{Verb: "marking as cancelled", Kind: "JobSet", Key: key.String(), Cluster: c.Name, Err: err}
}
