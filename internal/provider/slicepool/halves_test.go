package slicepool_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

// readTFState reads a directory's state file.
func readTFState(t *testing.T, d *tfrun.Dir) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(d.Path, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// poolOf is the slice pool's entry in a state.
func poolOf(t *testing.T, state map[string]any) map[string]any {
	t.Helper()
	for _, r := range state["resources"].([]any) {
		if r := r.(map[string]any); r["type"] == "tpu_slice_pool" {
			return r
		}
	}
	t.Fatal("no slice pool in the state")
	return nil
}

// A run that was killed after a new object had taken the node pools over, and
// before the old one was deleted, leaves both in the state: the next run deletes
// the old one, and the node pools stay.
func TestKilledBetweenTakingOverAndDeletion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rename bool // the new object has another address
	}{
		"create_before_destroy": {false},
		"another address":       {true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := acctest.NewGKE(t)
			config := manyHCL("lifecycle {\n    create_before_destroy = true\n  }", `"v5e"`)
			d := workspace(t, g, g.Config("a", config))
			run := func(args ...string) {
				t.Helper()
				if out, err := d.Output(t.Context(), append(args, "-no-color")...); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			run("apply", "-auto-approve")
			old := poolOf(t, readTFState(t, d))
			run("apply", "-auto-approve", "-replace=tpu_slice_pool.v5e")
			// What Terraform would have saved by then.
			state := readTFState(t, d)
			now := poolOf(t, state)
			was := old["instances"].([]any)[0].(map[string]any)
			if c.rename {
				renamed := maps.Clone(now)
				renamed["name"] = "renamed"
				now["instances"] = []any{was}
				state["resources"] = append(state["resources"].([]any), renamed)
				config = strings.Replace(config, `"tpu_slice_pool" "v5e"`, `"tpu_slice_pool" "renamed"`, 1)
				if err := d.Write("main.tf", terraformBlock+g.Config("a", config)); err != nil {
					t.Fatal(err)
				}
			} else {
				was["deposed"] = "0123abcd"
				now["instances"] = append(now["instances"].([]any), was)
			}
			data, err := json.Marshal(state)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Write("terraform.tfstate", string(data)); err != nil {
				t.Fatal(err)
			}
			before := deletions(g)
			run("apply", "-auto-approve")
			if left := slicesOf(g, "a"); len(left) != 2 || deletions(g) > before {
				t.Errorf("%d node pools were deleted, and these are left: %v", deletions(g)-before, left)
			}
			run("plan", "-detailed-exitcode")
			run("destroy", "-auto-approve")
			if left := slicesOf(g, "a"); len(left) > 0 {
				t.Errorf("left after the destroy: %v", left)
			}
		})
	}
}
