package attr

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// stringCheck is a validator of known, non-null strings. A problem becomes an
// error at the attribute, so check says only what is wrong and what is right.
type stringCheck struct {
	wants   string
	summary string
	check   func(string) error
}

var _ validator.String = stringCheck{}

func (v stringCheck) Description(context.Context) string         { return v.wants }
func (v stringCheck) MarkdownDescription(context.Context) string { return v.wants }

func (v stringCheck) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if err := v.check(req.ConfigValue.ValueString()); err != nil {
		at, detail := place(req.Path, fmt.Sprintf("= %q", req.ConfigValue.ValueString()), err.Error())
		resp.Diagnostics.AddAttributeError(at, v.summary, detail)
	}
}

// stringsCheck is a validator of lists of strings, which holds the known ones
// against each other.
type stringsCheck struct {
	wants   string
	summary string
	check   func([]string) error
}

var _ validator.List = stringsCheck{}

func (v stringsCheck) Description(context.Context) string         { return v.wants }
func (v stringsCheck) MarkdownDescription(context.Context) string { return v.wants }

func (v stringsCheck) ValidateList(_ context.Context, req validator.ListRequest, resp *validator.ListResponse) {
	var known []string
	for _, e := range req.ConfigValue.Elements() {
		if s, ok := e.(interface{ ValueString() string }); ok && !e.IsNull() && !e.IsUnknown() {
			known = append(known, s.ValueString())
		}
	}
	if err := v.check(known); err != nil {
		resp.Diagnostics.AddAttributeError(path.Root(req.Path.Steps()[0].String()), v.summary, fmt.Sprintf("%s: %s", req.Path, err))
	}
}

// CheckStrings makes a validator of a function that refuses a list of strings
// with an error.
func CheckStrings(summary, wants string, check func([]string) error) validator.List {
	return stringsCheck{wants: wants, summary: summary, check: check}
}

// place is where to report something about the value at a path, and how to put
// it: Terraform finds the line of top-level attributes only, and shows the
// first line of the resource for anything deeper. So the text says where.
func place(at path.Path, value, text string) (path.Path, string) {
	steps := at.Steps()
	if len(steps) <= 1 {
		return at, text
	}
	root, _ := steps[0].(path.PathStepAttributeName)
	return path.Root(string(root)), fmt.Sprintf("%s %s: %s", at, value, text)
}

// Check makes a validator of a function that refuses a string with an error.
func Check(summary, wants string, check func(string) error) validator.String {
	return stringCheck{wants: wants, summary: summary, check: check}
}

// ClusterPath accepts projects/P/locations/L/clusters/C.
func ClusterPath() validator.String {
	return Check("Invalid cluster", "a cluster path: projects/PROJECT/locations/LOCATION/clusters/CLUSTER", func(s string) error {
		_, err := gke.ParseClusterName(s)
		return err
	})
}

var dnsLabel = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// DNSLabel accepts names of up to maxLength characters: a lowercase letter,
// then lowercase letters, digits and dashes, no dash at the end.
func DNSLabel(maxLength int) validator.String {
	wants := fmt.Sprintf("1 to %d lowercase letters, digits and dashes, starting with a letter and not ending with a dash", maxLength)
	return Check("Invalid name", wants, func(s string) error {
		switch {
		case len(s) > maxLength:
			return fmt.Errorf("%q has %d characters; the most is %d", s, len(s), maxLength)
		case !dnsLabel.MatchString(s):
			return fmt.Errorf("%q is not a valid name: want %s", s, wants)
		}
		return nil
	})
}

var (
	gcpLabelKey   = regexp.MustCompile(`^[a-z][-_a-z0-9]{0,62}$`)
	gcpLabelValue = regexp.MustCompile(`^[-_a-z0-9]{0,63}$`)
)

// OwnerName accepts what can be written as the value of a Google Cloud label.
func OwnerName() validator.String {
	const wants = "1 to 63 lowercase letters, digits, dashes and underscores"
	return Check("Invalid owner", wants, func(s string) error {
		if s == "" || !gcpLabelValue.MatchString(s) {
			return fmt.Errorf("%q cannot be written on what this configuration makes: want %s", s, wants)
		}
		return nil
	})
}

// resourceLabels checks Google Cloud labels.
type resourceLabels struct{}

// ResourceLabels accepts a map of Google Cloud labels, and refuses the keys
// under which the provider writes ownership.
func ResourceLabels() validator.Map { return resourceLabels{} }

func (resourceLabels) Description(context.Context) string {
	return "keys start with a lowercase letter; keys and values have up to 63 lowercase letters, digits, dashes and underscores"
}

func (v resourceLabels) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v resourceLabels) ValidateMap(ctx context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	for _, key := range sortedKeys(req.ConfigValue.Elements()) {
		refuse := func(why string) {
			resp.Diagnostics.Append(diag.NewAttributeErrorDiagnostic(req.Path.AtMapKey(key), "Invalid label", why))
		}
		if strings.HasPrefix(key, gke.LabelPrefix) {
			refuse(fmt.Sprintf("%q: labels that start with %s say who owns an object and are written by the provider only.", key, gke.LabelPrefix))
			continue
		}
		if strings.HasPrefix(key, "goog-") {
			refuse(fmt.Sprintf("%q: labels that start with goog- are Google's own: choose another key.", key))
			continue
		}
		if !gcpLabelKey.MatchString(key) {
			refuse(fmt.Sprintf("%q is not a valid label key: want %s.", key, v.Description(ctx)))
		}
		value, ok := req.ConfigValue.Elements()[key].(interface{ ValueString() string })
		if ok && !gcpLabelValue.MatchString(value.ValueString()) {
			refuse(fmt.Sprintf("%q is not a valid label value: want %s.", value.ValueString(), v.Description(ctx)))
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
