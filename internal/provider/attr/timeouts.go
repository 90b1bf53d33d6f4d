package attr

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// Timeouts is the optional `timeouts` attribute.
func Timeouts(ctx context.Context, opts timeouts.Opts) schema.Attribute {
	a := timeouts.Attributes(ctx, opts)
	if nested, ok := a.(schema.SingleNestedAttribute); ok {
		nested.MarkdownDescription = "How long operations may take, as durations such as `30m` or `1h30m`."
		for name, inner := range nested.Attributes {
			if text, ok := inner.(schema.StringAttribute); ok {
				text.Validators = []validator.String{PositiveDuration()}
				nested.Attributes[name] = text
			}
		}
		return nested
	}
	return a
}
