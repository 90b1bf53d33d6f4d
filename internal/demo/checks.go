package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"golang.org/x/oauth2"
	"google.golang.org/api/option"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// What the quickstart must have made: 2 slices of v5litepod-16, each one node
// pool of 4 hosts with 4 chips a host.
const (
	wantPools         = 2
	wantHostsPerSlice = 4
	wantChipsPerHost  = 4
)

// google returns Google's own client of the Container API, so that what the
// provider made is checked by code that is not ours.
func (d *demo) google(ctx context.Context) (*container.ClusterManagerClient, error) {
	hc := oauth2.NewClient(ctx, oauth2.StaticTokenSource(&oauth2.Token{AccessToken: d.env["GOOGLE_OAUTH_ACCESS_TOKEN"]}))
	return container.NewClusterManagerRESTClient(ctx, option.WithEndpoint(d.env["TPU_GKE_ENDPOINT"]), option.WithHTTPClient(hc))
}

func (d *demo) clusters(ctx context.Context) ([]*containerpb.Cluster, error) {
	client, err := d.google(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	resp, err := client.ListClusters(ctx, &containerpb.ListClustersRequest{Parent: "projects/" + d.env["GOOGLE_PROJECT"] + "/locations/-"})
	if err != nil {
		return nil, fmt.Errorf("listing clusters by Google's client: %w", err)
	}
	return resp.Clusters, nil
}

func (d *demo) check(ctx context.Context) error {
	clusters, err := d.clusters(ctx)
	if err != nil {
		return err
	}
	if len(clusters) != 1 {
		return fmt.Errorf("want 1 cluster, found %d", len(clusters))
	}
	c := clusters[0]
	ca, err := base64.StdEncoding.DecodeString(c.GetMasterAuth().GetClusterCaCertificate())
	if err != nil {
		return fmt.Errorf("decoding the cluster's CA: %w", err)
	}
	k, err := kubernetes.NewForConfig(&rest.Config{
		Host:            "https://" + c.Endpoint,
		BearerToken:     d.env["GOOGLE_OAUTH_ACCESS_TOKEN"],
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	})
	if err != nil {
		return err
	}
	version, err := k.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	fmt.Fprintf(d.out, "  cluster %s is %s; its API server at %s is Kubernetes %s\n", c.Name, c.Status, c.Endpoint, version.GitVersion)
	pools, err := d.checkHosts(ctx, k)
	if err != nil {
		return err
	}
	if err := d.checkPlacement(ctx, k, pools); err != nil {
		return err
	}
	return d.checkControllers(ctx, k)
}

// checkHosts returns the node pool of each TPU host.
func (d *demo) checkHosts(ctx context.Context, k kubernetes.Interface) (map[string]string, error) {
	nodes, err := k.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "cloud.google.com/gke-tpu-accelerator=tpu-v5-lite-podslice,cloud.google.com/gke-tpu-topology=4x4"})
	if err != nil {
		return nil, err
	}
	poolOf, size := map[string]string{}, map[string]int{}
	for _, n := range nodes.Items {
		chips := n.Status.Allocatable["google.com/tpu"]
		if chips.Value() != wantChipsPerHost {
			return nil, fmt.Errorf("host %s offers %s chips, want %d", n.Name, chips.String(), wantChipsPerHost)
		}
		if !tainted(n) {
			return nil, fmt.Errorf("host %s lacks the taint google.com/tpu=present:NoSchedule", n.Name)
		}
		pool := n.Labels["cloud.google.com/gke-nodepool"]
		poolOf[n.Name] = pool
		size[pool]++
	}
	if len(size) != wantPools {
		return nil, fmt.Errorf("want %d node pools of TPU hosts, found %d: %s", wantPools, len(size), pairs(size, "%s with %d hosts"))
	}
	for pool, n := range size {
		if n != wantHostsPerSlice {
			return nil, fmt.Errorf("node pool %s has %d hosts, want %d", pool, n, wantHostsPerSlice)
		}
	}
	fmt.Fprintf(d.out, "  %d TPU hosts in %d node pools, %d chips each, labelled and tainted as GKE does\n", len(poolOf), len(size), wantChipsPerHost)
	return poolOf, nil
}

func tainted(n corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == "google.com/tpu" && t.Value == "present" && t.Effect == corev1.TaintEffectNoSchedule {
			return true
		}
	}
	return false
}

