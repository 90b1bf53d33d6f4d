package cli

import (
	"strings"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/version"
)

// A wrong flag is refused in words, not in Go's.
func TestFlagErrors(t *testing.T) {
	for args, want := range map[string]string{
		"submit a --slices two":         `--slices: "two"; want a whole number`,
		"submit a --ttl 3d":             `--ttl: "3d"; want a length of time such as 90s or 24h`,
		"submit a --fatal-exit-codes x": `--fatal-exit-codes: "x"; want whole numbers, as in 2,126`,
		"submit a --replace=maybe":      `--replace: "maybe"; want true or false`,
	} {
		s, _, _ := clitest.Streams(0, false)
		err := clitest.Run(New(s, version.Build{}), strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "strconv") || exit.Code(err) != exit.Usage {
			t.Errorf("%s: got %v (exit code %d), want %q", args, err, exit.Code(err), want)
		}
	}
}
