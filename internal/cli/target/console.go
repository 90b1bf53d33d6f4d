package target

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

const console = "https://console.cloud.google.com"

// googles tells whether the Container API is Google's own: what a sandbox has,
// Google's console does not show.
func googles() bool {
	endpoint := os.Getenv(EndpointVariable)
	if endpoint == "" {
		return true
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	u, err := url.Parse(endpoint)
	return err == nil && strings.HasSuffix("."+u.Hostname(), ".googleapis.com")
}

// ClusterConsole is where Google's console shows a cluster, or "".
func ClusterConsole(n gke.ClusterName) string {
	if !googles() {
		return ""
	}
	return fmt.Sprintf("%s/kubernetes/clusters/details/%s/%s/details?project=%s", console, n.Location, n.Cluster, n.Project)
}

// jobLabel is the label of a job's pods as Cloud Logging names it.
const jobLabel = "k8s-pod/jobset_sigs_k8s_io/jobset-name"

// JobConsole tells where Google's console shows the logs of a job of a connected
// cluster, also when its pods are gone; the console has no page for a JobSet. ""
// where the cluster is not known to be one of Google's.
func JobConsole(c *kube.Client) func(namespace, name string) string {
	n, err := gke.ParseClusterName(c.Name)
	if err != nil || !googles() {
		return func(string, string) string { return "" }
	}
	return func(namespace, name string) string {
		query := fmt.Sprintf("resource.type=\"k8s_container\"\nresource.labels.project_id=%q\nresource.labels.location=%q\nresource.labels.cluster_name=%q\nresource.labels.namespace_name=%q\nlabels.%q=%q",
			n.Project, n.Location, n.Cluster, namespace, jobLabel, name)
		return fmt.Sprintf("%s/logs/query;query=%s;duration=P7D?project=%s", console, url.PathEscape(query), n.Project)
	}
}
