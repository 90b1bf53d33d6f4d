package target

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"os"
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/go-hclog"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
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
	wrap := logged(ctx)
	client, err := gke.New(gke.Config{
		Endpoint:  os.Getenv(EndpointVariable),
		Tokens:    gke.FindCredentials(gke.CredentialsConfig{CommandLine: true, Transport: wrap(http.DefaultTransport)}),
		Transport: wrap(http.DefaultTransport),
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

// Clusters lists the clusters of the project that is meant; silent are zones and
// regions that did not answer.
func Clusters(ctx context.Context, o Options) (project string, clusters []*containerpb.Cluster, silent []string, err error) {
	location := cmp.Or(o.Location, "-")
	if o.Project == "" {
		if o, err = o.settle(os.Getenv); err != nil {
			return "", nil, nil, err
		}
		if name, err := gke.ParseClusterName(o.Cluster); err == nil { // a context's whole path says the project too
			o.Project = cmp.Or(o.Project, name.Project)
		}
	}
	if o.Project == "" {
		return "", nil, nil, exit.Usagef("which project? Give --project, or set GOOGLE_PROJECT")
	}
	api, err := newAPI(ctx)
	if err != nil {
		return "", nil, nil, err
	}
	clusters, silent, err = api.client.ListClusters(ctx, o.Project, location)
	return o.Project, clusters, silent, err
}
