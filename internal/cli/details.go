package cli

import (
	"cmp"
	"context"
	"os"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/version"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// Details says what a command would work with: the credentials that were
// found, by kind and place and never by content, and where it would look for a
// cluster. It asks no server.
func Details(context.Context) []version.Detail {
	credentials, err := gke.FindCredentials(gke.CredentialsConfig{CommandLine: true}).Describe()
	if err != nil {
		credentials = "none: " + err.Error()
	}
	o := target.FromEnvironment(os.Getenv)
	return []version.Detail{
		{Name: "credentials", Value: credentials},
		{Name: "GKE endpoint", Value: cmp.Or(os.Getenv(target.EndpointVariable), "container.googleapis.com")},
		{Name: "cluster", Value: cmp.Or(o.Cluster, "the only one of the project")},
		{Name: "project", Value: cmp.Or(o.Project, "not set (--project, GOOGLE_PROJECT)")},
		{Name: "location", Value: cmp.Or(o.Location, "any")},
	}
}
