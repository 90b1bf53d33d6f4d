package accelerator

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustResolve(t *testing.T, name string) Slice {
	t.Helper()
	s, err := Resolve(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSubSlice(t *testing.T) {
	got, err := mustResolve(t, "v6e-256").SubSlice(MakeTopology(8, 8))
	if err != nil {
		t.Fatal(err)
	}
	want := SubSlice{
		Parent:    mustResolve(t, "v6e-256"),
		Part:      mustResolve(t, "v6e-64"),
		PerParent: 4,
		Levels: []string{
			"cloud.google.com/gke-tpu-slice-16x16-id",
			"cloud.google.com/gke-tpu-slice-8x16-id",
			"cloud.google.com/gke-tpu-slice-8x8-id",
			"cloud.google.com/gke-tpu-slice-4x8-id",
			"cloud.google.com/gke-tpu-slice-4x4-id",
			"cloud.google.com/gke-tpu-slice-2x4-id",
			"kubernetes.io/hostname",
		},
		PodAnnotations: map[string]string{
			"kueue.x-k8s.io/podset-required-topology": "cloud.google.com/gke-tpu-slice-8x8-id",
			"cloud.google.com/gke-tpu-slice-topology": "8x8",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSubSliceRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		parent string
		part   Topology
		want   string
	}{
		"the whole":          {"v6e-64", MakeTopology(8, 8), "8x8 is not a part of a v6e 8x8 slice; try 4x8, 4x4 or 2x4"},
		"one host":           {"v6e-64", MakeTopology(2, 2), "2x2 is not a part of a v6e 8x8 slice; try 4x8, 4x4 or 2x4"},
		"another generation": {"v5litepod-64", MakeTopology(4, 4), "4x4 is not a part of a v5e 8x8 slice, which cannot be divided"},
		"a single host":      {"v6e-4", MakeTopology(1, 1), "1x1 is not a part of a v6e 2x2 slice, which cannot be divided"},
	} {
		_, err := mustResolve(t, tt.parent).SubSlice(tt.part)
		var e *Error
		if !errors.As(err, &e) || e.Kind != NoSuchTopology || e.Error() != tt.want {
			t.Errorf("%s: %v\nwant %s", name, err, tt.want)
		}
	}
}

func TestSuperSlice(t *testing.T) {
	for name, cubes := range map[string]int{"tpu7x-128": 1, "tpu7x-4x4x8": 2, "tpu7x-8": 0, "tpu7x-16x16x36": 144, "v5p-256": 0} {
		if got := mustResolve(t, name).Cubes(); got != cubes {
			t.Errorf("%s has %d cubes, want %d", name, got, cubes)
		}
	}
	want := []string{"cloud.google.com/gce-topology-block", "cloud.google.com/gke-tpu-partition-4x4x4-id", "kubernetes.io/hostname"}
	if diff := cmp.Diff(want, mustResolve(t, "tpu7x-128").TopologyLevels()); diff != "" {
		t.Error(diff)
	}
	if got := mustResolve(t, "v5p-256").TopologyLevels(); got != nil {
		t.Errorf("v5p has topology levels %v", got)
	}
}
