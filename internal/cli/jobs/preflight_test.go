package jobs

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/preflight"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

var (
	good    = preflight.Item{Name: "queue", Result: preflight.Passed, Text: "q"}
	bad     = preflight.Item{Name: "image", Result: preflight.Failed, Text: "image train:1 does not exist"}
	unasked = preflight.Item{Name: "slices", Result: preflight.Unknown, Text: "this account may not look at nodes"}
)

func TestPreflight(t *testing.T) {
	queued := append(slices.Clone(usual), "--queue", "q")
	there := run("research", "train", training.Running)
	submitted := []string{"submit research/train to q, rehearsal false"}
	tests := map[string]struct {
		items []preflight.Item
		args  []string
		width int
		runs  func(spec training.Spec) []training.Run
		did   []string
		tells string // on standard error
		fails string
	}{
		"all is well, to a pipe":    {items: []preflight.Item{good}, did: submitted},
		"all is well, to a person":  {items: []preflight.Item{good}, width: 100, did: submitted, tells: "✓ queue        q\n"},
		"what is not known is said": {items: []preflight.Item{good, unasked}, did: submitted, tells: "? slices       this account may not look at nodes\n"},
		"something in the way": {items: []preflight.Item{good, bad}, tells: "✗ image        image train:1 does not exist\n",
			fails: "job research/train was not submitted: 1 thing in its way (--skip-preflight submits it all the same)"},
		"not looked at":           {items: []preflight.Item{bad}, args: []string{"--skip-preflight"}, did: submitted},
		"a rehearsal looks too":   {items: []preflight.Item{bad}, args: []string{"--dry-run=server"}, tells: "✗ image        image train:1 does not exist\n", fails: "not submitted"},
		"asking nobody looks not": {items: []preflight.Item{bad}, args: []string{"--dry-run=client", "-o", "name"}},
		"what is there had its way": {items: []preflight.Item{bad}, runs: func(s training.Spec) []training.Run {
			there.Annotations = map[string]string{training.AnnotationSpecHash: s.Hash()}
			return []training.Run{there}
		}, did: submitted},
	}
	first, acts, _, _ := acting(fake{})
	if err := clitest.Run(newSubmit(first), queued...); err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := fake{items: tt.items}
			if tt.runs != nil {
				f.runs = tt.runs(acts.spec)
			}
			d, acts, _, errs := acting(f)
			d.Streams.Width = tt.width
			err := clitest.Run(newSubmit(d), append(slices.Clone(queued), tt.args...)...)
			if tt.fails == "" && err != nil || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails) || exit.Code(err) != exit.Failure) {
				t.Errorf("got %v, want %q", err, tt.fails)
			}
			if diff := cmp.Diff(tt.did, acts.done); diff != "" {
				t.Errorf("what was done: %s", diff)
			}
			if diff := cmp.Diff(tt.tells, errs()); diff != "" {
				t.Errorf("what was told: %s", diff)
			}
		})
	}
}

// A program reads what is in the way in the error, and nothing beside it.
func TestPreflightForAProgram(t *testing.T) {
	queued := append(slices.Clone(usual), "--queue", "q", "-o", "json")
	items := []preflight.Item{good, unasked, bad}
	d, _, out, errs := acting(fake{items: items})
	err := clitest.Run(newSubmit(d), queued...)
	var blocked *blockedError
	if !errors.As(err, &blocked) || out() != "" || errs() != "" {
		t.Fatalf("%v, said %q, told %q", err, out(), errs())
	}
	if diff := cmp.Diff(map[string]any{"kind": "preflight", "preflight": items}, blocked.Fields()); diff != "" {
		t.Error(diff)
	}
	d, _, _, errs = acting(fake{items: items[:2], runs: sample().runs, acts: &acts{submit: []error{taken(false)}}})
	if err := clitest.Run(newSubmit(d), append(queued, "--replace")...); err != nil || errs() != "" {
		t.Errorf("submitted: %v, told %q", err, errs())
	}
}

// The owner is the account: as it is known here, else as the cluster knows it.
func TestOwner(t *testing.T) {
	for name, tt := range map[string]struct {
		here, there string
		args        []string
		want        string
	}{
		"known here":    {here: "ada@example.com", there: "else", want: "ada-example.com"},
		"known there":   {there: "system:admin", want: "system-admin"},
		"nobody":        {},
		"said":          {here: "ada", args: []string{"--owner", "team"}, want: "team"},
		"not preflight": {there: "ada", args: []string{"--skip-preflight"}, want: "ada"},
	} {
		t.Run(name, func(t *testing.T) {
			d, acts, _, _ := acting(fake{account: tt.there})
			d.Account = func(target.Options) string { return tt.here }
			if err := clitest.Run(newSubmit(d), append(append(slices.Clone(usual), "--queue", "q"), tt.args...)...); err != nil {
				t.Fatal(err)
			}
			if acts.spec.Owner != tt.want {
				t.Errorf("the owner is %q, want %q", acts.spec.Owner, tt.want)
			}
		})
	}
}
