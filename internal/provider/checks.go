package provider

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	tpuattr "github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
)

// checkCredentials leaves a file that is not there to the plan: a configuration
// is often validated where there are no credentials.
func checkCredentials(text string) error {
	err := gke.CheckCredentials(text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// unlessBoth checks one of two attributes that exclude each other. When both are
// set that is the one thing to say, and one of them says it: what is wrong with
// either by itself may not matter.
type unlessBoth struct {
	check validator.String
	other string
	says  bool
}

// Description implements validator.Describer.
func (v unlessBoth) Description(ctx context.Context) string {
	return v.check.Description(ctx) + ", without " + v.other
}

// MarkdownDescription implements validator.Describer.
func (v unlessBoth) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (v unlessBoth) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	var other types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(v.other), &other)...)
	switch {
	case other.IsNull() || other.IsUnknown():
		v.check.ValidateString(ctx, req, resp)
	case v.says:
		resp.Diagnostics.AddAttributeError(req.Path, "Two sets of credentials",
			fmt.Sprintf("Both %s and %s are set, and only one can be used: take the other out.", req.Path, v.other))
	}
}

// serviceAccount is an email address of IAM's own domains, or a unique id.
var serviceAccount = regexp.MustCompile(`^([^@\s/]+@([a-z0-9.-]+\.)?gserviceaccount\.com|[0-9]{10,})$`)

func checkAccount(s string) error {
	if serviceAccount.MatchString(s) {
		return nil
	}
	return fmt.Errorf("%q is not a service account: want its email address, such as NAME@PROJECT.iam.gserviceaccount.com, without a prefix", s)
}

// duration accepts durations of up to most.
func duration(most time.Duration) validator.String {
	return tpuattr.Check("Invalid duration", "a duration such as 30s or 2m", func(s string) error {
		d, err := parseDuration(s)
		if err == nil && d > most {
			return fmt.Errorf("%q is too long: the most is %v minutes", s, most.Minutes())
		}
		return err
	})
}

var unitless = regexp.MustCompile(`^[0-9]+$`)

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case unitless.MatchString(s):
		return 0, fmt.Errorf("%q has no unit: write %ss for seconds, or another unit (ms, m, h)", s, s)
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration: want a number with a unit, such as 500ms, 30s or 2m", s)
	case d <= 0:
		return 0, fmt.Errorf("%q is not more than zero", s)
	}
	return d, nil
}
