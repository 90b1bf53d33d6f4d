package jobfile

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// HCL is the job as a resource tpu_training_jobset of a cluster, by its full
// name; without one it is a variable.
func HCL(s training.Spec, cluster string) []byte {
	j := From(s)
	// Of the keys that are not the resource's the Spec has made others.
	j.Tags, j.Note, j.Labels, j.Annotations = nil, "", s.Labels, s.Annotations
	j.Queue = s.Queue
	file := hclwrite.NewEmptyFile()
	body := file.Body().AppendNewBlock("resource", []string{"tpu_training_jobset", label(s.Name)}).Body()
	if cluster == "" {
		body.SetAttributeTraversal("cluster", hcl.Traversal{hcl.TraverseRoot{Name: "var"}, hcl.TraverseAttr{Name: "cluster"}})
	} else {
		body.SetAttributeValue("cluster", cty.StringVal(cluster))
	}
	v := reflect.ValueOf(j)
	for _, f := range fieldsOf(v.Type()) {
		value, given := valueOf(v.Field(f.index))
		if given {
			comment(body, explanation(f.key, s))
		}
		switch {
		case !given:
		case f.key == "jobset_overrides":
			body.SetAttributeRaw(f.key, hclwrite.TokensForFunctionCall("jsonencode", hclwrite.TokensForValue(value)))
		default:
			body.SetAttributeValue(f.key, value)
		}
	}
	return hclwrite.Format(file.Bytes())
}

// explanation says what is not an attribute of the resource and is among the
// keys of one, or "".
func explanation(attribute string, s training.Spec) string {
	_, noted := s.Annotations[AnnotationNote]
	switch {
	case attribute == "labels" && len(TagsOf(s.Labels)) > 0:
		return "A label that begins with " + tagPrefix + " is a tag (tpuctl submit --tag)."
	case attribute == "annotations" && noted:
		return AnnotationNote + " is the note (tpuctl submit --note)."
	}
	return ""
}

func comment(body *hclwrite.Body, text string) {
	if text != "" {
		body.AppendUnstructuredTokens(hclwrite.Tokens{{Type: hclsyntax.TokenComment, Bytes: []byte("# " + text + "\n")}})
	}
}

// label makes a resource's name of a job's.
func label(name string) string {
	return strings.ReplaceAll(name, "-", "_")
}

// valueOf is a value as HCL has it; not given is what may be left out.
func valueOf(v reflect.Value) (value cty.Value, given bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return cty.NilVal, false
		}
		value, _ = valueOf(v.Elem())
		return value, true
	case reflect.Interface:
		return plainValue(v.Interface()), true
	case reflect.String:
		return cty.StringVal(v.String()), v.String() != ""
	case reflect.Bool:
		return cty.BoolVal(v.Bool()), v.Bool()
	case reflect.Int, reflect.Int32:
		return cty.NumberIntVal(v.Int()), v.Int() != 0
	case reflect.Slice:
		if v.IsNil() {
			return cty.NilVal, false
		}
		all := []cty.Value{}
		for i := range v.Len() {
			one, _ := valueOf(v.Index(i))
			all = append(all, one)
		}
		return cty.TupleVal(all), true
	case reflect.Map:
		all := map[string]cty.Value{}
		for _, key := range v.MapKeys() {
			all[key.String()], _ = valueOf(v.MapIndex(key))
		}
		return cty.ObjectVal(all), v.Len() > 0
	case reflect.Struct:
		all := map[string]cty.Value{}
		for _, f := range fieldsOf(v.Type()) {
			if one, given := valueOf(v.Field(f.index)); given {
				all[f.key] = one
			}
		}
		return cty.ObjectVal(all), true
	}
	return cty.NilVal, false
}

// plainValue is a value out of JSON.
func plainValue(v any) cty.Value {
	switch v := v.(type) {
	case map[string]any:
		all := map[string]cty.Value{}
		for key, e := range v {
			all[key] = plainValue(e)
		}
		return cty.ObjectVal(all)
	case []any:
		all := []cty.Value{}
		for _, e := range v {
			all = append(all, plainValue(e))
		}
		return cty.TupleVal(all)
	case string:
		return cty.StringVal(v)
	case bool:
		return cty.BoolVal(v)
	case json.Number:
		if n, err := cty.ParseNumberVal(v.String()); err == nil {
			return n
		}
	}
	return cty.NullVal(cty.DynamicPseudoType)
}
