package attr

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
)

// kubernetesLabels checks labels of Kubernetes objects.
type kubernetesLabels struct{}

// KubernetesLabels accepts a map of Kubernetes labels.
func KubernetesLabels() validator.Map { return kubernetesLabels{} }

func (kubernetesLabels) Description(context.Context) string {
	return "keys are [prefix/]name, values have up to 63 letters, digits, dashes, underscores and dots"
}

func (v kubernetesLabels) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (kubernetesLabels) ValidateMap(_ context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	for _, key := range sortedKeys(req.ConfigValue.Elements()) {
		at := req.Path.AtMapKey(key)
		if problems := naming.Key(key); len(problems) > 0 {
			resp.Diagnostics.AddAttributeError(at, "Invalid label", fmt.Sprintf("key %q: %s", key, strings.Join(problems, "; ")))
		}
		value, ok := req.ConfigValue.Elements()[key].(interface{ ValueString() string })
		if !ok {
			continue
		}
		if problems := naming.LabelValue(value.ValueString()); len(problems) > 0 {
			resp.Diagnostics.AddAttributeError(at, "Invalid label", fmt.Sprintf("%s = %q: %s", key, value.ValueString(), strings.Join(problems, "; ")))
		}
	}
}

// Duration accepts durations from zero up, such as 30s, 10m or 24h.
func Duration() validator.String {
	return Check("Invalid duration", "a duration such as 30s, 10m or 24h", func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("%q is not a duration: want a number with a unit, such as 30s, 10m or 24h", s)
		}
		if d < 0 {
			return fmt.Errorf("%q is negative", s)
		}
		return nil
	})
}

// PositiveDuration accepts durations longer than none.
func PositiveDuration() validator.String {
	return Check("Invalid duration", "a duration longer than 0, such as 30s, 10m or 24h", func(s string) error {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return fmt.Errorf("%q is not a duration: want a number with a unit, such as 30s, 10m or 24h", s)
		case d <= 0:
			return fmt.Errorf("%q is no time at all: want a duration longer than 0, such as 30s, 10m or 24h", s)
		}
		return nil
	})
}
