// Command terraform-provider-tpu is the Terraform provider for training on
// Cloud TPUs in GKE. Terraform starts it; run by hand it only says so.
package main

import (
	"flag"
	"log"

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
	makeProvider := provider.New(version)
	err := tf6server.Serve("registry.terraform.io/tpu-training/tpu", func() tfprotov6.ProviderServer { return provider.Server(makeProvider()) }, opts...)
	if err != nil {
		log.Fatal(err)
	}
}
