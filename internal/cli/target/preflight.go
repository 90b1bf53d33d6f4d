package target

import (
	"cmp"
	"context"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/oauth2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/preflight"
)

// StorageVariable overrides the address of Cloud Storage: private endpoints and
// the sandbox.
const StorageVariable = "TPU_STORAGE_ENDPOINT"

// Checks are what a job's way through a connected cluster is asked of.
func Checks(ctx context.Context, o Options, cluster *kube.Client) preflight.Checks {
	wrap := logged(ctx)
	tokens := gke.FindCredentials(gke.CredentialsConfig{CommandLine: true, Transport: wrap(http.DefaultTransport)})
	c := preflight.Checks{
		Cluster: cluster,
		Images: preflight.Registry{Transport: wrap(remote.DefaultTransport), Token: func() string {
			t, err := tokens.Token()
			if err != nil {
				return ""
			}
			return t.AccessToken
		}},
		Buckets: preflight.Storage{
			Endpoint: cmp.Or(os.Getenv(StorageVariable), preflight.StorageEndpoint),
			Client:   &http.Client{Transport: &oauth2.Transport{Source: tokens, Base: wrap(http.DefaultTransport)}},
		},
	}
	if settled, err := o.settle(os.Getenv); err == nil && !settled.ofKubeconfig() {
		c.Provisions = func(ctx context.Context, s accelerator.Slice) (bool, error) { return provisions(ctx, o, s) }
	}
	return c
}

// provisions tells whether the cluster has a node pool of such slices, whatever
// its size is now, or makes node pools by itself.
func provisions(ctx context.Context, o Options, s accelerator.Slice) (bool, error) {
	client, name, err := Container(ctx, o)
	if err != nil {
		return false, err
	}
	return client.Provides(ctx, name, s)
}
