package cluster

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
)

// The data source tells what is, never what a change does, what happens without
// it or what GKE would refuse: nobody sets anything there.
func TestDataSourceSpeaksOfReading(t *testing.T) {
	wrong := regexp.MustCompile("(?i)chang|[^_]default|made anew|new cluster|without it|leav|needs|at least|to avoid|`\\[\\]`|`{}`|the plan")
	var resp datasource.SchemaResponse
	(&source{}).Schema(context.Background(), datasource.SchemaRequest{}, &resp)
	seen := map[string]bool{}
	var walk func(in string, attrs map[string]schema.Attribute)
	walk = func(in string, attrs map[string]schema.Attribute) {
		for name, a := range attrs {
			seen[in+name] = true
			about := a.GetMarkdownDescription()
			told := about
			if in == "" && a.IsOptional() { // project and location
				told = strings.TrimSuffix(told, " The default is the provider's.")
			}
			if in+name == "network" {
				told = strings.Replace(told, "`default`", "", 1)
			}
			if found := wrong.FindString(told); found != "" || !strings.HasSuffix(about, ".") {
				t.Errorf("%s%s speaks of %q, or is no sentence: %s", in, name, found, about)
			}
			switch a := a.(type) {
			case schema.SingleNestedAttribute:
				walk(in+name+".", a.Attributes)
			case schema.MapNestedAttribute:
				walk(in+name+".", a.NestedObject.Attributes)
			case schema.ListNestedAttribute:
				walk(in+name+".", a.NestedObject.Attributes)
			}
		}
	}
	walk("", resp.Schema.Attributes)
	for name := range readTexts {
		if !seen[name] {
			t.Errorf("the text of %s belongs to no attribute", name)
		}
	}
}
