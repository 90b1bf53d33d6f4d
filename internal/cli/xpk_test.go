package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// sectionsOf are the lines of a text by the heading that they follow, which
// begins with mark.
func sectionsOf(text, mark string) map[string][]string {
	all, at := map[string][]string{}, ""
	for line := range strings.SplitSeq(text, "\n") {
		if heading, ok := strings.CutPrefix(line, mark); ok {
			at = strings.TrimSuffix(heading, "]")
			continue
		}
		all[at] = append(all[at], line)
	}
	return all
}

// The guide for xpk's users says of each of its commands, flags, keys and
// variables what there is instead, and of nothing else. That what it names as
// ours exists, the guides' test beside the provider says.
func TestTheGuideFromXpkIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../templates/guides/from-xpk.md")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("testdata/xpk.txt")
	if err != nil {
		t.Fatal(err)
	}
	guide, seen := sectionsOf(string(text), "## "), 0
	for heading, lines := range sectionsOf(string(list), "[") {
		if heading == "" || heading == "Accelerators" {
			continue
		}
		want := map[string]bool{}
		for _, line := range lines {
			names := []string{line}
			if heading != "Commands" {
				names = strings.Fields(line)
			}
			for _, name := range names {
				if name != "" {
					want[name] = false
					seen++
				}
			}
		}
		if heading == "Names of accelerators" {
			for name := range want {
				if _, err := accelerator.Resolve(name); err != nil || !strings.Contains(strings.Join(guide[heading], "\n"), "`"+name+"`") {
					t.Errorf("the accelerator %s is not taken (%v), or not in the guide", name, err)
				}
			}
			continue
		}
		for _, line := range guide[heading] {
			left, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
			if !row || !strings.HasPrefix(line, "| ") {
				continue
			}
			for _, m := range quoted.FindAllStringSubmatch(left, -1) {
				if _, known := want[m[1]]; !known {
					t.Errorf("%s: xpk has no %s there", heading, m[1])
				}
				want[m[1]] = true
			}
		}
		for name, there := range want {
			if !there {
				t.Errorf("%s: the guide does not say what is to be done without %s", heading, name)
			}
		}
	}
	if seen < 150 {
		t.Errorf("only %d names were looked for", seen)
	}
}

// The names that xpk has for TPUs mean the same slice, and what is no TPU is
// refused in words.
func TestAcceleratorsOfXpk(t *testing.T) {
	list, err := os.ReadFile("testdata/xpk.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, line := range sectionsOf(string(list), "[")["Accelerators"] {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		code, out, said := tpuctl(t, "submit", "train", "--queue", "none", "--image", "train:1", "--dry-run=client", "-o", "json", "--accelerator", words[0])
		seen++
		if len(words) == 1 {
			if code != exit.Usage || !strings.Contains(said, "--accelerator: there is no TPU generation") {
				t.Errorf("%s: exit code %d, %s", words[0], code, said)
			}
			continue
		}
		for _, want := range []string{`"cloud.google.com/gke-tpu-topology": "` + words[1] + `"`, `"parallelism": ` + words[2] + ","} {
			if code != exit.OK || !strings.Contains(out, want) {
				t.Errorf("%s: exit code %d, no %s in\n%s%s", words[0], code, want, out, said)
			}
		}
	}
	if seen < 80 {
		t.Errorf("only %d names were tried", seen)
	}
}
