package conn

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Strings is a known map of strings; null and unknown are nil.
func Strings(ctx context.Context, m types.Map, diags *diag.Diagnostics) map[string]string {
	if m.IsNull() || m.IsUnknown() {
		return nil
	}
	var out map[string]string
	diags.Append(m.ElementsAs(ctx, &out, false)...)
	return out
}

// StringMap is the other way round; an empty map is null.
func StringMap(m map[string]string) types.Map {
	if len(m) == 0 {
		return types.MapNull(types.StringType)
	}
	values := map[string]attr.Value{}
	for k, v := range m {
		values[k] = types.StringValue(v)
	}
	return types.MapValueMust(types.StringType, values)
}

// OwnedStrings is what a refresh stores of an object's labels or annotations
// (field says which): the live values of the keys that state has, and of the
// keys that our field manager owns. Everybody else's are no business of ours.
func OwnedStrings(state types.Map, live map[string]string, obj client.Object, field string) types.Map {
	keys := ownedKeys(obj, field)
	for k := range state.Elements() {
		keys[k] = true
	}
	out := map[string]string{}
	for k := range keys {
		if v, ok := live[k]; ok && k != queue.LabelManagedBy && k != training.LabelOwner {
			out[k] = v
		}
	}
	if len(out) == 0 && !state.IsNull() && len(state.Elements()) == 0 {
		return state // written as {}
	}
	return StringMap(out)
}

// ownedKeys are the keys of metadata.<field> that we applied.
func ownedKeys(obj client.Object, field string) map[string]bool {
	keys := map[string]bool{}
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != kube.FieldManager || entry.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Metadata map[string]json.RawMessage `json:"f:metadata"`
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(entry.FieldsV1.Raw, &owned) != nil || json.Unmarshal(owned.Metadata["f:"+field], &fields) != nil {
			continue
		}
		for name := range fields {
			if key, ok := strings.CutPrefix(name, "f:"); ok {
				keys[key] = true
			}
		}
	}
	return keys
}
