package training

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// Merge puts overrides, a JSON object with fields of a JobSet, over js. Objects
// merge field by field, and null takes a field away. Lists whose elements have
// a name (jobs, containers, volumes, variables) merge by name; others are
// replaced whole. Fields that are unknown, or not the job's to set, are
// refused.
func Merge(js *jobset.JobSet, overrides string) (*jobset.JobSet, error) {
	if overrides == "" {
		return js, nil
	}
	var over map[string]any
	if err := json.Unmarshal([]byte(overrides), &over); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if err := allowed(over); err != nil {
		return nil, err
	}
	base, err := runtime.DefaultUnstructuredConverter.ToUnstructured(js)
	if err != nil {
		return nil, err
	}
	delete(base, "status")
	merged, _ := merge(base, over).(map[string]any)
	out := &jobset.JobSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(merged, out, true); err != nil {
		return nil, fmt.Errorf("that is no JobSet any more: %w", err)
	}
	if diff := ours(js, out); diff != "" {
		return nil, fmt.Errorf("%s is written on every job and cannot be overridden", diff)
	}
	return out, nil
}

// allowed refuses what another setting is for, or Kueue.
func allowed(over map[string]any) error {
	for field := range over {
		if field != "metadata" && field != "spec" {
			return fmt.Errorf("%s cannot be overridden: only fields of metadata and spec can", field)
		}
	}
	if meta, ok := over["metadata"].(map[string]any); ok {
		for field := range meta {
			if field != "labels" && field != "annotations" && field != "finalizers" {
				return fmt.Errorf("metadata.%s cannot be overridden: only labels and annotations can", field)
			}
		}
	} else if _, there := over["metadata"]; there {
		return errors.New("metadata is not an object")
	}
	spec, ok := over["spec"].(map[string]any)
	if _, there := over["spec"]; there && !ok {
		return errors.New("spec is not an object")
	}
	for field, use := range map[string]string{"suspend": "it is Kueue's: use active", "ttlSecondsAfterFinished": "use ttl_after_finished"} {
		if _, there := spec[field]; there {
			return fmt.Errorf("spec.%s cannot be overridden: %s", field, use)
		}
	}
	return nil
}

// ours names a label or annotation of ours that differs.
func ours(was, is *jobset.JobSet) string {
	for _, pair := range [][2]map[string]string{{was.Labels, is.Labels}, {was.Annotations, is.Annotations}} {
		all := maps.Clone(pair[0])
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, pair[1])
		for key := range all {
			if a, b := pair[0][key], pair[1][key]; a != b && reserved(key) != "" {
				return key
			}
		}
	}
	return ""
}

func merge(base, over any) any {
	switch over := over.(type) {
	case map[string]any:
		had, ok := base.(map[string]any)
		if !ok {
			had = map[string]any{}
		}
		out := maps.Clone(had)
		for field, value := range over {
			if value == nil {
				delete(out, field)
				continue
			}
			out[field] = merge(out[field], value)
		}
		return out
	case []any:
		had, ok := base.([]any)
		if !ok || !named(had) || !named(over) {
			return over
		}
		return mergeNamed(had, over)
	}
	return over
}

func mergeNamed(had, over []any) []any {
	out := make([]any, len(had), len(had)+len(over))
	copy(out, had)
next:
	for _, e := range over {
		for i := range out {
			if reflect.DeepEqual(out[i].(map[string]any)["name"], e.(map[string]any)["name"]) {
				out[i] = merge(out[i], e)
				continue next
			}
		}
		out = append(out, merge(nil, e))
	}
	return out
}

// named tells whether a list's elements all have a name. An empty list has.
func named(list []any) bool {
	for _, e := range list {
		m, ok := e.(map[string]any)
		if name, is := m["name"].(string); !ok || !is || name == "" {
			return false
		}
	}
	return true
}
