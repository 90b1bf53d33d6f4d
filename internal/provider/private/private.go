// Package private keeps values in a resource's private state, which Terraform
// saves with its state and shows to nobody.
package private

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// State is a resource's private state, as requests and responses have it.
type State interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// Set keeps a value that JSON can express.
func Set(ctx context.Context, s State, key string, v any) diag.Diagnostics {
	data, err := json.Marshal(v)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Internal error", "writing "+key+" to private state: "+err.Error())}
	}
	return s.SetKey(ctx, key, data)
}

// Get reads what Set kept. It is the zero value where there is nothing, because
// the state was imported just now, moved here or written by an earlier version,
// and where it cannot be read.
func Get[T any](ctx context.Context, s State, key string) (T, diag.Diagnostics) {
	var v, none T
	data, diags := s.GetKey(ctx, key)
	if len(data) > 0 && json.Unmarshal(data, &v) != nil {
		return none, diags
	}
	return v, diags
}

// Object is the key of a resource's id. With create_before_destroy, or when a
// resource gets another address, two objects in the state name the same thing
// in GKE for a while: the old one and the one that took it over. A run may end
// in that while, and the next one deletes the old object without knowing of the
// other, for Terraform tells neither. So each object has an id, in private state
// and in the labels of what it holds, and a deletion leaves what names another.
const Object = "object"

// NewObject makes an id.
func NewObject() string { return strings.ToLower(rand.Text()[:16]) }
