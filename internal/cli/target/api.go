package target

import (
	"context"
	"maps"
	"os"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// EndpointVariable overrides the Container API's address, as it does for the
// provider: private endpoints, proxies and the sandbox.
const EndpointVariable = "TPU_GKE_ENDPOINT"

// api is the Container API as Find and Connect use it.
type api struct{ client *gke.Client }

func newAPI(ctx context.Context) (*api, error) {
	log := hclog.FromContext(ctx)
	client, err := gke.New(gke.Config{
		Endpoint:  os.Getenv(EndpointVariable),
		Tokens:    gke.FindCredentials(gke.CredentialsConfig{}),
		UserAgent: "tpuctl",
		Log: func(_ context.Context, message string, fields map[string]any) {
			args := make([]any, 0, 2*len(fields))
			for _, k := range slices.Sorted(maps.Keys(fields)) {
				args = append(args, k, fields[k])
			}
			log.Debug(message, args...)
		},
	})
	if err != nil {
		return nil, err
	}
	return &api{client}, nil
}

func (a *api) Clusters(ctx context.Context, project, location string) (names []gke.ClusterName, silent []string, err error) {
	clusters, silent, err := a.client.ListClusters(ctx, project, location)
	if err != nil {
		return nil, nil, err
	}
	names = make([]gke.ClusterName, len(clusters))
	for i, c := range clusters {
		names[i] = gke.ClusterName{Project: project, Location: c.GetLocation(), Cluster: c.GetName()}
	}
	return names, silent, nil
}

func (a *api) Access(ctx context.Context, name gke.ClusterName) (kube.Access, error) {
	return a.client.Access(ctx, name)
}
