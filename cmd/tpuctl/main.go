// Command tpuctl is the companion of Terraform's provider "tpu".
package main

import (
	"os"
	"runtime/debug"
	"slices"

	"github.com/tpu-training/terraform-provider-tpu/cmd/tpuctl/interrupt"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	tpuversion "github.com/tpu-training/terraform-provider-tpu/internal/cli/version"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version = "dev"

// growth is the garbage collector's GOGC, for commands that end before there is
// much to collect: a submission would spend milliseconds on it. A sandbox stays.
const growth = 400

func main() {
	sandbox := slices.Contains(os.Args, "sandbox")
	if os.Getenv("GOGC") == "" && !sandbox {
		debug.SetGCPercent(growth)
	}
	ctx, stop := interrupt.Context(sandbox) // a sandbox ends its processes
	code := cli.Main(ctx, os.Args[1:], term.System(), tpuversion.Build{Version: version, Details: cli.Details})
	stop()
	os.Exit(code)
}
