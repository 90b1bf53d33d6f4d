package provider

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// Every resource is valid, described throughout, importable, and has an identity.
func TestResources(t *testing.T) {
	ctx := context.Background()
	p := New("test")().(*Provider)
	for _, make := range p.Resources(ctx) {
		r := make()
		var meta resource.MetadataResponse
		r.Metadata(ctx, resource.MetadataRequest{ProviderTypeName: TypeName}, &meta)
		t.Run(meta.TypeName, func(t *testing.T) {
			var s resource.SchemaResponse
			r.Schema(ctx, resource.SchemaRequest{}, &s)
			if d := s.Schema.ValidateImplementation(ctx); d.HasError() {
				t.Error(d)
			}
			if s.Schema.MarkdownDescription == "" {
				t.Error("no description")
			}
			described(t, "", s.Schema.Attributes)
			if _, ok := r.(resource.ResourceWithImportState); !ok {
				t.Error("cannot be imported")
			}
			if _, ok := r.(resource.ResourceWithIdentity); !ok {
				t.Error("has no identity")
			}
		})
	}
}

func described(t *testing.T, at string, attrs map[string]schema.Attribute) {
	t.Helper()
	for name, a := range attrs {
		if a.GetMarkdownDescription() == "" && a.GetDescription() == "" {
			t.Errorf("%s%s has no description", at, name)
		}
		switch n := a.(type) {
		case schema.SingleNestedAttribute:
			described(t, at+name+".", n.Attributes)
		case schema.MapNestedAttribute:
			described(t, at+name+".", n.NestedObject.Attributes)
		case schema.ListNestedAttribute:
			described(t, at+name+".", n.NestedObject.Attributes)
		case schema.SetNestedAttribute:
			described(t, at+name+".", n.NestedObject.Attributes)
		}
	}
}
