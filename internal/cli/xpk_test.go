package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/version"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// Whatever the guide for xpk's users names as ours is there.
func TestTheGuideFromXpkNamesWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../../templates/guides/from-xpk.md")
	if err != nil {
		t.Fatal(err)
	}
	s, _, _ := clitest.Streams(0, false)
	root := New(s, version.Build{})
	flags := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(root)
	seen := 0
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 2 {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			words := strings.Fields(m[1])
			if words[0] == "tpuctl" && len(words) > 1 {
				seen++
				var path []string
				for _, w := range words[1:] {
					if w == strings.ToLower(w) && !strings.HasPrefix(w, "-") {
						path = append(path, w)
					}
				}
				if c, _, err := root.Find(path); err != nil || c == root || c.Name() != path[len(path)-1] {
					t.Errorf("%s: there is no such command (%v)", m[1], err)
				}
			}
			for _, w := range words {
				name, _, _ := strings.Cut(strings.TrimPrefix(w, "--"), "=")
				if strings.HasPrefix(w, "--") && name != "" {
					seen++
					if !flags[name] {
						t.Errorf("%s: there is no flag --%s", m[1], name)
					}
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d names were looked for", seen)
	}
}
