package target

import (
	"context"
	"fmt"
	"maps"
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
	if _, ok := raw.Contexts[o.KubeContext]; !ok {
		return nil, exit.Usagef("the kubeconfig %s has no context %q; it has %s", files(rules), o.KubeContext, kubeContexts(raw))
	}
	rc, err := config.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("using context %s of the kubeconfig %s: %w", o.KubeContext, files(rules), err)
	}
	rc.WarningHandler = rest.NoWarnings{}
	rc.Wrap(logged(ctx))
	return kube.ForConfig(o.KubeContext, rc)
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
	if o.KubeContext == "" {
		return gke.FindCredentials(gke.CredentialsConfig{CommandLine: true}).Account()
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	raw, err := rules.Load()
	if err != nil || raw.Contexts[o.KubeContext] == nil {
		return "" // what is wrong there, connecting says
	}
	return raw.Contexts[o.KubeContext].AuthInfo
}
