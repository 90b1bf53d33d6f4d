package accelerators

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
)

// A filter with a wrong value is refused in words: an empty table would say
// that there is no such slice.
func TestRefusals(t *testing.T) {
	for args, want := range map[string]struct {
		code  int
		words string
	}{
		"--topology 8x4x4":                         {exit.Usage, "write 4x4x8"},
		"v6e --topology 4x2":                       {exit.Usage, "write 2x4"},
		"v6e --topology 4x4x4":                     {exit.Usage, "its topologies have 2 sides"},
		"--topology 5x5x5":                         {exit.Usage, "above 64 chips every side is a multiple of 4"},
		"--machine-type nope":                      {exit.Usage, "not a TPU machine type"},
		"--machine-type 4t":                        {exit.Usage, "is the size of a TPU machine type"},
		"v5e --machine-type ct6e-standard-4t":      {exit.Usage, "belongs to v6e, not to v5e"},
		"--min-chips 64 --max-chips 16":            {exit.Usage, "64, is more than the most, 16"},
		"--min-hosts 4 --max-hosts 2":              {exit.Usage, "4, is more than the most, 2"},
		"nope":                                     {exit.Failure, `no TPU generation "nope"`},
		"v6e-7":                                    {exit.Failure, "v6e has no slice of 7 chips; try v6e-4 or v6e-8\nOne slice is described by: tpuctl accelerators describe v6e-4"},
		"v5e16":                                    {exit.Failure, "try v5litepod-16"},
		"v5p-128":                                  {exit.Usage, "tpuctl accelerators describe v5p-128"},
		"describe nope":                            {exit.Failure, "not a TPU type name"},
		"describe v5e-8-8t --machine-type 4t":      {exit.Failure, "name v5litepod-8"},
		"describe v5litepod-16 --machine-type 99t": {exit.Failure, "try ct5lp-hightpu-4t"},
	} {
		s, out, _ := clitest.Streams(0, false)
		err := clitest.Run(New(s), strings.Fields(args)...)
		if exit.Code(err) != want.code || err == nil || !strings.Contains(err.Error(), want.words) || out.String() != "" {
			t.Errorf("accelerators %s: exit %d, %v, output %q; want %d and %q", args, exit.Code(err), err, out, want.code, want.words)
		}
	}
}

// Numbers are refused without naming the function that could not read them.
func TestNumbers(t *testing.T) {
	for _, value := range []string{"x", "-1", "0", "1.5", "99999999999999999999"} {
		s, _, _ := clitest.Streams(0, false)
		err := clitest.Run(New(s), "--chips="+value)
		if err == nil || !strings.Contains(err.Error(), "want a whole number, 1 or more") || strings.Contains(err.Error(), "strconv") {
			t.Errorf("--chips=%s: %v", value, err)
		}
	}
}

// Filters choose before the table is cut down to one slice of each size.
func TestFilteredNames(t *testing.T) {
	for args, want := range map[string]string{
		"v6e --max-hosts 1":                              "v6e-1 v6e-4 v6e-8-8t",
		"v6e --max-hosts 2":                              "v6e-1 v6e-4 v6e-8",
		"--machine-type CT5LP-HIGHTPU-8T":                "v5litepod-8-8t",
		"v5e --machine-type 1t":                          "v5litepod-1",
		"v5e v6e --topology 4X4":                         "v5litepod-16 v6e-16",
		"v5p --chips 1024 --min-hosts 256":               "v5p-2048 v5p-4x16x16 v5p-4x8x32 v5p-4x4x64",
		"tpu7x --min-chips 16 --max-chips 64":            "tpu7x-32 tpu7x-64 tpu7x-128",
		"v6e --min-hosts 3 --max-chips 32 --min-chips 1": "v6e-16 v6e-32",
	} {
		s, out, _ := clitest.Streams(0, false)
		if err := clitest.Run(New(s), append(strings.Fields(args), "-o", "name")...); err != nil {
			t.Errorf("accelerators %s: %v", args, err)
			continue
		}
		if diff := cmp.Diff(want, strings.Join(strings.Fields(out.String()), " ")); diff != "" {
			t.Errorf("accelerators %s: %s", args, diff)
		}
	}
}
