package clusters

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

const credentialsHelp = `Print a kubeconfig for a GKE cluster, or write it to a file of its own. It holds no
secret: kubectl and the like call tpuctl for a token when they need one, and tpuctl
finds the account as it always does. Your own kubeconfig is never touched.

With --exec the answer is such a token, as Kubernetes' credential plugins give it
(client.authentication.k8s.io/v1); that is what the kubeconfig calls.`

func newCredentials(d Deps) *cobra.Command {
	var o target.Options
	var file, endpoint string
	var plugin, force bool
	cmd := &cobra.Command{
		Use:   "credentials [CLUSTER]",
		Short: "Print a kubeconfig, or a token, for other Kubernetes tools",
		Long:  credentialsHelp,
		Example: `  tpuctl cluster credentials --file lab.kubeconfig && kubectl --kubeconfig lab.kubeconfig get nodes
  tpuctl cluster credentials lab --project p > lab.kubeconfig`,
		Args: oneAtMost, ValidArgsFunction: d.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := named(&o, args); err != nil {
				return err
			}
			kind := gke.EndpointKind(strings.ReplaceAll(endpoint, "-", "_"))
			switch {
			case !slices.Contains(gke.EndpointKinds(), kind):
				return exit.Usagef("--endpoint: %q; want ip, private-ip or dns", endpoint)
			case plugin && file != "":
				return exit.Usagef("--exec prints a token: it goes into no --file")
			}
			if file != "" {
				if err := mayWrite(file, force); err != nil {
					return err
				}
			}
			name, c, err := d.Credentials(cmd.Context(), o, kind)
			if err != nil {
				return err
			}
			var text []byte
			if plugin {
				text, err = execCredential(c)
			} else {
				text, err = d.kubeconfig(name, c, endpoint)
			}
			if err != nil {
				return err
			}
			if file == "" {
				_, err = d.Streams.Out.Write(text)
				return err
			}
			if err := writeFile(file, text); err != nil {
				return fmt.Errorf("writing the kubeconfig of cluster %s: %w", name, err)
			}
			fmt.Fprintf(d.Streams.Err, "Wrote %s; use it with kubectl --kubeconfig %s\n", file, file)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "file", "", "write the kubeconfig to this file, with mode 0600")
	f.BoolVar(&force, "force", false, "with --file, also when the file exists")
	f.BoolVar(&plugin, "exec", false, "print a token as a credential plugin does")
	f.StringVar(&endpoint, "endpoint", string(gke.EndpointIP), "the way to the API server: ip, private-ip or dns")
	_ = cmd.RegisterFlagCompletionFunc("endpoint", cobra.FixedCompletions([]string{"ip", "private-ip", "dns"}, cobra.ShellCompDirectiveNoFileComp))
	o.AddFlags(cmd)
	return cmd
}

// program is this program's own file.
func program() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding tpuctl's own file, which the kubeconfig is to call: %w", err)
	}
	return self, nil
}

// passed are the variables that a plugin must see as this process does.
var passed = []string{target.EndpointVariable}

// kubeconfig calls this program for tokens.
func (d Deps) kubeconfig(n gke.ClusterName, c gke.ClusterCredentials, endpoint string) ([]byte, error) {
	self, err := d.Program()
	if err != nil {
		return nil, err
	}
	name := strings.Join([]string{"tpu", n.Project, n.Location, n.Cluster}, "_")
	plugin := &clientcmdapi.ExecConfig{
		APIVersion: clientauthentication.SchemeGroupVersion.String(), Command: self,
		Args:            []string{"cluster", "credentials", "--exec", "--cluster", n.String(), "--endpoint", endpoint},
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		InstallHint:     "tpuctl, which made this kubeconfig, is not where it was.",
	}
	for _, v := range passed {
		if value := os.Getenv(v); value != "" {
			plugin.Env = append(plugin.Env, clientcmdapi.ExecEnvVar{Name: v, Value: value})
		}
	}
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: "https://" + c.Endpoint, CertificateAuthorityData: c.CA}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Exec: plugin}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of cluster %s: %w", n, err)
	}
	return text, nil
}

func execCredential(c gke.ClusterCredentials) ([]byte, error) {
	e := clientauthentication.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthentication.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status:   &clientauthentication.ExecCredentialStatus{Token: c.Token},
	}
	if !c.Expiry.IsZero() {
		at := metav1.NewTime(c.Expiry.UTC())
		e.Status.ExpirationTimestamp = &at
	}
	text, err := json.Marshal(e)
	return append(text, '\n'), err
}

// mayWrite refuses the user's own kubeconfig, under any name, and a file that
// exists.
func mayWrite(file string, force bool) error {
	own := filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	own = append(own, clientcmd.RecommendedHomeFile)
	for _, o := range own {
		if o != "" && same(o, file) {
			return exit.Usagef("--file: %s is your own kubeconfig, which tpuctl never writes; name another file, and merge them by KUBECONFIG=%s%cFILE", file,
				cmp.Or(os.Getenv(clientcmd.RecommendedConfigPathEnvVar), clientcmd.RecommendedHomeFile), filepath.ListSeparator)
		}
	}
	if _, err := os.Lstat(file); err == nil && !force {
		return exit.Usagef("--file: %s exists; --force writes it anew", file)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return exit.Usagef("--file: %w", err)
	}
	return nil
}

func same(a, b string) bool {
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	if errX == nil && errY == nil && x == y {
		return true
	}
	i, errI := os.Stat(a)
	j, errJ := os.Stat(b)
	return errI == nil && errJ == nil && os.SameFile(i, j)
}

// writeFile replaces a file as a whole; nobody else may read it.
func writeFile(file string, text []byte) error {
	fresh, err := os.CreateTemp(filepath.Dir(file), ".kubeconfig-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = fresh.Write(text)
	if closeErr := fresh.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(fresh.Name(), file)
	}
	if err != nil {
		_ = os.Remove(fresh.Name())
	}
	return err
}
