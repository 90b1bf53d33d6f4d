package fakegke

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	testToken   = "a-token"
	testCluster = "projects/acme/locations/us-west4-a/clusters/train"
	testParent  = "projects/acme/locations/us-west4-a"
)

// bearer adds a token to what an HTTP client sends.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// serve starts a server that needs testToken, on a port of its own.
func serve(t *testing.T, opts ...Option) (*Server, string) {
	t.Helper()
	s, err := New(append([]Option{WithToken(testToken), WithTimeScale(0)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return s, listen(t, s)
}

func listen(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// faces are the two real clients.
var faces = map[string]func(t *testing.T, addr, token string) *container.ClusterManagerClient{
	"grpc": grpcClient,
	"rest": restClient,
}

func grpcClient(t *testing.T, addr, token string) *container.ClusterManagerClient {
	t.Helper()
	auth := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	c, err := container.NewClusterManagerClient(t.Context(), option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithGRPCDialOption(grpc.WithUnaryInterceptor(auth)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func restClient(t *testing.T, addr, token string) *container.ClusterManagerClient {
	t.Helper()
	c, err := container.NewClusterManagerRESTClient(t.Context(), option.WithEndpoint("http://"+addr),
		option.WithHTTPClient(&http.Client{Transport: bearer(token)}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// onBoth runs a scenario with each client, each against a server of its own.
func onBoth(t *testing.T, opts []Option, scenario func(t *testing.T, s *Server, c *container.ClusterManagerClient)) {
	for name, client := range faces {
		t.Run(name, func(t *testing.T) {
			s, addr := serve(t, opts...)
			scenario(t, s, client(t, addr, testToken))
		})
	}
}

// done waits for an operation and returns it.
func done(t *testing.T, c *container.ClusterManagerClient, op *containerpb.Operation, err error) *containerpb.Operation {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for op.Status != containerpb.Operation_DONE {
		if time.Now().After(deadline) {
			t.Fatalf("operation %s is still %s", op.Name, op.Status)
		}
		if op, err = c.GetOperation(t.Context(), &containerpb.GetOperationRequest{Name: testParent + "/operations/" + op.Name}); err != nil {
			t.Fatal(err)
		}
	}
	return op
}

// succeed waits for an operation that must end well.
func succeed(t *testing.T, c *container.ClusterManagerClient, op *containerpb.Operation, err error) *containerpb.Operation {
	t.Helper()
	op = done(t, c, op, err)
	if op.Error != nil {
		t.Fatalf("operation %s failed: %s", op.OperationType, op.Error.Message)
	}
	return op
}

// cluster makes a request's cluster with one CPU pool.
func cluster(name string) *containerpb.Cluster {
	return &containerpb.Cluster{
		Name:           name,
		ReleaseChannel: &containerpb.ReleaseChannel{Channel: containerpb.ReleaseChannel_RAPID},
		NodePools: []*containerpb.NodePool{{
			Name: "system", InitialNodeCount: 1, Config: &containerpb.NodeConfig{MachineType: "e2-standard-8"},
		}},
	}
}

// slicePool makes a request's node pool of one v5litepod-16.
func slicePool(name string) *containerpb.NodePool {
	return &containerpb.NodePool{
		Name: name, InitialNodeCount: 4,
		Config:            &containerpb.NodeConfig{MachineType: "ct5lp-hightpu-4t"},
		PlacementPolicy:   &containerpb.NodePool_PlacementPolicy{Type: containerpb.NodePool_PlacementPolicy_COMPACT, TpuTopology: "4x4"},
		MaxPodsConstraint: &containerpb.MaxPodsConstraint{MaxPodsPerNode: 15},
	}
}

func createCluster(t *testing.T, c *container.ClusterManagerClient) {
	t.Helper()
	op, err := c.CreateCluster(t.Context(), &containerpb.CreateClusterRequest{Parent: testParent, Cluster: cluster("train")})
	succeed(t, c, op, err)
}

func createPool(t *testing.T, c *container.ClusterManagerClient, p *containerpb.NodePool) {
	t.Helper()
	op, err := c.CreateNodePool(t.Context(), &containerpb.CreateNodePoolRequest{Parent: testCluster, NodePool: p})
	succeed(t, c, op, err)
}

// message is an API error's text without what its client puts around it.
func message(err error) string {
	var g *googleapi.Error
	if errors.As(err, &g) {
		return g.Message
	}
	return status.Convert(errors.Unwrap(err)).Message()
}
