package kube

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// What others added to an object that is all ours goes; their labels, what a
// webhook filled in for us, and objects that are shared stay. An object that
// nobody touched is written once.
func TestApplyOfAWholeObject(t *testing.T) {
	for name, tt := range map[string]struct {
		o      ApplyOptions
		patch  string
		want   string
		parent string
		writes int
	}{
		"a field was added":      {ApplyOptions{Force: true, Whole: true}, `{"spec":{"parentName":"elsewhere"}}`, "2", "", 1},
		"a field was changed":    {ApplyOptions{Force: true, Whole: true}, `{"spec":{"fairSharing":{"weight":"7"}}}`, "2", "", 0},
		"both":                   {ApplyOptions{Force: true, Whole: true}, `{"spec":{"fairSharing":{"weight":"7"},"parentName":"elsewhere"}}`, "2", "", 1},
		"a label was added":      {ApplyOptions{Force: true, Whole: true}, `{"metadata":{"labels":{"theirs":"1"}}}`, "2", "", 0},
		"added to a shared one":  {ApplyOptions{Force: true}, `{"spec":{"parentName":"elsewhere"}}`, "2", "elsewhere", 0},
		"nothing was touched":    {ApplyOptions{Force: true, Whole: true}, `{}`, "2", "", 0},
		"asked what would be so": {ApplyOptions{Force: true, Whole: true, DryRun: true}, `{"spec":{"parentName":"elsewhere"}}`, "2", "elsewhere", 0},
	} {
		t.Run(name, func(t *testing.T) {
			writes := 0
			count := interceptor.Funcs{Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
				writes++
				return w.Patch(ctx, obj, p, opts...)
			}}
			c := &Client{Name: "c", WithWatch: fake.NewClientBuilder().WithScheme(Scheme).WithReturnManagedFields().WithInterceptorFuncs(count).Build()}
			lab := func() *kueue.Cohort {
				return &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "lab"}, Spec: kueue.CohortSpec{FairSharing: &kueue.FairSharing{Weight: new(resource.MustParse("2"))}}}
			}
			if err := c.Apply(t.Context(), lab(), ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := c.Patch(t.Context(), lab(), client.RawPatch(types.MergePatchType, []byte(tt.patch)), client.FieldOwner("kubectl-edit")); err != nil {
				t.Fatal(err)
			}
			writes = 0
			answer := lab()
			if err := c.Apply(t.Context(), answer, tt.o); err != nil {
				t.Fatal(err)
			}
			live := lab()
			if found, err := c.Fetch(t.Context(), live); err != nil || !found {
				t.Fatal(found, err)
			}
			got := []any{live.Spec.FairSharing.Weight.String(), string(live.Spec.ParentName), writes}
			if diff := cmp.Diff([]any{tt.want, tt.parent, tt.writes}, got); diff != "" {
				t.Errorf("weight, parent and writes (-want +got):\n%s", diff)
			}
			if !tt.o.DryRun && answer.Spec.ParentName != live.Spec.ParentName {
				t.Errorf("answered parent %q, the cluster has %q", answer.Spec.ParentName, live.Spec.ParentName)
			}
			if name == "a label was added" && live.Labels["theirs"] != "1" {
				t.Error("the label is gone")
			}
		})
	}
}

// Nested fields and list elements of others are found; what is asked for stays.
func TestFieldsOfOthers(t *testing.T) {
	for name, tt := range map[string]struct{ fields, asked, live, want map[string]any }{
		"nested": {
			obj("f:spec", obj("f:a", obj("f:x", obj(), "f:y", obj()))),
			obj("spec", obj("a", obj("x", 1))), obj("spec", obj("a", obj("x", 1, "y", 2))),
			obj("spec", obj("a", obj("y", nil))),
		},
		"a part that is not asked for goes as one": {
			obj("f:spec", obj("f:a", obj("f:x", obj()))), obj("spec", obj()), obj("spec", obj("a", obj("x", 1))), obj("spec", obj("a", nil)),
		},
		"an element of a list": {
			obj("f:spec", obj("f:l", obj(`k:{"name":"b"}`, obj(".", obj(), "f:name", obj())))),
			obj("spec", obj("l", []any{"a"})), obj("spec", obj("l", []any{"a", "b"})), obj("spec", obj("l", []any{"a"})),
		},
		"an element that is asked for too": {
			obj("f:spec", obj("f:l", obj(`k:{"name":"a"}`, obj()))), obj("spec", obj("l", []any{"a"})), obj("spec", obj("l", []any{"a"})), obj(),
		},
		"gone already": {obj("f:spec", obj("f:a", obj())), obj("spec", obj()), obj("spec", obj()), obj()},
	} {
		t.Run(name, func(t *testing.T) {
			patch := map[string]any{}
			others(tt.fields, tt.asked, tt.live, patch)
			if diff := cmp.Diff(tt.want, patch); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func obj(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}
