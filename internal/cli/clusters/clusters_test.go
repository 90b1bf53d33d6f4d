package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

var lab = gke.ClusterName{Project: "p", Location: "us-west4-a", Cluster: "lab"}

func sample() []*containerpb.Cluster {
	return []*containerpb.Cluster{
		{Name: "lab", Location: "us-west4-a", Status: containerpb.Cluster_RUNNING, CurrentMasterVersion: "1.34.1-gke.1", CurrentNodeCount: 5, Endpoint: "203.0.113.7",
			CreateTime: "2026-01-02T03:04:05Z", Network: "default", Subnetwork: "default", ReleaseChannel: &containerpb.ReleaseChannel{Channel: containerpb.ReleaseChannel_RAPID},
			NodePools: []*containerpb.NodePool{
				{Name: "v5e-0", Status: containerpb.NodePool_ERROR, InitialNodeCount: 4, Version: "1.34.1-gke.1", Config: &containerpb.NodeConfig{MachineType: "ct5lp-hightpu-4t"},
					PlacementPolicy: &containerpb.NodePool_PlacementPolicy{TpuTopology: "4x4"}, Conditions: []*containerpb.StatusCondition{{Message: "no room"}}},
				{Name: "system", Status: containerpb.NodePool_RUNNING, InitialNodeCount: 1, Version: "1.34.1-gke.1", Config: &containerpb.NodeConfig{MachineType: "e2-standard-8"}},
			}},
		{Name: "east", Location: "us-east5", Status: containerpb.Cluster_PROVISIONING},
	}
}

func deps(width int, color bool) (Deps, func() string) {
	s, out, _ := clitest.Streams(width, color)
	return Deps{
		Streams: s, Now: func() time.Time { return time.Date(2026, 1, 3, 3, 4, 5, 0, time.UTC) }, Program: func() (string, error) { return "/usr/bin/tpuctl", nil },
		List: func(context.Context, target.Options) (string, []*containerpb.Cluster, []string, error) {
			return "p", sample(), nil, nil
		},
		Get: func(context.Context, target.Options) (gke.ClusterName, *containerpb.Cluster, error) {
			return lab, sample()[0], nil
		},
		Credentials: func(context.Context, target.Options, gke.EndpointKind) (gke.ClusterName, gke.ClusterCredentials, error) {
			return lab, gke.ClusterCredentials{Endpoint: "203.0.113.7", CA: []byte("CA"), Token: "secret", Expiry: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, nil
		},
	}, out.String
}

func TestOutputs(t *testing.T) {
	t.Setenv(target.EndpointVariable, "")
	for golden, tt := range map[string]struct {
		width int
		color bool
		line  string
	}{
		"list.txt":       {0, false, "list"},
		"list-50.txt":    {50, true, "list"},
		"list-wide.txt":  {0, false, "list -o wide"},
		"list.json":      {0, false, "list -o json"},
		"list-name.txt":  {0, false, "list -o name"},
		"describe.txt":   {0, false, "describe"},
		"describe.yaml":  {0, false, "describe lab -o yaml"},
		"kubeconfig.txt": {0, false, "credentials"},
		"exec.txt":       {0, false, "credentials --exec"},
	} {
		t.Run(golden, func(t *testing.T) {
			d, out := deps(tt.width, tt.color)
			if err := clitest.Run(newCluster(d), strings.Fields(tt.line)...); err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, golden, out())
		})
	}
}

// What is printed is what Kubernetes' own code reads, and holds no secret.
func TestCredentials(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv(target.EndpointVariable, "http://127.0.0.1:1")
	file := filepath.Join(t.TempDir(), "lab.kubeconfig")
	d, out := deps(0, false)
	if err := clitest.Run(newCluster(d), "credentials", "--file", file); err != nil {
		t.Fatal(err)
	}
	if out() != "" {
		t.Errorf("standard output: %q", out())
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	user := config.AuthInfos[config.CurrentContext]
	if user == nil || user.Token != "" || user.Exec == nil || user.Exec.Command != "/usr/bin/tpuctl" ||
		strings.Join(user.Exec.Args, " ") != "cluster credentials --exec --cluster projects/p/locations/us-west4-a/clusters/lab --endpoint ip" || len(user.Exec.Env) != 1 {
		t.Errorf("user: %+v", user)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := clitest.Run(newCluster(d), "credentials", "--file", file); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a file that exists: %v", err)
	}
	if err := clitest.Run(newCluster(d), "credentials", "--file", file, "--force"); err != nil {
		t.Errorf("with --force: %v", err)
	}
	d, out = deps(0, false)
	if err := clitest.Run(newCluster(d), "credentials", "--exec"); err != nil {
		t.Fatal(err)
	}
	var e clientauthentication.ExecCredential
	if err := json.Unmarshal([]byte(out()), &e); err != nil || e.Status == nil || e.Status.Token != "secret" || e.Status.ExpirationTimestamp == nil {
		t.Errorf("%v: %s", err, out())
	}
}

// The user's own kubeconfig is never written, whatever it is called.
func TestOwnKubeconfig(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "config")
	if err := os.WriteFile(own, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(own, link); err != nil && runtime.GOOS == "windows" {
		link = own // only administrators may make links there
	} else if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "other")+string(filepath.ListSeparator)+own)
	for _, file := range []string{own, link, filepath.Join(dir, ".", "x", "..", "other"), clientcmd.RecommendedHomeFile} {
		d, _ := deps(0, false)
		err := clitest.Run(newCluster(d), "credentials", "--force", "--file", file)
		if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "is your own kubeconfig") {
			t.Errorf("%s: %v", file, err)
		}
	}
	if text, err := os.ReadFile(own); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestWrongUse(t *testing.T) {
	for line, want := range map[string]string{
		"describe a b":                     "want one cluster at most",
		"describe a --cluster b":           "both name a cluster",
		"credentials --endpoint public":    `--endpoint: "public"; want ip, private-ip or dns`,
		"credentials --exec --file f":      "goes into no --file",
		"credentials --file /nowhere/or/x": "no such file or directory",
		"list x":                           "unknown command",
	} {
		d, _ := deps(0, false)
		if err := clitest.Run(newCluster(d), strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("cluster %s: %v, want %q", line, err, want)
		}
	}
}

// A list that may lack something is printed, and said to be so.
func TestSilentZones(t *testing.T) {
	d, out := deps(0, false)
	d.List = func(context.Context, target.Options) (string, []*containerpb.Cluster, []string, error) {
		return "p", sample()[:1], []string{"us-east5"}, nil
	}
	err := clitest.Run(newCluster(d), "list")
	if err == nil || !strings.Contains(err.Error(), "the list may lack clusters: GKE had no answer from us-east5") || !strings.Contains(out(), "lab") {
		t.Errorf("%v\n%s", err, out())
	}
	d.List = func(context.Context, target.Options) (string, []*containerpb.Cluster, []string, error) {
		return "p", nil, nil, errors.New("denied")
	}
	cmd := newCluster(d)
	cmd.SetContext(t.Context())
	if names, _ := d.complete(cmd, nil, ""); len(names) != 0 {
		t.Errorf("completion of an error: %v", names)
	}
}
