package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// alone removes from an object what others wrote into it and asked has not:
// server-side apply leaves such fields to them, forced or not. live is what the
// apply answered, and becomes what the object is then. Metadata and status are
// everybody's.
func (c *Client) alone(ctx context.Context, asked, live *unstructured.Unstructured) error {
	without := map[string]any{}
	for _, m := range live.GetManagedFields() {
		if m.Manager == FieldManager || m.Subresource != "" || m.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(m.FieldsV1.Raw, &fields); err != nil {
			return fmt.Errorf("reading what %s owns of %s %s on cluster %s: %w", m.Manager, live.GetKind(), live.GetName(), c.Name, err)
		}
		for _, everybodys := range []string{"f:metadata", "f:status", "f:apiVersion", "f:kind"} {
			delete(fields, everybodys)
		}
		others(fields, asked.Object, live.Object, without)
	}
	if len(without) == 0 {
		return nil
	}
	patch, err := json.Marshal(without)
	if err != nil {
		return fmt.Errorf("encoding a change of %s %s: %w", live.GetKind(), live.GetName(), err)
	}
	return c.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager))
}

// others adds to patch, a merge patch, what takes the fields of a manager out of
// live that are not in asked. A list that it has its own elements in becomes the
// one that is asked for.
func others(fields, asked, live, patch map[string]any) {
	for key, inside := range fields {
		name, isField := strings.CutPrefix(key, "f:")
		value, exists := live[name]
		if !isField || !exists {
			continue
		}
		wanted, has := asked[name]
		if !has {
			patch[name] = nil
			continue
		}
		below, _ := inside.(map[string]any)
		from, isMap := value.(map[string]any)
		to, wantsMap := wanted.(map[string]any)
		switch {
		case len(below) == 0: // a value, which the apply has made ours
		case isMap && wantsMap:
			more, _ := patch[name].(map[string]any)
			if more == nil {
				more = map[string]any{}
			}
			if others(below, to, from, more); len(more) > 0 {
				patch[name] = more
			}
		case !reflect.DeepEqual(value, wanted):
			patch[name] = wanted
		}
	}
}
