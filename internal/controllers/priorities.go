package controllers

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// priorities are the five default levels, with the values that xpk gives to
// the same names.
var priorities = []struct {
	name        string
	value       int64
	description string
}{
	{"very-low", 100, "Runs when nothing else wants the slices."},
	{"low", 250, "Gives way to ordinary jobs."},
	{"medium", 500, "Ordinary jobs."},
	{"high", 750, "Goes before ordinary jobs."},
	{"very-high", 1000, "Goes before everything else."},
}

// Priorities returns the five default WorkloadPriorityClasses.
func Priorities() []*unstructured.Unstructured {
	var objs []*unstructured.Unstructured
	for _, p := range priorities {
		objs = append(objs, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion":  "kueue.x-k8s.io/v1beta2",
			"kind":        "WorkloadPriorityClass",
			"metadata":    map[string]any{"name": p.name},
			"value":       p.value,
			"description": p.description,
		}})
	}
	return objs
}
