package jobfile

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// notSaid are fields of a Spec that no job says, and why.
var notSaid = map[string]string{
	"Held": "a job is submitted to run; the resource's active is for others",
}

// fill sets everything in v to something.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse("3")))
		return
	case accelerator.Slice:
		slice, err := accelerator.Resolve("v6e-16")
		if err != nil {
			t.Fatal(err)
		}
		v.Set(reflect.ValueOf(slice))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Map:
		e := reflect.New(v.Type().Elem()).Elem()
		fill(t, e)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k"), e)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("a %s cannot be filled", v.Type())
	}
}

// Whatever a Spec can say is in the job as a document and as Terraform. A field
// that is new goes into Job, its Spec and From.
func TestNoFieldOfASpecIsForgotten(t *testing.T) {
	base := string(HCL(training.Spec{}, "c"))
	for i := range reflect.TypeFor[training.Spec]().NumField() {
		var s training.Spec
		name := reflect.TypeFor[training.Spec]().Field(i).Name
		fill(t, reflect.ValueOf(&s).Elem().Field(i))
		if name == "Overrides" {
			s.Overrides = `{"spec":{"suspend":true}}`
		}
		if said := string(HCL(s, "c")) != base; said == (notSaid[name] != "") {
			t.Errorf("%s is in what Terraform gets: %t", name, said)
		}
	}
	var all training.Spec
	fill(t, reflect.ValueOf(&all).Elem())
	all.Overrides, all.Held = `{"spec":{"suspend":true}}`, false
	back, _ := From(all).Spec() // refused as a whole, but read
	if diff := cmp.Diff(all, back); diff != "" {
		t.Errorf("(-the job +the job written down and read):\n%s", diff)
	}
}

// Tags and the note are keys of metadata to Terraform, which a comment says.
func TestHCLExplainsTagsAndNotes(t *testing.T) {
	tag, value := TagLabel("lr")
	with := string(HCL(training.Spec{Name: "a", Labels: map[string]string{tag: value, "team": "b"}, Annotations: map[string]string{AnnotationNote: "why"}}, "c"))
	for _, want := range []string{"  # A label that begins with tag.tpu-training.github.io/ is a tag (tpuctl submit --tag).\n  labels = {", "  # tpu-training.github.io/note is the note (tpuctl submit --note).\n  annotations = {"} {
		if !strings.Contains(with, want) {
			t.Errorf("no %q in\n%s", want, with)
		}
	}
	if without := string(HCL(training.Spec{Name: "a", Labels: map[string]string{"team": "b"}}, "c")); strings.Contains(without, "#") {
		t.Errorf("an empty comment:\n%s", without)
	}
}
