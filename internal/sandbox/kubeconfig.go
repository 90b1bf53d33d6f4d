package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ContextName is what a cluster (projects/P/locations/L/clusters/C) is called
// in a kubeconfig: gke_P_L_C, as gcloud has it.
func ContextName(cluster string) string {
	f := strings.Split(cluster, "/")
	if len(f) != 6 {
		return strings.ReplaceAll(cluster, "/", "_")
	}
	return "gke_" + f[1] + "_" + f[3] + "_" + f[5]
}

// writeKubeconfig writes one context for each running cluster into the
// sandbox's own kubeconfig, never the user's. The current context is the first
// by name. Without clusters the file goes.
func writeKubeconfig(path, token string, running map[string]plane) error {
	if len(running) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the kubeconfig of the last cluster: %w", err)
		}
		return nil
	}
	cfg := clientcmdapi.NewConfig()
	cfg.AuthInfos["sandbox"] = &clientcmdapi.AuthInfo{Token: token}
	for _, cluster := range slices.Sorted(maps.Keys(running)) {
		name := ContextName(cluster)
		cfg.Clusters[name] = &clientcmdapi.Cluster{
			Server:                   "https://" + running[cluster].Endpoint(),
			CertificateAuthorityData: running[cluster].CA(),
		}
		cfg.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "sandbox"}
		if cfg.CurrentContext == "" {
			cfg.CurrentContext = name
		}
	}
	b, err := clientcmd.Write(*cfg)
	if err != nil {
		return err
	}
	if err := writeFile(path, b); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}
