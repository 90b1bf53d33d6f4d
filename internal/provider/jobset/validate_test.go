package jobset

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// What ValidateConfig checks has no validator of its own: a mistake would be
// told twice. And every timeout says what it is for, in the same style.
func TestSchemaSaysThingsOnce(t *testing.T) {
	var s resource.SchemaResponse
	(&jobsetResource{}).Schema(t.Context(), resource.SchemaRequest{}, &s)
	for _, name := range []string{"name", "image", "queue", "priority", "run_id"} {
		if n := len(s.Schema.Attributes[name].(schema.StringAttribute).Validators); n > 0 {
			t.Errorf("%s has %d validators beside ValidateConfig", name, n)
		}
	}
	for name, a := range s.Schema.Attributes["timeouts"].(schema.SingleNestedAttribute).Attributes {
		if text := a.GetDescription() + a.GetMarkdownDescription(); !strings.HasPrefix(text, "How long to wait ") {
			t.Errorf("timeouts.%s: %q", name, text)
		}
	}
}
