package gke

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

var versionDigits = regexp.MustCompile(`\d+`)

// OlderVersion tells whether a GKE version (1.34.1-gke.2201000) comes before
// min, which may be a prefix (1.34): a prefix is reached by every version that
// begins with it.
func OlderVersion(version, min string) bool {
	a, b := versionDigits.FindAllString(version, -1), versionDigits.FindAllString(strings.TrimSuffix(min, "."), -1)
	for i, want := range b {
		if i >= len(a) {
			return true
		}
		x, _ := strconv.Atoi(a[i])
		y, _ := strconv.Atoi(want)
		if c := cmp.Compare(x, y); c != 0 {
			return c < 0
		}
	}
	return false
}
