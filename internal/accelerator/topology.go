package accelerator

import (
	"fmt"
	"strconv"
	"strings"
)

// Topology is the arrangement of a slice's chips: two sides (4x8) or three
// (4x4x8). The zero Topology means "not given". It is comparable.
type Topology struct {
	x, y, z int // z is 0 in two dimensions
}

// MakeTopology builds a Topology of two or three sides; it panics on another
// number of them. It does not check that such a slice exists.
func MakeTopology(sides ...int) Topology {
	switch len(sides) {
	case 2:
		return Topology{sides[0], sides[1], 0}
	case 3:
		return Topology{sides[0], sides[1], sides[2]}
	}
	panic(fmt.Sprintf("accelerator: a topology has 2 or 3 sides, not %d", len(sides)))
}

// maxSide bounds what is parsed, so that products cannot overflow. The longest
// real side is under 600.
const maxSide = 1 << 16

// ParseTopology reads "4x4" or "4x4x8". Spaces and an upper-case X are
// forgiven. It checks the form, not that a generation has such a slice: Lookup
// does. Errors are *Error of kind Syntax.
func ParseTopology(s string) (Topology, error) {
	t, err := parseTopologyText(s)
	if err != nil {
		return Topology{}, err
	}
	return t, nil
}

func parseTopologyText(s string) (Topology, *Error) {
	if err := tooLong(s); err != nil {
		return Topology{}, err
	}
	t, ok := parseTopology(compact(s))
	if !ok {
		return Topology{}, &Error{Kind: Syntax, Input: s,
			Reason: fmt.Sprintf("%q is not a topology: want chips along each side, such as 4x4 or 4x4x8", s)}
	}
	return t, nil
}

// parseTopology reads what compact returned.
func parseTopology(s string) (Topology, bool) {
	var sides [3]int
	n := 0
	for rest, more := s, true; more; n++ {
		var side string
		side, rest, more = strings.Cut(rest, "x")
		if n == len(sides) {
			return Topology{}, false
		}
		v, ok := parseCount(side)
		if !ok || v > maxSide {
			return Topology{}, false
		}
		sides[n] = v
	}
	if n < 2 {
		return Topology{}, false
	}
	return Topology{sides[0], sides[1], sides[2]}, true
}

// maxDigits is how long a number may be, and tooMany one that no slice has.
const (
	maxDigits = 9
	tooMany   = 999_999_999
)

// parseCount reads a positive decimal without sign or leading zero.
func parseCount(s string) (int, bool) {
	if s == "" || len(s) > maxDigits || s[0] == '0' {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// compact lower-cases s and drops white space.
func compact(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(s)), "")
}

// String returns "4x4" or "4x4x8", and "" for the zero Topology.
func (t Topology) String() string {
	if t.IsZero() {
		return ""
	}
	b := make([]byte, 0, 16)
	b = strconv.AppendInt(b, int64(t.x), 10)
	b = append(b, 'x')
	b = strconv.AppendInt(b, int64(t.y), 10)
	if t.z != 0 {
		b = append(b, 'x')
		b = strconv.AppendInt(b, int64(t.z), 10)
	}
	return string(b)
}

// IsZero tells whether no topology was given.
func (t Topology) IsZero() bool { return t == Topology{} }

// Equal is ==; it lets go-cmp compare topologies.
func (t Topology) Equal(o Topology) bool { return t == o }

// Dimensions is 2 or 3, and 0 for the zero Topology.
func (t Topology) Dimensions() int {
	switch {
	case t.IsZero():
		return 0
	case t.z == 0:
		return 2
	}
	return 3
}

// Sides returns the chips along each side.
func (t Topology) Sides() []int {
	return []int{t.x, t.y, t.z}[:t.Dimensions()]
}

// Chips is the product of the sides.
func (t Topology) Chips() int {
	if t.z == 0 {
		return t.x * t.y
	}
	return t.x * t.y * t.z
}

// longest and sum order shapes of one size from compact to elongated.
func (t Topology) longest() int { return max(t.x, t.y, t.z) }
func (t Topology) sum() int     { return t.x + t.y + t.z }

// moreCompact orders topologies: fewer chips first, then the shorter longest
// side, then the smaller sum of sides. Rotations apart the order is total: size,
// longest side and sum determine the sides.
func moreCompact(a, b Topology) int {
	for _, d := range []int{a.Chips() - b.Chips(), a.longest() - b.longest(), a.sum() - b.sum(), a.x - b.x, a.y - b.y} {
		if d != 0 {
			return d
		}
	}
	return 0
}

// sorted returns the sides in ascending order, a key that rotations share.
func (t Topology) sorted() [3]int {
	s := [3]int{t.x, t.y, t.z}
	if s[0] > s[1] {
		s[0], s[1] = s[1], s[0]
	}
	if s[1] > s[2] {
		s[1], s[2] = s[2], s[1]
	}
	if s[0] > s[1] {
		s[0], s[1] = s[1], s[0]
	}
	return s
}

// MarshalText writes the String form.
func (t Topology) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what ParseTopology reads; empty is the zero Topology.
func (t *Topology) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*t = Topology{}
		return nil
	}
	parsed, err := ParseTopology(string(b))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}
