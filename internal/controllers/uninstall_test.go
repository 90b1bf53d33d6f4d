package controllers

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// The control plane's aggregation of roles applies what it composed, and so
// makes an aggregated role again that was deleted a moment before.
func TestRemovalOfARoleThatComesBack(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "composed"}}
	for _, c := range []struct {
		name     string
		comeback int // how often it is made again
		want     string
	}{
		{"never", 0, ""},
		{"twice", 2, ""},
		{"always", 1000, "made again 5 times"},
	} {
		t.Run(c.name, func(t *testing.T) {
			made := 0
			cl := fakeClient(interceptor.Funcs{
				Delete: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					if err := w.Delete(ctx, obj, opts...); err != nil {
						return err
					}
					if made++; made > c.comeback {
						return nil
					}
					return w.Create(ctx, role.DeepCopy())
				},
			}, role.DeepCopy())
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
			u.SetName(role.Name)
			err := removeAll(t.Context(), cl, []*unstructured.Unstructured{u})
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if found, err := cl.Fetch(t.Context(), bare(u)); err != nil || found != (c.want != "") {
				t.Errorf("there at the end: %v (%v)", found, err)
			}
		})
	}
}

// Aggregated roles go before their parts.
func TestAggregatedRolesAreKnown(t *testing.T) {
	objs, err := Objects(Config{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	aggregated, others := split(kinds(objs, "ClusterRole"), isAggregated)
	if len(aggregated) != 2 || len(others) < 10 {
		t.Errorf("%d aggregated roles and %d others, want Kueue's 2 for batch admins and users", len(aggregated), len(others))
	}
}
