package jobfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/similar"
)

// Lines says in which line of a file each key stands, by its path
// ("restart_policy.max_restarts").
type Lines map[string]int

// Of is the line of a key or of the nearest key around it; 0 for one that the
// file does not have.
func (l Lines) Of(path string) int {
	for path != "" {
		if line, ok := l[path]; ok {
			return line
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return 0
}

// Decode reads a job file. Every problem is told at once, each with its line as
// "NAME:LINE".
func Decode(name string, data []byte) (Job, Lines, error) {
	d := &decoder{name: name, lines: Lines{}}
	var job Job
	root, err := document(data)
	if err != nil {
		return Job{}, nil, fmt.Errorf("%s: %w", name, err)
	}
	d.value(root, reflect.ValueOf(&job).Elem(), "")
	return job, d.lines, errors.Join(d.problems...)
}

// document is the one document of a file.
func document(data []byte) (*yaml.Node, error) {
	decode := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	switch err := decode.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty; a job file has keys such as name, accelerator and image")
	case err != nil:
		return nil, fmt.Errorf("this is no YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decode.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("there are several documents; a job file has one job")
	}
	return first.Content[0], nil
}

type decoder struct {
	name     string
	lines    Lines
	problems []error
	depth    int
}

// maxDepth bounds aliases that contain each other.
const maxDepth = 64

func (d *decoder) bad(n *yaml.Node, path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	d.problems = append(d.problems, fmt.Errorf("%s:%d: %s", d.name, n.Line, text))
}

// value puts what a node says into v, by v's type.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if d.depth++; d.depth > maxDepth {
		d.bad(n, path, "this is nested too deeply")
		return
	}
	defer func() { d.depth-- }()
	if _, key := d.lines[path]; !key && path != "" { // an element of a list
		d.lines[path] = n.Line
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		if path == "" {
			d.bad(n, path, "the file is empty; a job file has keys such as name, accelerator and image")
		}
		return // a key without a value is one that is left out
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path)
	case reflect.Struct:
		d.object(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			d.bad(n, path, "want a list, as in [a, b]; this is %s", kind(n))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
		for i, e := range n.Content {
			d.value(e, v.Index(i), path+"."+strconv.Itoa(i))
		}
	case reflect.Interface:
		var any any
		if err := n.Decode(&any); err != nil {
			d.bad(n, path, "%v", err)
			return
		}
		v.Set(reflect.ValueOf(any))
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		d.bad(n, path, "want %s; this is %s", want(v.Type()), kind(n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		if problem := check(v.Type(), n.Value); problem != "" {
			d.bad(n, path, "%s", problem)
			return
		}
		v.SetString(n.Value)
	case reflect.Bool:
		b, err := strconv.ParseBool(n.Value)
		if err != nil || n.Tag != "!!bool" {
			d.bad(n, path, "%q; want true or false", n.Value)
		}
		v.SetBool(b)
	default:
		i, err := strconv.ParseInt(n.Value, 10, v.Type().Bits())
		if err != nil {
			d.bad(n, path, "%q; want a whole number", n.Value)
		}
		v.SetInt(i)
	}
}

// check says what is wrong with a text that has a form, or "".
func check(t reflect.Type, text string) string {
	switch t {
	case reflect.TypeFor[Duration]():
		if _, err := time.ParseDuration(text); err != nil {
			return fmt.Sprintf("%q; want a length of time such as 90s or 24h", text)
		}
	case reflect.TypeFor[Quantity]():
		if _, err := resource.ParseQuantity(text); err != nil {
			return fmt.Sprintf("%q; want a quantity such as 4, 500m or 16Gi", text)
		}
	}
	return ""
}

func (d *decoder) object(n *yaml.Node, v reflect.Value, path string) {
	fields := fieldsOf(v.Type())
	d.keys(n, path, func(key, value *yaml.Node, at string) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key.Value })
		if i < 0 {
			d.bad(key, "", "there is no key %s%s", at, hint(key.Value, fields))
			return
		}
		d.value(value, v.Field(fields[i].index), at)
	})
}

// hint names the keys that are near, or all of a short list.
func hint(key string, fields []field) string {
	var all []string
	for _, f := range fields {
		all = append(all, f.key)
	}
	if near := similar.Among(key, all); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	if len(all) <= 6 {
		return "; there are " + strings.Join(all, ", ")
	}
	return ""
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	v.Set(reflect.MakeMap(v.Type()))
	d.keys(n, path, func(key, value *yaml.Node, at string) {
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(value, e, at)
		v.SetMapIndex(reflect.ValueOf(key.Value), e)
	})
}

func (d *decoder) keys(n *yaml.Node, path string, each func(key, value *yaml.Node, at string)) {
	if n.Kind != yaml.MappingNode {
		d.bad(n, path, "want keys with values, as in name: train; this is %s", kind(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, at := n.Content[i], n.Content[i].Value
		if path != "" {
			at = path + "." + at
		}
		switch line, twice := seen[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			d.bad(key, path, "%s as a key is not understood", kind(key))
			continue
		case twice:
			d.bad(key, "", "%s is there twice, first in line %d", at, line)
			continue
		}
		seen[key.Value], d.lines[at] = key.Line, key.Line
		each(key, n.Content[i+1], at)
	}
}

func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	return strconv.Quote(n.Value)
}

func want(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	}
	return "a whole number"
}

// field is a key of an object.
type field struct {
	key, about string
	enum       []string
	min        string
	index      int
	typ        reflect.Type
}

func fieldsOf(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		one := field{key: key, about: f.Tag.Get("about"), min: f.Tag.Get("min"), index: i, typ: f.Type}
		if enum := f.Tag.Get("enum"); enum != "" {
			one.enum = strings.Split(enum, ",")
		}
		all = append(all, one)
	}
	return all
}

// At names a key of a file.
func At(name string, line int, key string) string {
	return fmt.Sprintf("%s:%d: %s", name, line, key)
}
