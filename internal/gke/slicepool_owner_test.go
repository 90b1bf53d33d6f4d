package gke

import (
	"maps"
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
