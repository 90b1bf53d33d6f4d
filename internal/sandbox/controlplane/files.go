package controlplane

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// files are the paths and ports that the parts' command lines name. Ports are
// new at every start: a kube-apiserver that is ending can hold its port for a
// minute.
type files struct {
	dir    string
	pki    *pki
	server string // https://127.0.0.1:port

	apiPort, etcdPort, peerPort int
}

func (f *files) path(name string) string { return filepath.Join(f.dir, name) }

func (cp *ControlPlane) writeFiles() (*files, error) {
	f := &files{dir: cp.cfg.Dir, pki: cp.pki}
	for _, p := range []*int{&f.apiPort, &f.etcdPort, &f.peerPort} {
		port, err := cp.cfg.freePort()
		if err != nil {
			return nil, err
		}
		*p = port
	}
	f.server = fmt.Sprintf("https://127.0.0.1:%d", f.apiPort)
	stages, err := renderStages(cp.cfg.JobDuration)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string]string{
		"tokens.csv":  fmt.Sprintf("%s,sandbox-admin,sandbox-admin,\"system:masters\"\n", cp.cfg.Token),
		"egress.yaml": fmt.Sprintf(egressConfig, cp.egress.URL(), cp.pki.cert("ca"), cp.pki.cert("apiserver-kubelet"), cp.pki.key("apiserver-kubelet")),
		"kwok.yaml":   stages,
	} {
		if err := os.WriteFile(f.path(name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	if err := f.kubeconfig("kubeconfig", &clientcmdapi.AuthInfo{Token: cp.cfg.Token}); err != nil {
		return nil, err
	}
	for _, name := range []string{"kube-controller-manager", "kube-scheduler", "kwok"} {
		who := &clientcmdapi.AuthInfo{ClientCertificate: f.pki.cert(name), ClientKey: f.pki.key(name)}
		if err := f.kubeconfig(name+".kubeconfig", who); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *files) kubeconfig(name string, who *clientcmdapi.AuthInfo) error {
	return writeKubeconfig(f.path(name), f.server, f.pki.cluster.certPEM, who)
}

func writeKubeconfig(path, server string, ca []byte, who *clientcmdapi.AuthInfo) error {
	c := clientcmdapi.NewConfig()
	c.Clusters["sandbox"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	c.AuthInfos["sandbox"] = who
	c.Contexts["sandbox"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: "sandbox"}
	c.CurrentContext = "sandbox"
	return clientcmd.WriteToFile(*c, path) // 0600
}

// egressConfig sends what the API server dials inside the cluster (webhooks,
// aggregated APIs, kubelets) to the sandbox, which knows the local port behind
// each pod's address.
const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      tcp:
        url: %s
        tlsConfig:
          caBundle: %s
          clientCert: %s
          clientKey: %s
`
