package identity

import (
	"fmt"
	"slices"
	"strings"
)

// Pattern is the form of a resource's ids: a path of fixed words
// and placeholders, which are the attributes of the identity, such as
// "projects/{project}/locations/{location}/clusters/{name}".
type Pattern string

// The placeholders that the provider's configuration has defaults for.
const (
	project  = "project"
	location = "location"
)

// Keys are the placeholders in order.
func (p Pattern) Keys() []string {
	var keys []string
	for part := range strings.SplitSeq(string(p), "/") {
		if key, ok := placeholder(part); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

func placeholder(part string) (string, bool) {
	key, ok := strings.CutPrefix(part, "{")
	return strings.TrimSuffix(key, "}"), ok
}

// ID fills in the placeholders.
func (p Pattern) ID(values map[string]string) string {
	parts := strings.Split(string(p), "/")
	for i, part := range parts {
		if key, ok := placeholder(part); ok {
			parts[i] = values[key]
		}
	}
	return strings.Join(parts, "/")
}

// Parse reads a whole id.
func (p Pattern) Parse(id string) (map[string]string, bool) {
	want, have := strings.Split(string(p), "/"), strings.Split(id, "/")
	if len(want) != len(have) {
		return nil, false
	}
	values := map[string]string{}
	for i, part := range want {
		key, ok := placeholder(part)
		switch {
		case ok && have[i] == "", !ok && have[i] != part:
			return nil, false
		case ok:
			values[key] = have[i]
		}
	}
	return values, true
}

// Expand reads a whole id or a short one: the values alone, in the order of
// the placeholders, without the project or without project and location when
// defaults has them.
func (p Pattern) Expand(id string, defaults map[string]string) (map[string]string, error) {
	if values, ok := p.Parse(id); ok {
		return values, nil
	}
	keys, parts := p.Keys(), strings.Split(id, "/")
	missing := len(keys) - len(parts)
	if missing < 0 || missing > 2 || slices.Contains(parts, "") {
		return nil, fmt.Errorf("%q is not the id of such an object: want one of\n  %s", id, strings.Join(p.forms(), "\n  "))
	}
	values := map[string]string{}
	for i, part := range parts {
		values[keys[missing+i]] = part
	}
	return values, p.complete(id, values, defaults)
}

// complete fills in what is missing from the defaults.
func (p Pattern) complete(id string, values, defaults map[string]string) error {
	for _, key := range p.Keys() {
		if values[key] != "" {
			continue
		}
		if defaults[key] == "" {
			return fmt.Errorf("%s says no %s, and the provider's configuration has none: set %s there, or import\n  %s", id, key, key, p.ID(p.words()))
		}
		values[key] = defaults[key]
	}
	return nil
}

// words are the placeholders as messages show them.
func (p Pattern) words() map[string]string {
	words := map[string]string{}
	for _, key := range p.Keys() {
		words[key] = strings.ToUpper(key)
	}
	return words
}

// forms are the ids that Expand reads.
func (p Pattern) forms() []string {
	var short []string
	for _, key := range p.Keys() {
		short = append(short, strings.ToUpper(key))
	}
	return []string{
		p.ID(p.words()),
		strings.Join(short, "/"),
		strings.Join(short[1:], "/") + " (with project in the provider's configuration)",
		strings.Join(short[2:], "/") + " (with project and location in the provider's configuration)",
	}
}
