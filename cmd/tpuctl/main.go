// Command tpuctl is the companion of Terraform's provider "tpu".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	tpuversion "github.com/tpu-training/terraform-provider-tpu/internal/cli/version"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], term.System(), tpuversion.Build{Version: version, Details: cli.Details})
	stop()
	os.Exit(code)
}
