package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// fromKubeconfig reaches the cluster of a kubeconfig context. The file is read
// and never written.
func fromKubeconfig(ctx context.Context, o Options) (*kube.Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.KubeContext})
	raw, err := term.Await(ctx, config.RawConfig) // a shell may hand it over by a pipe
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", files(rules), err)
	}
	name := cmp.Or(o.KubeContext, raw.CurrentContext)
	_, ok := raw.Contexts[name]
	switch {
	case ok:
	case !slices.ContainsFunc(rules.GetLoadingPrecedence(), exists):
		return nil, exit.Usagef("there is no kubeconfig %s: name one with --kubeconfig or KUBECONFIG", files(rules))
	case o.KubeContext == "":
		return nil, exit.Usagef("the kubeconfig %s has no current context: choose one with --kube-context; it has %s", files(rules), kubeContexts(raw))
	default:
		return nil, exit.Usagef("the kubeconfig %s has no context %q; it has %s", files(rules), o.KubeContext, kubeContexts(raw))
	}
	rc, err := config.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("using context %s of the kubeconfig %s: %w", name, files(rules), err)
	}
	rc.WarningHandler = rest.NoWarnings{}
	rc.Wrap(logged(ctx))
	return kube.ForConfig(name, rc)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

func files(rules *clientcmd.ClientConfigLoadingRules) string {
	return strings.Join(rules.GetLoadingPrecedence(), ", ")
}

// kubeContextNames are those of the kubeconfig; none when it cannot be read.
func kubeContextNames(o Options) []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Collect(maps.Keys(raw.Contexts))
}

func kubeContexts(c clientcmdapi.Config) string {
	names := make([]string, 0, len(c.Contexts))
	for n := range c.Contexts {
		names = append(names, n)
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Account is whom the command works as, where that is known without asking: by
// the credentials, or as the kubeconfig calls the context's user. "" where only
// the cluster knows.
func Account(o Options) string {
	o, err := o.settle(os.Getenv)
	if err != nil {
		return "" // what is wrong there, connecting says
	}
	if !o.ofKubeconfig() {
		return gke.FindCredentials(gke.CredentialsConfig{CommandLine: true}).Account()
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	if info, err := os.Stat(o.Kubeconfig); err == nil && !info.Mode().IsRegular() {
		return "" // a pipe, which is read once
	}
	raw, err := rules.Load()
	if err != nil {
		return ""
	}
	if c := raw.Contexts[cmp.Or(o.KubeContext, raw.CurrentContext)]; c != nil {
		return c.AuthInfo
	}
	return ""
}
