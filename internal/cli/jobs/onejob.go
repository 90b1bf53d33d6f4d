package jobs

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
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
		if err := o.inContextOf(args[0]); err != nil {
			return err
		}
		run, err := find(cmd.Context(), cluster, o.namespace, args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), cluster, run)
	}
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "the job's namespace (the context's; else it is looked for in all)")
	o.target.AddFlags(cmd)
	completeNames(cmd, &o.target, &o.namespace)
}

// inContextOf fills the namespace by the context, of a job that is not named
// with its own.
func (o *oneJob) inContextOf(name string) error {
	if strings.Contains(name, "/") {
		return nil
	}
	return o.inContext(o.target, &o.namespace)
}

func oneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the name of one job; %d were given. tpuctl list shows them", len(args))
	}
	return nil
}
