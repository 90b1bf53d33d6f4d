package faults

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// Kind is what happens to a request.
type Kind string

// The kinds of faults.
const (
	Status      Kind = "status"       // refused with an HTTP status; no effect
	StatusAfter Kind = "status-after" // carried out, and answered with an HTTP status all the same
	Reset       Kind = "reset"        // the connection is reset; no effect
	ResetAfter  Kind = "reset-after"  // carried out, then the connection is reset
	Lost        Kind = "lost"         // carried out, and never answered
	Slow        Kind = "slow"         // carried out, answered late
	Stale       Kind = "stale"        // a read is answered with what it was answered before
)

// Kinds lists every kind.
var Kinds = []Kind{Status, StatusAfter, Reset, ResetAfter, Lost, Slow, Stale}

// Duration is a time.Duration that JSON spells as Go does ("1.5s").
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Rule is one fault and when it happens.
type Rule struct {
	ID string `json:"id"` // given by Set.Add

	// Method is a pattern (path.Match) of method names: "CreateNodePool",
	// "compute.resourcePolicies.insert", "kube PATCH jobsets", "kube *"; ""
	// fits every method. Object is part of the request's path, such as a
	// project, a cluster or a namespace; "" fits every object.
	Method string `json:"method,omitempty"`
	Object string `json:"object,omitempty"`

	Call int `json:"call,omitempty"` // only the nth call that fits: 1 is the next; 0 is every call
	// Probability is the share of the calls that fit, 0 to 1; 0 is all of
	// them. Whether a call is hit follows from the seed, the kind of fault, the
	// method, the object and how often that was called since the rule is there:
	// not from what else happens meanwhile, or happened before.
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`
	Times       int     `json:"times,omitempty"` // at most so often; 0 is without end

	Kind       Kind     `json:"kind"`
	Code       int      `json:"code,omitempty"`       // HTTP status, for Status and StatusAfter
	Message    string   `json:"message,omitempty"`    // "" is a text that fits the code
	RetryAfter Duration `json:"retryAfter,omitempty"` // with an HTTP status
	// Delay holds the answer back. A reply that is Lost keeps the caller
	// waiting so long before the connection closes; 0 is until it gives up.
	Delay Duration `json:"delay,omitempty"`

	Seen int `json:"seen"` // calls that fit so far
	Hits int `json:"hits"` // calls that met the fault so far
}

// ErrRule is in the error of every rule that cannot work.
var ErrRule = errors.New("not a rule")

// Check refuses a rule that cannot work, in words for whoever wrote it.
func (r Rule) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrRule, fmt.Sprintf(format, args...))
	}
	if _, err := path.Match(pattern(r.Method), "x"); err != nil {
		return bad("method %q is not a pattern; want a name such as CreateNodePool, or one with * such as \"kube *\"", r.Method)
	}
	if !nameable(r.Method, r.Kind == Stale) {
		if r.Kind == Stale && nameable(r.Method, false) {
			return bad("kind %s is for reads, and method %q is none", Stale, r.Method)
		}
		return bad("no request has the method %q; want a name of GKE's such as CreateNodePool, compute.COLLECTION.ACTION, storage.buckets.testIamPermissions, \"kube VERB RESOURCE\" with VERB in capitals, or any of them with *", r.Method)
	}
	known := false
	for _, k := range Kinds {
		known = known || k == r.Kind
	}
	status := r.Kind == Status || r.Kind == StatusAfter
	switch {
	case !known:
		return bad("kind %q; want one of %s", r.Kind, kinds())
	case r.Call < 0 || r.Times < 0:
		return bad("call and times count from 1; 0 is every call and without end")
	case !(r.Probability >= 0 && r.Probability <= 1): // NaN is neither
		return bad("probability %g; want more than 0, at most 1", r.Probability)
	case r.Call > 0 && r.Probability > 0:
		return bad("the nth call and a probability exclude each other")
	case r.Seed != 0 && r.Probability == 0:
		return bad("a seed is of no use without a probability")
	case status && r.Code == 0:
		return bad("kind %s wants a code of 400 to 599, such as 429 or 503", r.Kind)
	case status && (r.Code < 400 || r.Code > 599):
		return bad("code %d; a request that goes wrong is answered with 400 to 599, such as 429 or 503", r.Code)
	case !status && (r.Code != 0 || r.Message != "" || r.RetryAfter != 0):
		return bad("code, message and retryAfter belong to the kinds %s and %s, not to %s", Status, StatusAfter, r.Kind)
	case r.Delay < 0 || r.RetryAfter < 0:
		return bad("a delay is not negative")
	case r.Kind == Slow && r.Delay == 0:
		return bad("kind %s wants a delay", Slow)
	}
	return nil
}

func kinds() string {
	s := make([]string, len(Kinds))
	for i, k := range Kinds {
		s[i] = string(k)
	}
	return strings.Join(s, ", ")
}

// pattern lets * cross slashes: a subresource is part of a method's name.
func pattern(method string) string { return strings.ReplaceAll(method, "/", "\x00") }

func (r *Rule) fits(c Call) bool {
	if r.Method != "" {
		if ok, _ := path.Match(pattern(r.Method), pattern(c.Method)); !ok {
			return false
		}
	}
	if r.Kind == Stale && c.Mutates {
		return false
	}
	return strings.Contains(c.Path, r.Object)
}

// meets counts a call and tells whether the rule hits it. past says that there
// is an earlier answer to it; without one no read can be stale.
func (r *Rule) meets(c Call, past bool) bool {
	if !r.fits(c) {
		return false
	}
	r.Seen++
	switch {
	case r.Kind == Stale && !past:
		return false
	case r.Times > 0 && r.Hits >= r.Times:
		return false
	case r.Call > 0 && r.Seen != r.Call:
		return false
	case r.Probability > 0 && chance(*r, c) >= r.Probability:
		return false
	}
	r.Hits++
	return true
}

// chance is a number from 0 to below 1 that depends on nothing but its
// arguments, and of the rule on nothing but its seed and what it does: rules of
// one seed do not hit the same calls.
func chance(r Rule, c Call) float64 {
	h := fnv.New64a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], r.Seed)
	binary.LittleEndian.PutUint64(b[8:], uint64(c.Nth))
	for _, part := range [][]byte{b[:], []byte(r.Kind), []byte(strconv.Itoa(r.Code)), []byte(c.Method), []byte(c.Path)} {
		_, _ = h.Write(part) // a hash never fails
		_, _ = h.Write([]byte{0})
	}
	x := h.Sum64() // the last bytes move few of FNV's high bits: mix (splitmix64)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// Storm is the weather of a bad day: of the calls of method, the share (0 to 1)
// goes wrong, in equal parts throttled (429), refused (503), cut off before and
// after their effect, and without a reply for the given time.
func Storm(method, object string, share float64, seed uint64, silence time.Duration) []Rule {
	rules := []Rule{
		{Kind: Status, Code: http.StatusTooManyRequests},
		{Kind: Status, Code: http.StatusServiceUnavailable},
		{Kind: Reset},
		{Kind: ResetAfter},
		{Kind: Lost, Delay: Duration(silence)},
	}
	each := share / float64(len(rules))
	for i := range rules {
		rules[i].Method, rules[i].Object, rules[i].Seed = method, object, seed
		// The first rule that hits is the one that counts: a later rule sees
		// only what the earlier ones let pass.
		rules[i].Probability = each / (1 - float64(i)*each)
	}
	return rules
}
