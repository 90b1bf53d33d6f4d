package fakegke

import (
	"net/http"
	"strings"
	"testing"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
)

func TestAPermissionThatIsMissingIsNamedOnBothClients(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s *Server, c *container.ClusterManagerClient) {
		ctx := t.Context()
		createCluster(t, c)
		for _, tc := range []struct {
			permission, on string
			call           func() error
		}{
			{"container.clusters.create", "projects/acme", func() error {
				_, err := c.CreateCluster(ctx, &containerpb.CreateClusterRequest{Parent: testParent, Cluster: cluster("other")})
				return err
			}},
			{"container.clusters.get", "projects/acme/zones/us-west4-a/clusters/train", func() error {
				_, err := c.GetCluster(ctx, &containerpb.GetClusterRequest{Name: testCluster})
				return err
			}},
			{"container.clusters.list", "projects/acme", func() error {
				_, err := c.ListClusters(ctx, &containerpb.ListClustersRequest{Parent: "projects/acme/locations/-"})
				return err
			}},
			{"container.clusters.update", "projects/acme/zones/us-west4-a/clusters/train", func() error {
				_, err := c.CreateNodePool(ctx, &containerpb.CreateNodePoolRequest{Parent: testCluster, NodePool: slicePool("v5e")})
				return err
			}},
			{"container.clusters.update", "projects/acme/zones/us-west4-a/clusters/train", func() error {
				_, err := c.SetLabels(ctx, &containerpb.SetLabelsRequest{Name: testCluster})
				return err
			}},
			{"container.clusters.delete", "projects/acme/zones/us-west4-a/clusters/train", func() error {
				_, err := c.DeleteCluster(ctx, &containerpb.DeleteClusterRequest{Name: testCluster})
				return err
			}},
		} {
			allow := s.Deny(tc.permission)
			err := tc.call()
			allow()
			api := apiErrorOf(t, err)
			if want := `Required "` + tc.permission + `" permission(s) for "` + tc.on + `".`; message(err) != want {
				t.Errorf("message %q, want %q", message(err), want)
			}
			if api.HTTPCode() != 403 && api.GRPCStatus().Code() != codes.PermissionDenied || api.Reason() != "IAM_PERMISSION_DENIED" || api.Metadata()["permission"] != tc.permission {
				t.Errorf("%v: want 403 PERMISSION_DENIED with the permission", err)
			}
		}
		if len(s.Clusters()) != 1 || len(s.NodePools(testCluster)) != 1 {
			t.Error("a refused call had an effect")
		}
		if _, err := c.GetCluster(ctx, &containerpb.GetClusterRequest{Name: testCluster}); err != nil {
			t.Errorf("with the permission given back: %v", err)
		}
	})
}

func TestAnAPIThatIsNotEnabledOnBothClients(t *testing.T) {
	onBoth(t, []Option{WithDisabled(ContainerAPI)}, func(t *testing.T, _ *Server, c *container.ClusterManagerClient) {
		_, err := c.ListClusters(t.Context(), &containerpb.ListClustersRequest{Parent: "projects/acme/locations/-"})
		api := apiErrorOf(t, err)
		if api.HTTPCode() != 403 && api.GRPCStatus().Code() != codes.PermissionDenied || api.Reason() != "SERVICE_DISABLED" || api.Domain() != "googleapis.com" {
			t.Errorf("%v: want 403 PERMISSION_DENIED for SERVICE_DISABLED", err)
		}
		url := "https://console.developers.google.com/apis/api/container.googleapis.com/overview?project=" + strings.TrimPrefix(api.Metadata()["consumer"], "projects/")
		if want := "Kubernetes Engine API has not been used in project "; !strings.HasPrefix(message(err), want) {
			t.Errorf("message %q", message(err))
		}
		want := map[string]string{"service": ContainerAPI, "serviceTitle": "Kubernetes Engine API", "activationUrl": url}
		got := map[string]string{}
		for key := range want {
			got[key] = api.Metadata()[key]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("metadata (-want +got):\n", diff)
		}
		if links := api.Details().Help.GetLinks(); len(links) != 1 || links[0].Url != url {
			t.Errorf("links %v", links)
		}
	})
}

func TestAccessToComputeEngine(t *testing.T) {
	s, addr := serve(t, WithDenied("compute.resourcePolicies.create"))
	policies := "http://" + addr + "/compute/v1/projects/acme/regions/us-central1/resourcePolicies"
	call := func(method string) string {
		r, err := http.NewRequestWithContext(t.Context(), method, policies, strings.NewReader(`{"name": "p"}`))
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: bearer(testToken)}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		var body strings.Builder
		if err := res.Write(&body); err != nil {
			t.Fatal(err)
		}
		return body.String()
	}
	for _, want := range []string{"403 Forbidden", "Required 'compute.resourcePolicies.create' permission for 'projects/acme'", `"reason":"forbidden"`} {
		if got := call(http.MethodPost); !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	enable := s.Disable(ComputeAPI)
	for _, want := range []string{"403 Forbidden", "Compute Engine API has not been used in project", `"reason":"accessNotConfigured"`, "SERVICE_DISABLED"} {
		if got := call(http.MethodGet); !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	enable()
	if got := call(http.MethodGet); !strings.Contains(got, "200 OK") {
		t.Errorf("with the service enabled: %s", got)
	}
}

// Whoever adds a method to the fake says which permission it needs.
func TestEveryMethodHasAPermission(t *testing.T) {
	for _, m := range containerpb.ClusterManager_ServiceDesc.Methods {
		if implemented(m.MethodName) && permissions[m.MethodName] == "" {
			t.Errorf("%s has no permission", m.MethodName)
		}
	}
}
