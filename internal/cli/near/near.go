// Package near finds what somebody may have meant by a word that is not known.
package near

import (
	"cmp"
	"slices"
	"strings"
)

// most is how many are named.
const most = 3

// To are the words nearest to one that is not among them, the nearest first:
// those that differ by a slip or two of the pen, or that begin with it.
func To(word string, known []string) []string {
	type found struct {
		word     string
		distance int
	}
	var all []found
	low := strings.ToLower(word)
	for _, k := range known {
		d := distance(low, strings.ToLower(k))
		switch {
		case d <= max(1, len(low)/3):
		case len(low) >= 2 && strings.HasPrefix(strings.ToLower(k), low):
		default:
			continue
		}
		all = append(all, found{k, d})
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Or(a.distance-b.distance, cmp.Compare(a.word, b.word)) })
	var out []string
	for _, f := range all[:min(len(all), most)] {
		out = append(out, f.word)
	}
	return out
}

// Hint is "; did you mean A or B?", or "" when nothing is near.
func Hint(word string, known []string) string {
	words := To(word, known)
	if len(words) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(words, " or ") + "?"
}

// distance is how many letters must be added, taken away, changed or swapped
// with their neighbour to make b of a.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, row := make([]int, len(y)+1), make([]int, len(y)+1)
	var earlier []int
	for j := range before {
		before[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(before[j]+1, row[j-1]+1, before[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], earlier[j-2]+1)
			}
		}
		earlier, before, row = before, row, make([]int, len(y)+1)
	}
	return before[len(y)]
}
