// Command terraform-provider-tpu is the Terraform provider for training on
// Cloud TPUs in GKE. Terraform starts it; run by hand it only says so.
package main

import (
	"flag"
	"log"
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger, and print TF_REATTACH_PROVIDERS for Terraform")
	flag.Parse()
	var opts []tf6server.ServeOpt
	if *debug {
		opts = append(opts, tf6server.WithManagedDebug())
	}
	go endWith(os.Getppid(), time.Tick(orphanCheck), os.Getppid, os.Exit)
	makeProvider := provider.New(version)
	err := tf6server.Serve("registry.terraform.io/tpu-training/tpu", func() tfprotov6.ProviderServer { return provider.Server(makeProvider()) }, opts...)
	if err != nil {
		log.Fatal(err)
	}
}

// orphanCheck is how often the provider looks whether it still has a parent.
const orphanCheck = 500 * time.Millisecond

// endWith ends the process when its parent is not the one that started it any
// more: a command line that was killed tells nobody, and a provider that goes on
// without it would work against the next apply. What was under way is then as
// after a kill -9 of both, which the next apply goes on from.
func endWith(parent int, tick <-chan time.Time, now func() int, exit func(int)) {
	for range tick {
		if now() != parent {
			exit(1)
			return
		}
	}
}
