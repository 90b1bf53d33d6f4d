package attr_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
)

// Projects and locations are names, not paths or words of the console.
func TestPlaces(t *testing.T) {
	project, location := attr.Project("the provider's"), attr.Location("the provider's")
	for _, c := range []struct {
		check validator.String
		value string
		want  string // "" is accepted
	}{
		{project, "acme", ""},
		{project, "example.com:acme", ""},
		{project, "123456", ""},
		{project, "", "project is empty: leave it out to use the provider's"},
		{project, "projects/acme", `want the project's id alone, "acme"`},
		{project, "My Project", "is not a project's id"},
		{location, "us-west4", ""},
		{location, "us-west4-a", ""},
		{location, "us-central1-ai1a", ""},
		{location, "northamerica-northeast1", ""},
		{location, "", "location is empty: leave it out to use the provider's"},
		{location, "-", "is not a location"},
		{location, "zones/us-west4-a", "want a zone such as us-west4-a or a region such as us-west4"},
	} {
		var resp validator.StringResponse
		c.check.ValidateString(t.Context(), validator.StringRequest{Path: path.Root("x"), ConfigValue: types.StringValue(c.value)}, &resp)
		got := ""
		for _, d := range resp.Diagnostics {
			got += d.Detail()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.value, got, c.want)
		}
	}
}
