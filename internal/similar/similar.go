// Package similar finds the names that somebody may have meant. Pure.
package similar

import (
	"cmp"
	"slices"
	"strings"
)

// most is how many names are worth reading.
const most = 3

// Among returns the names nearest to name, the nearest first: those that differ
// by a slip or two of the pen, or that one begins the other. Case and the
// choice of dashes do not count.
func Among(name string, all []string) []string {
	type one struct {
		name     string
		distance int
	}
	var near []one
	wanted := fold(name)
	for _, candidate := range all {
		c := fold(candidate)
		d := distance(wanted, c)
		switch {
		case wanted == "" || c == "":
			continue
		case d <= allowed(wanted):
		case len(wanted) >= 3 && strings.HasPrefix(c, wanted), len(c) >= 3 && strings.HasPrefix(wanted, c):
			d = allowed(wanted) + 1
		default:
			continue
		}
		near = append(near, one{candidate, d})
	}
	slices.SortStableFunc(near, func(a, b one) int { return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name)) })
	var names []string
	for _, n := range near[:min(len(near), most)] {
		names = append(names, n.name)
	}
	return names
}

// allowed is how many slips a name of that length may have.
func allowed(name string) int {
	switch n := len(name); {
	case n <= 2:
		return 0
	case n <= 4:
		return 1
	}
	return 2
}

func fold(s string) string {
	return strings.NewReplacer("_", "-", " ", "-", ".", "-").Replace(strings.ToLower(s))
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour.
func distance(a, b string) int {
	var before, row []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row = make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
