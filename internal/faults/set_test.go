package faults

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRulesSurviveARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "faults.json")
	s, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	rules := []Rule{
		{Method: "CreateNodePool", Kind: Status, Code: 503, RetryAfter: Duration(2 * time.Second), Call: 2},
		{Method: "kube *", Kind: Slow, Delay: Duration(1500 * time.Millisecond)},
	}
	if _, err := s.Add(rules...); err != nil {
		t.Fatal(err)
	}
	if s, err = Load(file); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rules, s.List(), cmpopts.IgnoreFields(Rule{}, "ID")); diff != "" {
		t.Error(diff)
	}
	added, err := s.Add(Rule{Kind: Reset})
	if err != nil || added[0].ID != "3" {
		t.Errorf("the next rule is %+v, %v; want id 3", added, err)
	}
	if gone, err := s.Remove("1", "3"); err != nil || len(gone) != 2 {
		t.Errorf("removed %+v, %v", gone, err)
	}
	if s, err = Load(file); err != nil || len(s.List()) != 1 || s.List()[0].ID != "2" {
		t.Errorf("left: %+v, %v", s.List(), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestAllRulesOrNone(t *testing.T) {
	var s Set
	if _, err := s.Add(Rule{Kind: Reset}, Rule{Kind: "typo"}); !errors.Is(err, ErrRule) || len(s.List()) != 0 {
		t.Errorf("%v; in force: %+v", err, s.List())
	}
	if _, err := s.Add(Rule{Kind: Reset}); err != nil {
		t.Fatal(err)
	}
	var unknown *UnknownRuleError
	if _, err := s.Remove("1", "9"); !errors.As(err, &unknown) || unknown.ID != "9" || !strings.HasSuffix(err.Error(), `"9"; want one of 1`) || len(s.List()) != 1 {
		t.Errorf("%v; in force: %+v", err, s.List())
	}
	if gone, err := s.Remove(); err != nil || len(gone) != 1 || !s.idle() {
		t.Errorf("%+v, %v", gone, err)
	}
}

func TestAFileThatIsNoRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "faults.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), "remove "+file) {
		t.Errorf("%v does not say what to do", err)
	}
}
