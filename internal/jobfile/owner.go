package jobfile

import "strings"

// maxLabel is how long a label's value may be.
const maxLabel = 63

// OwnerOf is an account as the value of a label: what a label cannot have is a
// dash, and what it cannot begin or end with is left out.
func OwnerOf(account string) string {
	owner := []byte(account)
	for i, b := range owner {
		letter := 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
		if !letter && b != '-' && b != '_' && b != '.' {
			owner[i] = '-'
		}
	}
	const edge = "-_."
	text := strings.TrimLeft(string(owner), edge)
	return strings.TrimRight(text[:min(len(text), maxLabel)], edge)
}
