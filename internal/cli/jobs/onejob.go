package jobs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// oneJob is what commands about one existing job share.
type oneJob struct {
	Deps
	target    target.Options
	namespace string
}

// add gives cmd its argument and flags, and runs do with the job.
func (o *oneJob) add(cmd *cobra.Command, do func(context.Context, Cluster, training.Run) error) {
	cmd.Args = oneName
	cmd.ValidArgsFunction = o.complete
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cluster, err := o.Open(cmd.Context(), o.target)
		if err != nil {
			return err
		}
		run, err := find(cmd.Context(), cluster, o.namespace, args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), cluster, run)
	}
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "the job's namespace (looked for in all by default)")
	o.target.AddFlags(cmd)
	completeNames(cmd, &o.target)
}

// completeNames completes the flags that name what the cluster has.
func completeNames(cmd *cobra.Command, t *target.Options) {
	for flag, read := range map[string]func(context.Context, *kube.Client) ([]string, error){"namespace": target.Namespaces, "queue": target.Queues} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, target.Names(t, read))
		}
	}
}

func oneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the name of one job; %d were given. tpuctl list shows them", len(args))
	}
	return nil
}

func (o *oneJob) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeJobs(cmd, o.Deps, o.target, o.namespace)
}

func completeJobs(cmd *cobra.Command, d Deps, t target.Options, namespace string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	source, err := d.Open(ctx, t)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := source.Select(ctx, training.Query{Namespace: namespace})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, r := range all.Runs {
		names = append(names, cobra.CompletionWithDesc(r.Name, string(r.State)+", "+shape(r)))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
