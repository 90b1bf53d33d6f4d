package target

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/contexts"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// completionTime is how long a shell's completion may take to ask: somebody
// waits with a finger on the key.
const completionTime = 900 * time.Millisecond

// Complete asks for names, and returns those that begin with what is typed; a
// name may have a description behind a tab. A shell that waits has no place for
// errors, nor for whatever does not heed its context: then there are no names.
func Complete(cmd *cobra.Command, typed string, ask func(context.Context) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	found := make(chan []string, 1)
	go func() {
		names, err := ask(ctx)
		if err != nil {
			names = nil
		}
		found <- names
	}()
	select {
	case names := <-found:
		return Beginning(names, typed), cobra.ShellCompDirectiveNoFileComp
	case <-ctx.Done():
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// Beginning are the names that begin with what is typed, in order and once each.
func Beginning(names []string, typed string) []string {
	kept := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "" || !strings.HasPrefix(n, typed) })
	slices.Sort(kept)
	return slices.Compact(kept)
}

// Names completes a flag by names that a cluster has.
func Names(o *Options, read func(context.Context, *kube.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return Complete(cmd, typed, func(ctx context.Context) ([]string, error) {
			c, err := Connect(ctx, *o)
			if err != nil {
				return nil, err
			}
			return read(ctx, c)
		})
	}
}

// Namespaces are those of a cluster, for Names.
func Namespaces(ctx context.Context, c *kube.Client) ([]string, error) {
	var names []string
	var page corev1.NamespaceList
	err := c.Pages(ctx, &page, "of the cluster", func() error {
		for i := range page.Items {
			names = append(names, page.Items[i].Name)
		}
		return nil
	})
	return names, err
}

// Queues are the queues that jobs can name, for Names.
func Queues(ctx context.Context, c *kube.Client) ([]string, error) {
	var names []string
	var page kueue.LocalQueueList
	err := c.Pages(ctx, &page, "of the cluster", func() error {
		for i := range page.Items {
			names = append(names, page.Items[i].Name)
		}
		return nil
	})
	return names, err
}

// Accelerators completes the names of slices. No server is asked.
func Accelerators(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, s := range accelerator.List(accelerator.Filter{Compact: true}) {
		if strings.HasPrefix(s.Name, strings.ToLower(typed)) { // smallest first, generation by generation
			names = append(names, cobra.CompletionWithDesc(s.Name, fmt.Sprintf("%s, hosts: %d", s.Topology, s.Hosts)))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func (o *Options) completions(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("context", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		path, _ := contexts.Path()
		f, _ := contexts.Load(path)
		return Beginning(f.Names(), typed), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return Complete(cmd, typed, func(ctx context.Context) ([]string, error) {
			return ClusterNames(ctx, Options{Project: o.Project, Location: o.Location})
		})
	})
	_ = cmd.RegisterFlagCompletionFunc("kube-context", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return Beginning(kubeContextNames(*o), typed), cobra.ShellCompDirectiveNoFileComp
	})
	for _, name := range []string{"project", "location"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// ClusterNames are the paths of the clusters of a project.
func ClusterNames(ctx context.Context, o Options) ([]string, error) {
	project, all, _, err := Clusters(ctx, o)
	var names []string
	for _, c := range all {
		names = append(names, gke.ClusterName{Project: project, Location: c.GetLocation(), Cluster: c.GetName()}.String())
	}
	return names, err
}
