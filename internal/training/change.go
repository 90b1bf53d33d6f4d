package training

import (
	"context"
	"encoding/json"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// Change alters what may change while a job lives: labels, annotations, the
// priority class and the TTL. before says what to take away. It patches only
// these, so nothing of Kueue's is touched.
func Change(ctx context.Context, c *kube.Client, before, after Spec) error {
	patch, err := changePatch(before, after)
	if err != nil || patch == nil {
		return err
	}
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: after.Namespace, Name: after.Name}}
	if err := c.Patch(ctx, js, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(kube.FieldManager)); err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return &NotFoundError{Cluster: c.Name, Namespace: after.Namespace, Name: after.Name}
		}
		return &kube.Error{Verb: "changing", Kind: "JobSet", Key: after.Namespace + "/" + after.Name, Cluster: c.Name, Err: err}
	}
	return nil
}

// changePatch is the JSON merge patch from before to after, nil when nothing
// that may change differs.
func changePatch(before, after Spec) ([]byte, error) {
	was, is := before.JobSet(), after.JobSet()
	for _, key := range []string{AnnotationSpecHash, AnnotationSpec} { // say how the job was made
		delete(was.Annotations, key)
		delete(is.Annotations, key)
	}
	// A job that was made without starting has no queue yet, or has one since:
	// SetActive's business.
	delete(was.Labels, queue.LabelQueueName)
	delete(is.Labels, queue.LabelQueueName)
	metadata := map[string]any{}
	for field, maps := range map[string][2]map[string]string{
		"labels":      {was.Labels, is.Labels},
		"annotations": {was.Annotations, is.Annotations},
	} {
		if diff := mapPatch(maps[0], maps[1]); len(diff) > 0 {
			metadata[field] = diff
		}
	}
	patch := map[string]any{}
	if len(metadata) > 0 {
		patch["metadata"] = metadata
	}
	a, b := was.Spec.TTLSecondsAfterFinished, is.Spec.TTLSecondsAfterFinished
	if (a == nil) != (b == nil) || a != nil && *a != *b {
		patch["spec"] = map[string]any{"ttlSecondsAfterFinished": b}
	}
	if len(patch) == 0 {
		return nil, nil
	}
	return json.Marshal(patch)
}

func mapPatch(was, is map[string]string) map[string]any {
	diff := map[string]any{}
	for key := range maps.Keys(was) {
		if _, ok := is[key]; !ok {
			diff[key] = nil
		}
	}
	for key, value := range is {
		if had, ok := was[key]; !ok || had != value {
			diff[key] = value
		}
	}
	return diff
}
