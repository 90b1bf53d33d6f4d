package jobs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

type reading = func(context.Context, *kube.Client) ([]string, error)

// completeNames completes the flags that name what the cluster has: as far as
// the namespace says, in that.
func completeNames(cmd *cobra.Command, t *target.Options, namespace *string) {
	for flag, read := range map[string]reading{
		"namespace": target.Namespaces,
		"queue": func(ctx context.Context, c *kube.Client) ([]string, error) {
			return training.Queues(ctx, c, *namespace)
		},
		"priority":   training.Priorities,
		"owner":      ofJobs(namespace, func(l map[string]string) []string { return []string{l[training.LabelOwner]} }),
		"experiment": ofJobs(namespace, func(l map[string]string) []string { return []string{l[training.LabelExperiment]} }),
		"tag":        ofJobs(namespace, jobfile.TagsOf),
	} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, target.Names(t, read))
		}
	}
	if cmd.Flags().Lookup("label") != nil {
		_ = cmd.RegisterFlagCompletionFunc("label", completeLabels(t, namespace))
	}
	if cmd.Flags().Lookup("accelerator") != nil {
		_ = cmd.RegisterFlagCompletionFunc("accelerator", target.Accelerators)
	}
}

// ofJobs are what of says of the labels of the jobs there are.
func ofJobs(namespace *string, of func(map[string]string) []string) reading {
	return func(ctx context.Context, c *kube.Client) ([]string, error) {
		all, err := training.LabelsOfJobs(ctx, c, *namespace)
		var names []string
		for _, labels := range all {
			names = append(names, of(labels)...)
		}
		return names, err
	}
}

// completeLabels completes the key of a label, and then its value.
func completeLabels(t *target.Options, namespace *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		key, _, value := strings.Cut(typed, "=")
		names, directive := target.Names(t, ofJobs(namespace, func(l map[string]string) []string {
			own := training.Unreserved(l)
			if value {
				if _, ok := own[key]; !ok {
					return nil
				}
				return []string{key + "=" + own[key]}
			}
			var keys []string
			for k := range maps.Keys(own) {
				keys = append(keys, k+"=")
			}
			return keys
		}))(cmd, args, typed)
		if !value {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return names, directive
	}
}

func (o *oneJob) complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeJobs(cmd, o.Deps, o.target, o.namespace, nil, typed)
}

// completeJobs completes the name of a job that is not among those given.
func completeJobs(cmd *cobra.Command, d Deps, t target.Options, namespace string, given []string, typed string) ([]string, cobra.ShellCompDirective) {
	return target.Complete(cmd, typed, func(ctx context.Context) ([]string, error) {
		if err := d.inContext(t, &namespace); err != nil {
			return nil, err
		}
		source, err := d.Open(ctx, t)
		if err != nil {
			return nil, err
		}
		all, err := source.Select(ctx, training.Query{Namespace: namespace})
		var names []string
		for _, r := range all.Runs {
			if name := nameAs(r, typed); !slices.Contains(given, name) {
				names = append(names, cobra.CompletionWithDesc(name, string(r.State)+", "+shape(r)))
			}
		}
		return names, err
	})
}

// nameAs is a job's name, or its path where one is being typed.
func nameAs(r training.Run, typed string) string {
	if strings.Contains(typed, "/") {
		return pathOf(r)
	}
	return r.Name
}

// mostHosts is how many hosts a completion names one by one.
const mostHosts = 256

// completeHosts completes --host: the hosts of the job, and its further jobs.
func (o *oneJob) completeHosts(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	given, last := "", typed // several, with commas between them
	if i := strings.LastIndexByte(typed, ','); i >= 0 {
		given, last = typed[:i+1], typed[i+1:]
	}
	names, directive := target.Complete(cmd, last, func(ctx context.Context) ([]string, error) {
		namespace := o.namespace
		if err := o.inContext(o.target, &namespace); err != nil {
			return nil, err
		}
		source, err := o.Open(ctx, o.target)
		if err != nil {
			return nil, err
		}
		run, err := find(ctx, source, namespace, args[0])
		return hostNames(run), err
	})
	for i := range names {
		names[i] = given + names[i]
	}
	return names, directive
}

// hostNames are what --host may name.
func hostNames(r training.Run) []string {
	var names []string
	for s := range r.Slices {
		names = append(names, fmt.Sprint(s))
		for h := range r.HostsPerSlice {
			if r.Slices*r.HostsPerSlice <= mostHosts {
				names = append(names, fmt.Sprintf("%d/%d", s, h))
			}
		}
	}
	for _, p := range r.Parts {
		if p.Main {
			continue
		}
		names = append(names, p.Name)
		for pod := range p.Pods {
			if p.Pods > 1 && p.Pods <= mostHosts {
				names = append(names, fmt.Sprintf("%s/%d", p.Name, pod))
			}
		}
	}
	return names
}
