package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
)

// What xpk's users type is answered by what there is here.
func TestWordsOfXpk(t *testing.T) {
	for line, want := range map[string]string{
		"submit a --tpu-type v6e-16":                     "unknown flag: --tpu-type; in place of xpk's --tpu-type: --accelerator (docs/guides/from-xpk.md)\nSee: tpuctl submit --help",
		"run a --docker-image=i":                         "in place of xpk's --docker-image: --image",
		"submit --workload a":                            "in place of xpk's --workload: the name stands alone: tpuctl submit NAME",
		"submit a --num-slices 2":                        "--slices",
		"submit a --script-dir .":                        "images are not built here",
		"submit a --headless":                            "pathways.headless of a job file",
		"list --filter-by-status RUNNING":                "in place of xpk's --filter-by-status: --state",
		"delete --force a":                               "in place of xpk's --force: --yes",
		"list --zone us-west4-a":                         "in place of xpk's --zone: --location",
		"submit a --acelerator v6e-16":                   "did you mean --accelerator?",
		"workload create --workload a --tpu-type=v6e-16": "there is no command \"workload\"; in place of xpk's workload create: tpuctl submit (docs/guides/from-xpk.md)",
		"workload list":                                  "tpuctl list",
		"workload frob":                                  "in place of xpk's workload: tpuctl submit, tpuctl list and tpuctl delete",
		"cluster create --cluster a --tpu-type=v6e-16":   "there is no command \"cluster create\"; in place of xpk's cluster create: Terraform's tpu_training_cluster",
		"cluster delete --cluster a":                     "terraform destroy",
		"inspector --cluster a":                          "tpuctl status and tpuctl logs --first-failure",
		"info":                                           "tpuctl queues",
		"storage attach a --type gcsfuse":                "volumes of a job file",
		"cluster lsit":                                   "did you mean list?",
	} {
		code, _, err := tpuctl(t, strings.Fields(line)...)
		if code != exit.Usage || !strings.Contains(err, want) {
			t.Errorf("%s: exit code %d, %s\nwant %q", line, code, err, want)
		}
	}
}

// The tables and the guide agree: each flag and command of theirs is in it, with
// what the table names, and each flag that submit has not is in the table.
func TestWordsOfXpkAreTheGuides(t *testing.T) {
	text, err := os.ReadFile("../../templates/guides/from-xpk.md")
	if err != nil {
		t.Fatal(err)
	}
	s, _, _ := clitest.Streams(0, false)
	root := New(s, build)
	rows := map[string]string{} // of a flag or command of theirs
	inSubmit := map[string]bool{}
	for section, lines := range sectionsOf(string(text), "## ") {
		if section == "cluster create" || section == "cluster delete, cluster cacheimage" || section == "storage" || section == "inspector, info" {
			continue // of commands that are not here at all
		}
		for _, line := range lines {
			left, right, row := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
			if !row || !strings.HasPrefix(line, "| ") {
				continue
			}
			for _, m := range quoted.FindAllStringSubmatch(left, -1) {
				rows[m[1]] += right
				if strings.HasPrefix(section, "workload create") {
					inSubmit[strings.TrimPrefix(m[1], "--")] = true
				}
			}
		}
	}
	for name, ours := range xpkFlags {
		row, there := rows["--"+name]
		if !there {
			t.Errorf("the guide has no --%s", name)
		}
		for _, word := range strings.Fields(ours) {
			word = strings.Trim(word, ",:;")
			if (strings.HasPrefix(word, "--") || strings.Contains(word, "_") || strings.HasPrefix(word, "pathways.")) && !strings.Contains(row, strings.SplitN(word, "=", 2)[0]) {
				t.Errorf("--%s: the guide does not name %s: %s", name, word, row)
			}
		}
	}
	submit, _, err := root.Find([]string{"submit"})
	if err != nil {
		t.Fatal(err)
	}
	for name := range inSubmit {
		if _, known := xpkFlags[name]; !known && submit.Flags().Lookup(name) == nil && name != "-tgps" {
			t.Errorf("--%s is in the guide and not in the table", name)
		}
	}
	for name, ours := range xpkFlags {
		if flag, is := strings.CutPrefix(ours, "--"); is && !hasFlag(root, firstWord(flag)) {
			t.Errorf("--%s: there is no --%s", name, firstWord(flag))
		}
	}
	for name := range xpkCommands {
		if _, there := rows[name]; !there && !slices.ContainsFunc(mapKeys(rows), func(row string) bool { return strings.HasPrefix(row, name+" ") }) {
			t.Errorf("the guide has no command %s", name)
		}
		if c, _, err := root.Find(strings.Fields(name)); err == nil && c != root && c.CommandPath() == "tpuctl "+name {
			t.Errorf("%s is a command here", name)
		}
	}
}

func hasFlag(c *cobra.Command, name string) bool {
	found := false
	c.Flags().VisitAll(func(f *pflag.Flag) { found = found || f.Name == name })
	return found || slices.ContainsFunc(c.Commands(), func(child *cobra.Command) bool { return hasFlag(child, name) })
}

func mapKeys(m map[string]string) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}
