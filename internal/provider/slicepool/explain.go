package slicepool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// problem adds an error: the summary ends with the cause in a few words, the
// detail says what was attempted, what GKE answered and what to do next.
func problem(diags *diag.Diagnostics, summary string, err error) {
	brief, detail := explain(err)
	diags.AddError(summary+because(": ", brief), detail)
}

// explain splits an error for a diagnostic, which says each thing once.
func explain(err error) (brief, detail string) {
	var e *gke.Error
	if !errors.As(err, &e) {
		return "", err.Error()
	}
	detail = "The attempt: " + e.Attempt() + e.Words()
	if next := e.Next(); next != "" {
		detail += "\n\n" + next
	}
	return e.Brief(), detail
}

func because(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// group is failures of different slices that need telling only once.
type group struct {
	indices []int
	err     error
}

// causes tells of each cause once, with the slices it holds for, in GKE's words
// of the first of them. brief is that of the only cause, or "". refused tells
// whether a request itself was at fault.
func causes(failures map[int]error) (brief, text string, refused bool) {
	groups, order := map[string]*group{}, []string{}
	for _, i := range slices.Sorted(maps.Keys(failures)) {
		err := failures[i]
		key := err.Error()
		var e *gke.Error
		if errors.As(err, &e) {
			key = e.Kind()
			refused = refused || e.Refused()
		}
		if groups[key] == nil {
			groups[key] = &group{err: err}
			order = append(order, key)
		}
		groups[key].indices = append(groups[key].indices, i)
	}
	parts := make([]string, 0, len(order))
	for _, key := range order {
		g := groups[key]
		cause, detail := explain(g.err)
		if len(order) == 1 {
			brief = cause
		}
		who := "Slice " + list(g.indices)
		if len(g.indices) > 1 {
			who = fmt.Sprintf("%d slices (%s)", len(g.indices), list(g.indices))
		}
		parts = append(parts, who+because(": ", cause)+"\n"+detail)
	}
	return brief, strings.Join(parts, "\n\n"), refused
}

// list writes indices in ascending order, runs of them short: 1, 4-7.
func list(indices []int) string {
	var parts []string
	for i := 0; i < len(indices); {
		j := i
		for j+1 < len(indices) && indices[j+1] == indices[j]+1 {
			j++
		}
		switch {
		case j == i:
			parts = append(parts, fmt.Sprint(indices[i]))
		case j == i+1:
			parts = append(parts, fmt.Sprintf("%d, %d", indices[i], indices[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", indices[i], indices[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
