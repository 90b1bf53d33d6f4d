package gke

import (
	"maps"
	"slices"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
)

func labelled(name string, labels map[string]string) *containerpb.NodePool {
	return &containerpb.NodePool{Name: name, Config: &containerpb.NodeConfig{ResourceLabels: labels}}
}

// A name alone proves nothing once somebody else has made a node pool under it.
func TestOwnsByNameAndOwner(t *testing.T) {
	slice := func(owner string) map[string]string {
		return Ownership{Kind: KindSlice, Pool: "p", Owner: owner}.Labels()
	}
	known := []string{"p-0"}
	for name, c := range map[string]struct {
		ref    SlicePoolRef
		labels map[string]string
		want   bool
	}{
		"known, of this owner":              {SlicePoolRef{Owner: "a", Known: known, Owners: []string{"a"}}, slice("a"), true},
		"known, of another owner":           {SlicePoolRef{Owner: "a", Known: known, Owners: []string{"a"}}, slice("b"), false},
		"known, of an owner before":         {SlicePoolRef{Owner: "a", Known: known, Owners: []string{"b"}}, slice("b"), true},
		"known, had no owner before":        {SlicePoolRef{Owner: "a", Known: known, Owners: []string{""}}, slice(""), true},
		"known, now without an owner":       {SlicePoolRef{Owner: "a", Known: known, Owners: []string{"a"}}, slice(""), false},
		"known, owners not remembered":      {SlicePoolRef{Owner: "a", Known: known}, slice("b"), true},
		"known, made by hand and imported":  {SlicePoolRef{Owner: "a", Known: known, Owners: []string{}}, nil, true},
		"not known, of this owner":          {SlicePoolRef{Owner: "a"}, slice("a"), true},
		"not known, of an owner before":     {SlicePoolRef{Owner: "a", Owners: []string{"b"}}, slice("b"), false},
		"not known, without labels of ours": {SlicePoolRef{Owner: "a"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.ref.Name = "p"
			if _, got := c.ref.owns(labelled("p-0", c.labels)); got != c.want {
				t.Errorf("owns = %v, want %v", got, c.want)
			}
		})
	}
}

// Slices say which object of the configuration holds them: one that took them
// over writes its own id, and one that never came to be is forgotten.
func TestSlicesSayWhichObjectHoldsThem(t *testing.T) {
	labels := func(object string) map[string]string {
		return Ownership{Kind: KindSlice, Pool: "p", Owner: "a", Object: object}.Labels()
	}
	for name, c := range map[string]struct {
		object  string
		have    map[string]string
		differs bool
		want    string
	}{
		"its own":                        {"one", labels("one"), false, "one"},
		"taken over":                     {"two", labels("one"), true, "two"},
		"taken over from an older state": {"two", labels(""), true, "two"},
		"back in an older state":         {"", labels("two"), true, ""},
		"made by hand":                   {"one", nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, np := SlicePool{Owner: "a", Object: c.object}, labelled("p-0", c.have)
			var names []string
			for _, f := range p.differing(np, false) {
				names = append(names, f.name)
			}
			if got := slices.Contains(names, "object"); got != c.differs {
				t.Errorf("differing: %v", names)
			}
			got := relabel(p, np).GetResourceLabels().GetLabels()
			if object := OwnershipOf(got).Object; object != c.want {
				t.Errorf("relabelled for %q, want %q", object, c.want)
			}
		})
	}
}

// GKE replaces all labels at once: what makes a slice recognisable goes along.
func TestRelabelKeepsOwnership(t *testing.T) {
	mine := map[string]string{LabelKind: KindSlice, LabelPool: "p", LabelSpec: "v1-x", LabelCreated: "1"}
	with := func(base map[string]string, k, v string) map[string]string {
		out := maps.Clone(base)
		out[k] = v
		return out
	}
	for name, c := range map[string]struct {
		owner      string
		have, want map[string]string
	}{
		"a first owner":      {"a", mine, with(mine, LabelOwner, "a")},
		"another owner":      {"b", with(mine, LabelOwner, "a"), with(mine, LabelOwner, "b")},
		"no owner any more":  {"", with(mine, LabelOwner, "a"), mine},
		"old label of users": {"", with(mine, "team", "x"), mine},
		"made by hand":       {"a", map[string]string{"team": "x"}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := SlicePool{Owner: c.owner, ResourceLabels: map[string]string{"cost": "y"}}
			got := relabel(p, labelled("p-0", c.have)).GetResourceLabels().GetLabels()
			if want := with(c.want, "cost", "y"); !maps.Equal(got, want) {
				t.Errorf("labels %v, want %v", got, want)
			}
		})
	}
}
