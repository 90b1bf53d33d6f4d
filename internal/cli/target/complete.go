package target

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/contexts"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// completionTime is how long a shell's completion may take to ask.
const completionTime = 3 * time.Second

// Names completes a flag by names that a cluster has. A shell that waits has no
// place for errors: then there are none.
func Names(o *Options, read func(context.Context, *kube.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		c, err := Connect(ctx, *o)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, err := read(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
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

func (o *Options) completions(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		path, _ := contexts.Path()
		f, _ := contexts.Load(path)
		return f.Names(), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		project, all, _, _ := Clusters(ctx, Options{Project: o.Project, Location: o.Location})
		var names []string
		for _, c := range all {
			names = append(names, gke.ClusterName{Project: project, Location: c.GetLocation(), Cluster: c.GetName()}.String())
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	for _, name := range []string{"project", "location", "kube-context"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}