// checkPlacement sees to it that every pod of the job ran, and each slice's
// pods in one node pool of their own.
func (d *demo) checkPlacement(ctx context.Context, k kubernetes.Interface, poolOf map[string]string) error {
	pods, err := k.CoreV1().Pods("research").List(ctx, metav1.ListOptions{LabelSelector: "jobset.sigs.k8s.io/jobset-name=train"})
	if err != nil {
		return err
	}
	slice, taken := map[string]string{}, map[string]string{}
	for _, p := range pods.Items {
		if p.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("pod %s is %s, want Succeeded", p.Name, p.Status.Phase)
		}
		index, pool := p.Labels["jobset.sigs.k8s.io/job-index"], poolOf[p.Spec.NodeName]
		if have, ok := slice[index]; ok && have != pool {
			return fmt.Errorf("slice %s of the job ran in node pools %s and %s", index, have, pool)
		}
		if other, ok := taken[pool]; ok && other != index {
			return fmt.Errorf("slices %s and %s of the job both ran in node pool %s", other, index, pool)
		}
		slice[index], taken[pool] = pool, index
	}
	if want := wantPools * wantHostsPerSlice; len(pods.Items) != want || len(slice) != wantPools {
		return fmt.Errorf("want %d pods in %d slices, found %d pods: %s", want, wantPools, len(pods.Items), pairs(slice, "slice %s in %s"))
	}
	fmt.Fprintf(d.out, "  the job's %d pods all succeeded, each slice in a node pool of its own: %s\n", len(pods.Items), pairs(slice, "slice %s in %s"))
	return nil
}

// pairs writes a map in the order of its keys.
func pairs[V any](m map[string]V, format string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf(format, k, m[k]))
	}
	return strings.Join(all, ", ")
}

// checkControllers sees to it that the webhooks belong to the real
// controllers: the API server has been given their certificates.
func (d *demo) checkControllers(ctx context.Context, k kubernetes.Interface) error {
	hooks, err := k.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, h := range hooks.Items {
		for _, w := range h.Webhooks {
			if len(w.ClientConfig.CABundle) > 0 {
				found[strings.SplitN(h.Name, "-", 2)[0]] = true
			}
		}
	}
	if !found["jobset"] || !found["kueue"] {
		return fmt.Errorf("want the webhooks of jobset and kueue served, found those of: %s", strings.Join(slices.Sorted(maps.Keys(found)), ", "))
	}
	fmt.Fprintln(d.out, "  JobSet and Kueue serve their webhooks")
	return nil
}

func (d *demo) checkEmpty(ctx context.Context) error {
	clusters, err := d.clusters(ctx)
	if err != nil {
		return err
	}
	if len(clusters) != 0 {
		return fmt.Errorf("cluster %s is still there", clusters[0].Name)
	}
	state, err := d.tf.Output(ctx, "state", "list")
	if err != nil {
		return err
	}
	if strings.TrimSpace(state) != "" {
		return fmt.Errorf("the state still lists:\n%s", state)
	}
	fmt.Fprintln(d.out, "  no cluster, no node pool, an empty state")
	return nil
}

// sandboxProcesses asks the running sandbox which processes are its own.
func (d *demo) sandboxProcesses(ctx context.Context) ([]int, error) {
	out, err := d.read(ctx, d.tool("tpuctl"), "sandbox", "status", "--dir", d.sandboxDir(), "-o", "json")
	if err != nil {
		return nil, err
	}
	var status struct {
		Pid       int `json:"pid"`
		Processes []struct {
			Pid int `json:"pid"`
		} `json:"processes"`
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		return nil, fmt.Errorf("reading the sandbox's status: %w", err)
	}
	if status.Pid == 0 {
		return nil, fmt.Errorf("the sandbox's status names no process: %s", out)
	}
	pids := []int{status.Pid}
	for _, p := range status.Processes {
		pids = append(pids, p.Pid)
	}
	return pids, nil
}

func (d *demo) checkNothingLeft(context.Context) error {
	for _, pid := range d.processes {
		// The sandbox's last act is to free its lock, which is what `sandbox
		// down` waits for: the process may be on its way out for a moment.
		for tries := 0; alive(pid); tries++ {
			if tries == 50 {
				return fmt.Errorf("process %d of the sandbox is still running", pid)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	left, err := processesUnder(d.work)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("still running: %s", strings.Join(left, "; "))
	}
	u, err := url.Parse(d.env["TPU_GKE_ENDPOINT"])
	if err != nil {
		return err
	}
	if conn, err := net.Dial("tcp", u.Host); err == nil {
		conn.Close()
		return fmt.Errorf("port %s still answers", u.Host)
	}
	if _, err := os.Stat(d.sandboxDir()); err == nil {
		return fmt.Errorf("folder %s is still there", d.sandboxDir())
	}
	fmt.Fprintln(d.out, "  no process, no port, no folder")
	return nil
}

// alive tells whether a process runs. One that has ended and whose parent has
// not asked for its exit code is not alive.
func alive(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// processesUnder lists processes whose command line names a file under dir.
func processesUnder(dir string) ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var left []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it ended meanwhile
		}
		if line := strings.ReplaceAll(string(b), "\x00", " "); strings.Contains(line, dir) {
			left = append(left, filepath.Base(filepath.Dir(f))+" "+line)
		}
	}
	return left, nil
}
