package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/oauth2"
	"google.golang.org/api/option"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/sandboxcmd"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	tpuversion "github.com/tpu-training/terraform-provider-tpu/internal/cli/version"
	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

// The journeys in testdata/journeys are what users do, with the real tpuctl on
// a real control plane. All of them share one sandbox.
func TestJourneys(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	w, err := world()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/journeys",
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, w.env...)
			e.Setenv("HOME", e.WorkDir)
			e.Setenv(sandboxcmd.EnvDir, w.box.Dir())
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"eventually": eventually, "count": countLines},
	})
}

// TestMain lets this binary be tpuctl, for the scripts.
func TestMain(m *testing.M) {
	testscript.Main(runner{m}, map[string]func(){"tpuctl": tpuctl})
}

type runner struct{ m *testing.M }

func (r runner) Run() int {
	code := r.m.Run()
	if started.box != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := started.box.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the sandbox:", err)
			code = max(code, 1)
		}
	}
	return code
}

func tpuctl() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := cli.Main(ctx, os.Args[1:], term.System(), tpuversion.Build{Version: "test", Details: cli.Details})
	stop()
	os.Exit(code)
}

// patience bounds what a script waits for, on a busy machine.
const patience = 90 * time.Second

// eventually repeats a command until its standard output has all the words that
// are given before --.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	split := len(args)
	for i, a := range args {
		if a == "--" {
			split = i
			break
		}
	}
	if neg || split == 0 || split+1 >= len(args) {
		ts.Fatalf("usage: eventually WORD... -- COMMAND...")
	}
	words, command := args[:split], args[split+1:]
	deadline := time.Now().Add(patience)
	for {
		err := ts.Exec(command[0], command[1:]...)
		out, missing := ts.ReadFile("stdout"), ""
		for _, w := range words {
			if !strings.Contains(out, w) {
				missing = w
			}
		}
		if err == nil && missing == "" {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("after %s %q is still not in what %q prints (%v):\n%s%s", patience, missing, command, err, out, ts.ReadFile("stderr"))
		}
		time.Sleep(200 * time.Millisecond) // another process's work: there is no sign of ours to wait for
	}
}

// countLines checks how many lines of standard output have a text.
func countLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: count NUMBER TEXT")
	}
	n := 0
	for line := range strings.SplitSeq(ts.ReadFile("stdout"), "\n") {
		if strings.Contains(line, args[1]) {
			n++
		}
	}
	if strconv.Itoa(n) != args[0] {
		ts.Fatalf("%d lines have %q, want %s:\n%s", n, args[1], args[0], ts.ReadFile("stdout"))
	}
}

// queues are those of the world, by name: each journey has slices of its own.
var queues = map[string]queue.Queue{
	"research":   {Namespaces: []string{"research"}, Quotas: []queue.Quota{{Slices: 4}}},
	"first":      {Namespaces: []string{"first"}, Quotas: []queue.Quota{{Slices: 1}}},
	"failing":    {Namespaces: []string{"failing"}, Quotas: []queue.Quota{{Slices: 1}}},
	"suspending": {Namespaces: []string{"suspending"}, Quotas: []queue.Quota{{Slices: 1}}},
	"teams":      {Namespaces: []string{"team-a", "team-b"}, Quotas: []queue.Quota{{Slices: 2}}},
	"sweeping":   {Namespaces: []string{"sweeping"}, Quotas: []queue.Quota{{Slices: 3}}},
}

// slicesInAll is as many as the queues have.
const slicesInAll = 12

// worldOf is a sandbox with cluster "lab": slices of v5litepod-16, and queues.
type worldOf struct {
	box  *sandbox.Sandbox
	env  []string
	kube *kube.Client
}

var (
	started worldOf
	world   = sync.OnceValues(newWorld)
)

const (
	parent  = "projects/sandbox/locations/us-west4-a"
	lab     = parent + "/clusters/lab"
	labPool = "v5e"
)

func newWorld() (*worldOf, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	w := &started
	var err error
	if w.box, err = sandbox.Start(ctx, sandbox.WithTimeScale(0), sandbox.WithJobDuration(time.Hour)); err != nil {
		return nil, err
	}
	slice, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		return nil, err
	}
	if err := makeCluster(ctx, w.box, slice, slicesInAll); err != nil {
		return nil, err
	}
	w.env = w.box.Env()
	api, err := gke.New(gke.Config{Endpoint: w.box.Endpoint(), Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: w.box.Token()})})
	if err != nil {
		return nil, err
	}
	name, err := gke.ParseClusterName(lab)
	if err != nil {
		return nil, err
	}
	access, err := api.Access(ctx, name)
	if err != nil {
		return nil, err
	}
	if w.kube, err = kube.Connect(access); err != nil {
		return nil, err
	}
	if _, err := controllers.Install(ctx, w.kube, controllers.Config{}, controllers.Options{}); err != nil {
		return nil, err
	}
	flavor := queue.Flavor{Name: "v5e-4x4", Slice: slice}
	if err := w.kube.Apply(ctx, flavor.Object(), kube.ApplyOptions{}); err != nil {
		return nil, err
	}
	for name, q := range queues {
		q.Name, q.Quotas = name, []queue.Quota{{Flavor: flavor.Name, Slice: slice, Slices: q.Quotas[0].Slices}}
		objects := []client.Object{q.ClusterQueue()}
		for _, ns := range q.Namespaces {
			objects = append(objects, append(queue.Namespace{Name: ns}.Objects(), q.LocalQueue(ns))...)
		}
		for _, o := range objects {
			if err := w.kube.Apply(ctx, o, kube.ApplyOptions{}); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

func makeCluster(ctx context.Context, box *sandbox.Sandbox, slice accelerator.Slice, slices int) error {
	hc := oauth2.NewClient(ctx, oauth2.StaticTokenSource(&oauth2.Token{AccessToken: box.Token()}))
	c, err := container.NewClusterManagerRESTClient(ctx, option.WithEndpoint(box.Endpoint()), option.WithHTTPClient(hc))
	if err != nil {
		return err
	}
	defer c.Close()
	await := func(op *containerpb.Operation, err error) error {
		for err == nil && op.Status != containerpb.Operation_DONE {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
			op, err = c.GetOperation(ctx, &containerpb.GetOperationRequest{Name: parent + "/operations/" + op.Name})
		}
		if err == nil && op.Error != nil {
			err = errors.New(op.Error.Message)
		}
		return err
	}
	err = await(c.CreateCluster(ctx, &containerpb.CreateClusterRequest{Parent: parent, Cluster: &containerpb.Cluster{
		Name:      filepath.Base(lab),
		NodePools: []*containerpb.NodePool{{Name: "system", InitialNodeCount: 1, Config: &containerpb.NodeConfig{MachineType: "e2-standard-8"}}},
	}}))
	for i := range slices {
		if err != nil {
			break
		}
		err = await(c.CreateNodePool(ctx, &containerpb.CreateNodePoolRequest{Parent: lab, NodePool: &containerpb.NodePool{
			Name: fmt.Sprintf("%s-%d", labPool, i), InitialNodeCount: int32(slice.Hosts), Config: &containerpb.NodeConfig{MachineType: slice.MachineType},
			PlacementPolicy: &containerpb.NodePool_PlacementPolicy{Type: containerpb.NodePool_PlacementPolicy_COMPACT, TpuTopology: slice.Topology.String()},
		}}))
	}
	return err
}
