package cluster

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

// plain is a value as Go has it: bool, int, string, []string (sorted),
// map[string]string, or map[string]map[string]any for a map of objects; nil for
// null. known is false when any part of it is not known yet.
func plain(v attr.Value) (out any, known bool) {
	if v == nil || v.IsNull() {
		return nil, true
	}
	if v.IsUnknown() {
		return nil, false
	}
	switch v := v.(type) {
	case types.Bool:
		return v.ValueBool(), true
	case types.Int64:
		return int(v.ValueInt64()), true
	case types.String:
		return v.ValueString(), true
	case types.Set:
		list := []string{}
		for _, e := range v.Elements() {
			s, ok := e.(types.String)
			if !ok || s.IsUnknown() {
				return nil, false
			}
			list = append(list, s.ValueString())
		}
		slices.Sort(list)
		return list, true
	case types.Map:
		return plainMap(v)
	}
	return nil, false
}

func plainMap(v types.Map) (any, bool) {
	if v.ElementType(context.Background()) == attr.Type(types.StringType) {
		return knownMap(v)
	}
	m := map[string]map[string]any{}
	for key, e := range v.Elements() {
		o, ok := e.(types.Object)
		if !ok || o.IsUnknown() {
			return nil, false
		}
		m[key] = map[string]any{}
		for name, field := range o.Attributes() {
			value, known := plain(field)
			if !known {
				return nil, false
			}
			if value != nil {
				m[key][name] = value
			}
		}
	}
	return m, true
}

// value is the other way round.
func value(t attr.Type, v any) attr.Value {
	switch t := t.(type) {
	case basetypes.BoolType:
		if b, ok := v.(bool); ok {
			return types.BoolValue(b)
		}
		return types.BoolNull()
	case basetypes.Int64Type:
		if n, ok := v.(int); ok {
			return types.Int64Value(int64(n))
		}
		return types.Int64Null()
	case basetypes.SetType:
		if l, ok := v.([]string); ok {
			return stringSet(l)
		}
		return types.SetNull(t.ElemType)
	case basetypes.MapType:
		elems := map[string]attr.Value{}
		switch m := v.(type) {
		case map[string]string:
			return stringMap(m)
		case map[string]map[string]any:
			for key, o := range m {
				elems[key] = value(t.ElemType, o)
			}
			return types.MapValueMust(t.ElemType, elems)
		}
		return types.MapNull(t.ElemType)
	case basetypes.ObjectType:
		m, ok := v.(map[string]any)
		if !ok {
			return types.ObjectNull(t.AttrTypes)
		}
		attrs := map[string]attr.Value{}
		for name, at := range t.AttrTypes {
			attrs[name] = value(at, m[name])
		}
		return types.ObjectValueMust(t.AttrTypes, attrs)
	}
	if s, ok := v.(string); ok {
		return types.StringValue(s)
	}
	return types.StringNull()
}

// known fills what a plan left open with what GKE has. What the plan says
// stays: Terraform holds the provider to it, and the next refresh shows what
// became of it.
func known(plan, live attr.Value) attr.Value {
	if plan.IsUnknown() {
		return live
	}
	p, ok := plan.(types.Object)
	l, ok2 := live.(types.Object)
	if ok && ok2 && !p.IsNull() {
		there := l.Attributes()
		return eachAttribute(p, func(name string, v attr.Value) attr.Value {
			if there[name] == nil { // GKE has none of it
				return known(v, value(p.AttributeTypes(context.Background())[name], nil))
			}
			return known(v, there[name])
		})
	}
	return eachObject(plan, func(key string, v types.Object) attr.Value {
		m, _ := live.(types.Map)
		if e, ok := m.Elements()[key]; ok {
			return known(v, e)
		}
		return known(v, types.ObjectNull(v.AttributeTypes(context.Background())))
	})
}

// kept fills what the configuration leaves out with what the state has: it is
// not managed, and stays as it is; null, too, where GKE has nothing.
func kept(config, plan, state attr.Value) attr.Value {
	if state == nil {
		return plan
	}
	if config.IsNull() {
		if plan.IsUnknown() {
			return state
		}
		return plan
	}
	c, ok := config.(types.Object)
	p, ok2 := plan.(types.Object)
	s, ok3 := state.(types.Object)
	if ok && ok2 && ok3 && !p.IsNull() && !p.IsUnknown() && !c.IsUnknown() {
		configured, was := c.Attributes(), s.Attributes()
		return eachAttribute(p, func(name string, v attr.Value) attr.Value { return kept(configured[name], v, was[name]) })
	}
	return eachObject(plan, func(key string, v types.Object) attr.Value {
		cm, _ := config.(types.Map)
		sm, _ := state.(types.Map)
		c, s := cm.Elements()[key], sm.Elements()[key]
		if c == nil || s == nil {
			return v
		}
		return kept(c, v, s)
	})
}

func eachAttribute(o types.Object, change func(name string, v attr.Value) attr.Value) attr.Value {
	attrs := map[string]attr.Value{}
	for name, v := range o.Attributes() {
		attrs[name] = change(name, v)
	}
	return types.ObjectValueMust(o.AttributeTypes(context.Background()), attrs)
}

// eachObject changes the elements of a map of objects; anything else stays.
func eachObject(v attr.Value, change func(key string, v types.Object) attr.Value) attr.Value {
	m, ok := v.(types.Map)
	if !ok || m.IsNull() || m.IsUnknown() {
		return v
	}
	elems := map[string]attr.Value{}
	for key, e := range m.Elements() {
		elems[key] = e
		if o, ok := e.(types.Object); ok && !o.IsNull() && !o.IsUnknown() {
			elems[key] = change(key, o)
		}
	}
	return types.MapValueMust(m.ElementType(context.Background()), elems)
}

// places finds the fields of shared by their attribute.
var places = sync.OnceValue(func() map[string]int {
	at := map[string]int{}
	t := reflect.TypeFor[shared]()
	for i := range t.NumField() {
		at[t.Field(i).Tag.Get("tfsdk")] = i
	}
	return at
})

// top is a top-level attribute.
func (m *shared) top(name string) attr.Value {
	v, _ := reflect.ValueOf(m).Elem().Field(places()[name]).Interface().(attr.Value)
	return v
}

func (m *shared) setTop(name string, v attr.Value) {
	reflect.ValueOf(m).Elem().Field(places()[name]).Set(reflect.ValueOf(v))
}
