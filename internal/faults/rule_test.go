package faults

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestRulesThatCannotWorkAreRefused(t *testing.T) {
	for want, r := range map[string]Rule{
		`kind "typo"; want one of status, status-after`:   {Kind: "typo"},
		"code 200; a request that goes wrong is answered": {Kind: Status, Code: 200},
		"code, message and retryAfter belong to":          {Kind: Reset, Code: 503},
		"probability 1.5":                                 {Kind: Reset, Probability: 1.5},
		"exclude each other":                              {Kind: Reset, Probability: .5, Call: 2},
		"kind slow wants a delay":                         {Kind: Slow},
		"is not a pattern":                                {Kind: Reset, Method: "Create["},
		"count from 1":                                    {Kind: Reset, Call: -1},
		"a delay is not negative":                         {Kind: Lost, Delay: -1},
		"probability NaN":                                 {Kind: Reset, Probability: math.NaN()},
		"a seed is of no use":                             {Kind: Reset, Seed: 7},
		"kind status wants a code":                        {Kind: Status},
		`no request has the method "CreateNodePol"`:       {Kind: Reset, Method: "CreateNodePol"},
		"is for reads":                                    {Kind: Stale, Method: "CreateNodePool"},
	} {
		if err := r.Check(); !errors.Is(err, ErrRule) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
	for _, r := range Storm("", "", .2, 1, time.Millisecond) {
		if err := r.Check(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestWhichCallsARuleFits(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		call Call
		want bool
	}{
		{Rule{Kind: Reset}, Call{Method: "GetCluster"}, true},
		{Rule{Kind: Reset, Method: "GetCluster"}, Call{Method: "GetClusters"}, false},
		{Rule{Kind: Reset, Method: "kube *"}, Call{Method: "kube POST pods/binding"}, true},
		{Rule{Kind: Reset, Method: "kube PATCH *"}, Call{Method: "kube GET pods"}, false},
		{Rule{Kind: Reset, Method: "compute.*"}, Call{Method: "compute.resourcePolicies.insert"}, true},
		{Rule{Kind: Reset, Object: "clusters/a"}, Call{Method: "x", Path: "/v1/projects/p/locations/z/clusters/a"}, true},
		{Rule{Kind: Reset, Object: "clusters/b"}, Call{Method: "x", Path: "/v1/projects/p/locations/z/clusters/a"}, false},
		{Rule{Kind: Stale}, Call{Method: "x", Mutates: true}, false},
		{Rule{Kind: Stale}, Call{Method: "x"}, true},
	} {
		if got := c.rule.meets(c.call, true); got != c.want {
			t.Errorf("%+v meets %+v: %v", c.rule, c.call, got)
		}
	}
}

// hits runs n calls of one method through a set and notes which are hit.
func hits(t *testing.T, n int, rules ...Rule) string {
	t.Helper()
	var s Set
	return s.hits(t, n, rules...)
}

func (s *Set) hits(t *testing.T, n int, rules ...Rule) string {
	t.Helper()
	if _, err := s.Add(rules...); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for range n {
		if _, r := s.meet(Call{Method: "M", Path: "/p"}, true); r != nil {
			b.WriteString(r.ID)
		} else {
			b.WriteString(".")
		}
	}
	return b.String()
}

func TestWhenARuleHits(t *testing.T) {
	for want, rules := range map[string][]Rule{
		".1....": {{Kind: Reset, Call: 2}},
		"11....": {{Kind: Reset, Times: 2}},
		// A rule sees also the calls that an older rule hits.
		"123...": {{Kind: Reset, Call: 1}, {Kind: Reset, Call: 2}, {Kind: Reset, Call: 3}},
		"......": {{Kind: Reset, Method: "DeleteCluster"}},
	} {
		if got := hits(t, 6, rules...); got != want {
			t.Errorf("%+v: %s, want %s", rules, got, want)
		}
	}
}

// The same seed hits the same calls whatever happens between them, another
// seed hits others, and the share comes out as asked.
func TestAShareOfTheCalls(t *testing.T) {
	const n = 20000
	a, again, b := hits(t, n, Rule{Kind: Reset, Probability: .2, Seed: 1}), hits(t, n, Rule{Kind: Reset, Probability: .2, Seed: 1}), hits(t, n, Rule{Kind: Reset, Probability: .2, Seed: 2})
	if a != again {
		t.Error("the same seed hits other calls")
	}
	if a == b {
		t.Error("another seed hits the same calls")
	}
	if got := strings.Count(a, "1"); got < n*18/100 || got > n*22/100 {
		t.Errorf("%d of %d hit, want a fifth", got, n)
	}
	storm := hits(t, n, Storm("", "", .2, 3, time.Millisecond)...)
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		if got := strings.Count(storm, id); got < n*3/100 || got > n*5/100 {
			t.Errorf("rule %s of the storm hit %d of %d, want a twenty-fifth", id, got, n)
		}
	}
}

// A rule that is added again with its seed hits the same calls again, whatever
// rules and calls there were before.
func TestAShareIsReproduced(t *testing.T) {
	var s Set
	rule := Rule{Kind: Reset, Probability: .2, Seed: 1}
	first := s.hits(t, 200, rule)
	if _, err := s.Remove(); err != nil {
		t.Fatal(err)
	}
	again := s.hits(t, 200, rule)
	if want := strings.ReplaceAll(first, "1", "2"); again != want {
		t.Errorf("first\n%s\nthen\n%s", first, again)
	}
}
