package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// attributeTypes are the types of the top-level attributes, as the schema has them.
var attributeTypes = sync.OnceValue(func() map[string]attr.Type {
	out := map[string]attr.Type{}
	for name, a := range attributes(context.Background()) {
		out[name] = a.GetType()
	}
	return out
})

// groupType is the type of a top-level attribute that is a group of settings.
func groupType(name string) types.ObjectType {
	t, _ := attributeTypes()[name].(types.ObjectType)
	return t
}

func settingType(name string) attr.Type {
	outer, inner, nested := strings.Cut(name, ".")
	if nested {
		return groupType(outer).AttrTypes[inner]
	}
	return attributeTypes()[outer]
}

// settingFields names the top-level attributes that are settings or groups of them.
var settingFields = sync.OnceValue(func() []string {
	names := map[string]bool{}
	for _, s := range gke.ClusterSettings() {
		outer, _, _ := strings.Cut(s.Name, ".")
		names[outer] = true
	}
	return slices.Sorted(maps.Keys(names))
})
