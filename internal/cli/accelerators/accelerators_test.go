package accelerators

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
)

func TestOutputs(t *testing.T) {
	for golden, tt := range map[string]struct {
		width int
		args  string
	}{
		"list.txt":               {0, ""},
		"list-v5e-80.txt":        {80, "v5e"},
		"list-wide.txt":          {0, "v6e tpu7x --max-chips 64 -o wide"},
		"list-size.txt":          {0, "v5p --chips 1024"},
		"list-none.txt":          {0, "v5e --min-chips 1000"},
		"list-single.json":       {0, "v6e --hosts 1 -o json"},
		"describe-v5p-2048.txt":  {0, "describe v5p-2048"},
		"describe-v6e-256.txt":   {80, "describe v6e-256"},
		"describe-8t.txt":        {0, "describe v5litepod-8 --machine-type ct5lp-hightpu-8t"},
		"describe-tpu7.txt":      {0, "describe tpu7-8"},
		"describe-tpu7x-256.txt": {0, "describe tpu7x-256"},
		"describe-v5p-128.json":  {0, "describe v5p-128 -o json"},
		"describe-v5p-128.yaml":  {0, "describe V5P-4X4X4 -o yaml"},
	} {
		t.Run(golden, func(t *testing.T) {
			s, out, _ := clitest.Streams(tt.width, false)
			if err := clitest.Run(New(s), strings.Fields(tt.args)...); err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, golden, out.String())
		})
	}
}

// Scripts rely on these keys.
func TestDescribeKeys(t *testing.T) {
	s, out, _ := clitest.Streams(0, false)
	if err := clitest.Run(New(s), "describe", "v5litepod-16", "-o", "json"); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"name": "v5litepod-16", "generation": "v5e", "topology": "4x4", "chips": 16.0, "tensorcores": 16.0, "hosts": 4.0,
		"chips_per_host": 4.0, "machine_type": "ct5lp-hightpu-4t", "accelerator_label": "tpu-v5-lite-podslice",
		"multi_host": true, "placement": "compact", "alternatives": []any{},
	}
	for key, value := range want {
		if diff := cmp.Diff(value, got[key]); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}

func TestAllListsTheWholeCatalogue(t *testing.T) {
	for args, want := range map[string]int{
		"--all -o name": len(accelerator.List(accelerator.Filter{})),
		"-o name":       len(accelerator.List(accelerator.Filter{Compact: true})),
	} {
		s, out, _ := clitest.Streams(0, false)
		if err := clitest.Run(New(s), strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("accelerators %s lists %d slices, want %d", args, got, want)
		}
	}
}
