package jobfile

import (
	"encoding/json"
	"reflect"
)

// SchemaID is where the schema is published.
const SchemaID = "https://raw.githubusercontent.com/tpu-training/terraform-provider-tpu/main/docs/job.schema.json"

// Schema is the JSON schema of job files.
func Schema() ([]byte, error) {
	root := object(reflect.TypeFor[Job]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = SchemaID
	root["title"] = "A training job, as tpuctl submit -f takes it"
	b, err := json.MarshalIndent(root, "", "  ")
	return append(b, '\n'), err
}

func object(t reflect.Type) map[string]any {
	properties := map[string]any{}
	for _, f := range fieldsOf(t) {
		one := typeSchema(f.typ)
		one["description"] = f.about
		if f.enum != nil {
			one = map[string]any{"enum": f.enum, "description": f.about}
		}
		if f.min != "" {
			one["minimum"] = json.Number(f.min)
		}
		properties[f.key] = one
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// typeSchema: a text is any scalar, since YAML has 3e-4 and true without quotes.
func typeSchema(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem())
	case reflect.Struct:
		return object(t)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": typeSchema(t.Elem())}
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return map[string]any{"type": "object"}
		}
		return map[string]any{"type": "object", "additionalProperties": typeSchema(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int32:
		return map[string]any{"type": "integer"}
	}
	if t == reflect.TypeFor[Duration]() {
		return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`}
	}
	return map[string]any{"type": []string{"string", "number", "boolean"}}
}
