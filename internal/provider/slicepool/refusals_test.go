package slicepool_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/protoadapt"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// A request that GKE refuses is an error whose summary names the cause and
// whose detail names the next step. Nothing is left in GKE or in state, nothing
// is tainted: when the cause is gone the same configuration creates.
func TestRefusedCreates(t *testing.T) {
	t.Parallel()
	info := func(reason string, meta map[string]string) []protoadapt.MessageV1 {
		return []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: reason, Domain: "googleapis.com", Metadata: meta}}
	}
	for name, c := range map[string]struct {
		fault fakegke.Fault
		want  string
	}{
		"quota": {fakegke.Fault{Code: codes.PermissionDenied, Message: `Insufficient regional quota to satisfy request: resource "TPUS_PER_TPU_FAMILY": request requires '16.0' and is short '8.0'. project has a quota of '8.0' with '8.0' available.`},
			`create slice pool v5e: quota TPUS_PER_TPU_FAMILY exceeded in us-west4: limit 8, 8 free, 16 asked for, 8 short.*iam-admin/quotas`},
		"reservation that is not there": {fakegke.Fault{Code: codes.NotFound, Message: `Google Compute Engine: reservation "r" not found for node pool "v5e-0" at zone "us-west4-a".`},
			`create slice pool v5e: reservation r is not there or not usable in us-west4-a.*gcloud compute reservations describe r`},
		"organization policy": {fakegke.Fault{Code: codes.FailedPrecondition, Message: "Constraint constraints/compute.vmExternalIpAccess violated for project projects/acc-project."},
			`create slice pool v5e: forbidden by organization policy constraints/compute.vmExternalIpAccess.*node.private`},
		"permission": {fakegke.Fault{Code: codes.PermissionDenied, Message: "The caller does not have permission.", Details: info("IAM_PERMISSION_DENIED", map[string]string{"permission": "container.clusters.update", "resource": "projects/acc-project"})},
			`create slice pool v5e: permission denied: container.clusters.update on projects/acc-project.*roles/container.admin`},
		"API": {fakegke.Fault{Code: codes.PermissionDenied, Message: "Compute Engine API is off.", Details: info("SERVICE_DISABLED", map[string]string{"service": "compute.googleapis.com"})},
			`create slice pool v5e: API not enabled: compute.googleapis.com.*gcloud services enable compute.googleapis.com`},
		"addresses": {fakegke.Fault{Code: codes.InvalidArgument, Message: "IP space of 'projects/p/regions/us-west4/subnetworks/train' is exhausted. Insufficient free IP addresses in the IP range '10.0.1.0/24'."},
			`create slice pool v5e: no free IP addresses in subnetwork train in 10.0.1.0/24.*node.max_pods`},
		"service account": {fakegke.Fault{Code: codes.InvalidArgument, Message: `Service account "nodes" does not exist.`},
			`create slice pool v5e: node service account nodes is not usable.*node.service_account`},
		"machine type": {fakegke.Fault{Code: codes.InvalidArgument, Message: "Machine type with name 'ct5lp-hightpu-4t' does not exist in zone 'us-west4-a'."},
			`create slice pool v5e: ct5lp-hightpu-4t is not offered in us-west4-a.*gcloud compute machine-types list`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := acctest.NewGKE(t)
			c.fault.Method = "CreateNodePool"
			remove := g.Fail(c.fault)
			config := g.Config("refused", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2"))
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: g.Factories(),
				Steps: []resource.TestStep{
					{Config: config, ExpectError: words(c.want)},
					{
						PreConfig: func() {
							if n := len(nodePools(t, g)); n != 1 {
								t.Errorf("%d node pools, want the cluster's own: a refused request leaves nothing", n)
							}
							remove()
						},
						Config:            config,
						ConfigPlanChecks:  action(plancheck.ResourceActionCreate),
						ConfigStateChecks: []statecheck.StateCheck{ready(2)},
					},
				},
			})
		})
	}
}

// words is a pattern in which a space matches the line breaks that Terraform
// puts between words.
func words(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)` + regexp.MustCompile(` `).ReplaceAllString(pattern, `\s+`))
}
