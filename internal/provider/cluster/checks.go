package cluster

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	tpuattr "github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
)

var versionText = regexp.MustCompile(`^[0-9]+\.[0-9]+(\.[0-9]+(-gke\.[0-9]+)?)?$`)

func version() validator.String {
	const wants = "a version such as 1.34, 1.34.1 or 1.34.1-gke.2201000"
	return tpuattr.Check("Invalid version", wants, func(s string) error {
		if !versionText.MatchString(s) {
			return fmt.Errorf("%q is not a GKE version: want %s", s, wants)
		}
		return nil
	})
}

// cpuMachine refuses TPU machines: their node pools are tpu_slice_pool's.
func cpuMachine() validator.String {
	return tpuattr.Check("Not a CPU machine type", "a machine type without TPUs, such as e2-standard-8", cpuMachineError)
}

func cpuMachineError(s string) error {
	for _, g := range accelerator.Generations() {
		facts, _ := g.Facts()
		for _, m := range facts.Machines {
			if m.Name == s {
				return fmt.Errorf("%s has TPUs (%s): make a tpu_slice_pool of it; cpu_pools are for machines such as e2-standard-8", s, g)
			}
		}
	}
	if s == "" || strings.ContainsAny(s, " /_") {
		return fmt.Errorf("%q is not a machine type: want one such as e2-standard-8", s)
	}
	return nil
}
