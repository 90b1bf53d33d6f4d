package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Set is the rules in force, in the order in which they were added: the first
// that hits a call decides. The zero Set is empty and ready.
type Set struct {
	mu      sync.Mutex
	rules   []*inForce
	last    int // number of the rule added last
	file    string
	calls   map[string]int // by method
	same    map[string]int // by method and path
	total   int
	hooks   []*Hook
	changed []func()
	past    history
}

// inForce is a rule of a set.
type inForce struct {
	Rule
	before map[string]int // what Set.same was when the rule came
}

// Load makes a set that keeps its rules in a file, and starts with what the
// file holds.
func Load(file string) (*Set, error) {
	s := &Set{file: file}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s.rules)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the fault rules: %w: remove %s to start without any", err, file)
	}
	for _, r := range s.rules {
		if n, err := strconv.Atoi(r.ID); err == nil {
			s.last = max(s.last, n)
		}
	}
	return s, nil
}

// Add puts rules into force and returns them with their ids. All of them or
// none.
func (s *Set) Add(rules ...Rule) ([]Rule, error) {
	for _, r := range rules {
		if err := r.Check(); err != nil {
			return nil, err
		}
	}
	out := slices.Clone(rules)
	err := s.change(func() {
		for i := range out {
			s.last++
			out[i].ID, out[i].Seen, out[i].Hits = strconv.Itoa(s.last), 0, 0
			s.rules = append(s.rules, &inForce{out[i], maps.Clone(s.same)})
		}
	})
	return out, err
}

// List returns the rules in force, with what they have seen and hit.
func (s *Set) List() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list()
}

func (s *Set) list() []Rule {
	out := make([]Rule, len(s.rules))
	for i, r := range s.rules {
		out[i] = r.Rule
	}
	return out
}

// UnknownRuleError says that there is no such rule.
type UnknownRuleError struct {
	ID    string
	Known []string // the rules that there are
}

func (e *UnknownRuleError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("there is no fault rule %q, nor any other", e.ID)
	}
	return fmt.Sprintf("there is no fault rule %q; want one of %s", e.ID, strings.Join(e.Known, ", "))
}

// Remove ends rules by id, all of them or none; without an id it ends every
// rule. It returns those that it ended.
func (s *Set) Remove(ids ...string) ([]Rule, error) {
	s.mu.Lock()
	before := s.list()
	s.mu.Unlock()
	for _, id := range ids {
		if !slices.ContainsFunc(before, func(r Rule) bool { return r.ID == id }) {
			known := make([]string, len(before))
			for i, r := range before {
				known[i] = r.ID
			}
			return nil, &UnknownRuleError{ID: id, Known: known}
		}
	}
	gone := []Rule{}
	err := s.change(func() {
		s.rules = slices.DeleteFunc(s.rules, func(r *inForce) bool {
			ends := len(ids) == 0 || slices.Contains(ids, r.ID)
			if ends {
				gone = append(gone, r.Rule)
			}
			return ends
		})
	})
	return gone, err
}

// change edits the rules, writes them down and tells whoever wants to know.
func (s *Set) change(edit func()) error {
	s.mu.Lock()
	before := slices.Clone(s.rules)
	edit()
	err := s.save()
	if err != nil {
		s.rules = before
	}
	s.past.keep(slices.ContainsFunc(s.rules, func(r *inForce) bool { return r.Kind == Stale }))
	changed := slices.Clone(s.changed)
	s.mu.Unlock()
	for _, f := range changed {
		f()
	}
	return err
}

// save replaces the file in one step.
func (s *Set) save() error {
	if s.file == "" {
		return nil
	}
	b, err := json.MarshalIndent(s.rules, "", "  ")
	if err == nil {
		temp := filepath.Join(filepath.Dir(s.file), "."+filepath.Base(s.file))
		if err = os.WriteFile(temp, append(b, '\n'), 0o600); err == nil {
			err = os.Rename(temp, s.file)
		}
	}
	if err != nil {
		return fmt.Errorf("writing the fault rules down: %w", err)
	}
	return nil
}

// meet counts a call and returns the rule that it meets, or nil. past says that
// there is an earlier answer to it.
func (s *Set) meet(c Call, past bool) (Call, *Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls, s.same = map[string]int{}, map[string]int{}
	}
	key := c.Method + " " + c.Path
	s.total++
	s.calls[c.Method]++
	s.same[key]++
	c.N, c.OfMethod, c.Nth = s.total, s.calls[c.Method], s.same[key]
	var hit *Rule
	for _, r := range s.rules {
		if hit != nil {
			if r.fits(c) {
				r.Seen++ // the nth call is the nth, also when an older rule hits it
			}
			continue
		}
		since := c
		since.Nth -= r.before[key]
		if r.meets(since, past) {
			found := r.Rule
			hit = &found
		}
	}
	return c, hit
}

// Calls counts the calls so far, by method.
func (s *Set) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// idle tells whether nobody wants anything of the calls.
func (s *Set) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rules) == 0 && len(s.hooks) == 0
}

// onChange has f called after rules or hooks came or went.
func (s *Set) onChange(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = append(s.changed, f)
}
