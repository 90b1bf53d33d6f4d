package gke

import (
	"maps"
	"reflect"
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// Kind is the type of a setting's value.
type Kind int

// The kinds, with the Go type that their values have.
const (
	Flag    Kind = iota // bool
	Text                // string
	Number              // int
	Set                 // []string, sorted
	Map                 // map[string]string
	Objects             // map[string]map[string]any, of strings and ints
)

// Settings are values of settings by their name. What is left out is not
// managed: it stays as GKE has it.
type Settings map[string]any

// Setting is one attribute of a cluster, told once: what a configuration calls
// it, where GKE has it, and which operation changes it.
type Setting struct {
	Name  string // path in the configuration: "logging.components"
	Kind  Kind
	facet string // of clusterFacets; "" where only another cluster can have it
	// why only another cluster can have it, for whoever reads the plan.
	why string
	get func(c *containerpb.Cluster) any // nil where the cluster says nothing
	set func(c *containerpb.Cluster, v any)
	// alike tells whether GKE's spelling is what the configuration means; nil
	// compares them.
	alike func(want, have any) bool
	// Wakes names the settings that GKE has a default of its own for once this
	// one is there.
	Wakes []string
	// always: written with every change of its facet, or GKE may fill it in.
	always bool
}

// Replaces tells whether a change needs another cluster, and why.
func (s Setting) Replaces() (why string, yes bool) { return s.why, s.facet == "" }

// coupled: a change of this setting may change its neighbours.
func (s Setting) coupled() bool {
	return s.facet == facetMaintenance || s.facet == facetDNS || s.facet == facetAutoscaling
}

// Unsettles tells whether a change of this setting from before may change its
// neighbours, so that what those will be is known afterwards only. A window that
// only moves takes the place of no other.
func (s Setting) Unsettles(before any) bool {
	return s.coupled() && (s.facet != facetMaintenance || before == nil)
}

// Same tells whether what a configuration wants is what GKE has.
func (s Setting) Same(want, have any) bool {
	if s.alike != nil && want != nil && have != nil {
		return s.alike(want, have)
	}
	return reflect.DeepEqual(want, have)
}

// Of is the setting's value of a cluster; nil if it has none.
func (s Setting) Of(c *containerpb.Cluster) any { return s.get(c) }

// ClusterSettings are all settings, in the order of the documentation.
func ClusterSettings() []Setting { return slices.Clone(clusterSettings) }

var clusterSettings = slices.Concat(networkSettings, accessSettings, operationSettings, addonSettings, securitySettings)

var settingsByName = func() map[string]Setting {
	m := map[string]Setting{}
	for _, s := range clusterSettings {
		m[s.Name] = s
	}
	return m
}()

// differing lists the settings that are managed and not as GKE has them.
func (v Settings) differing(c *containerpb.Cluster) []Setting {
	var out []Setting
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if s, ok := settingsByName[name]; ok && !s.Same(v[name], s.get(c)) {
			out = append(out, s)
		}
	}
	return out
}

// immutable are the settings that only another cluster can have.
func (v Settings) immutable() map[string]any {
	out := map[string]any{}
	for name, value := range v {
		if s := settingsByName[name]; s.facet == "" {
			out[name] = value
		}
	}
	return out
}

func flag(name, facet string, get func(*containerpb.Cluster) bool, set func(*containerpb.Cluster, bool)) Setting {
	return Setting{Name: name, Kind: Flag, facet: facet,
		get: func(c *containerpb.Cluster) any { return get(c) },
		set: func(c *containerpb.Cluster, v any) { set(c, v.(bool)) }}
}

func text(name, facet string, get func(*containerpb.Cluster) string, set func(*containerpb.Cluster, string)) Setting {
	return Setting{Name: name, Kind: Text, facet: facet,
		get: func(c *containerpb.Cluster) any {
			if s := get(c); s != "" {
				return s
			}
			return nil
		},
		set: func(c *containerpb.Cluster, v any) { set(c, v.(string)) }}
}

func set(name, facet string, get func(*containerpb.Cluster) []string, put func(*containerpb.Cluster, []string)) Setting {
	return Setting{Name: name, Kind: Set, facet: facet,
		get: func(c *containerpb.Cluster) any {
			return append([]string{}, slices.Sorted(slices.Values(get(c)))...)
		},
		set: func(c *containerpb.Cluster, v any) { put(c, v.([]string)) }}
}

// fixed makes a setting that only another cluster can have.
func (s Setting) fixed(why string) Setting {
	s.facet, s.why = "", why
	return s
}

func (s Setting) alwaysWritten() Setting {
	s.always = true
	return s
}

func (s Setting) comparing(alike func(want, have any) bool) Setting {
	s.alike = alike
	return s
}

// field makes a nil message an empty one.
func field[T any](at **T) *T {
	if *at == nil {
		*at = new(T)
	}
	return *at
}

// enum is the value of a name of GKE's; 0 for one it does not know.
func enum[E ~int32](values map[string]int32, name string) E { return E(values[name]) }

// named is the name of a value, "" for the one that says nothing.
func named[E interface {
	~int32
	String() string
}](v E) string {
	if v == 0 {
		return ""
	}
	return v.String()
}
