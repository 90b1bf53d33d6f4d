// Package configcmd is tpuctl's commands for its configuration: the contexts,
// names for clusters.
package configcmd

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/contexts"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/near"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
)

// New is the command `config` with its children.
func New(s *term.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Name clusters, and choose the one that commands are about",
		Long: `Contexts are names for clusters, in a file of tpuctl's own: ` + "`config.yaml`" + ` in the
folder tpuctl of your configuration folder, or what ` + contexts.Variable + ` names. The
current one holds where neither flags nor TPU_CLUSTER say which cluster is meant;
--context takes another one for one command.`,
		Example: `  tpuctl config set lab --cluster projects/p/locations/us-west4-a/clusters/lab --namespace research
  tpuctl config use lab
  tpuctl config list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newList(s), newGet(s), newSet(s), newUse(s), newDelete(s))
	return cmd
}

// view is a context as json and yaml show it.
type view struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	contexts.Context
}

func load() (string, contexts.File, error) {
	path, err := contexts.Path()
	if err != nil {
		return "", contexts.File{}, err
	}
	f, err := contexts.Load(path)
	return path, f, err
}

// change changes the file, and returns where it is.
func change(do func(f *contexts.File, path string) error) (string, error) {
	path, err := contexts.Path()
	if err != nil {
		return "", err
	}
	return path, contexts.Change(path, func(f *contexts.File) error { return do(f, path) })
}

func newList(s *term.Streams) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short:   "List the contexts",
		Example: "  tpuctl config list",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, f, err := load()
			if err != nil {
				return err
			}
			data := []view{}
			for _, name := range f.Names() {
				data = append(data, view{name, name == f.Current, f.Contexts[name]})
			}
			return output.Print(s, format, show(data, data, "No contexts in "+path+"; tpuctl config set makes one."))
		},
	}
	output.AddFlag(cmd, &format)
	return cmd
}

func show(all []view, data any, empty string) output.View {
	v := output.View{Data: data, Table: output.Table{Empty: empty, Columns: []output.Column{
		{Name: "current"}, {Name: "name"}, {Name: "cluster"}, {Name: "project", Optional: true, Yield: 1}, {Name: "location", Optional: true, Yield: 2},
		{Name: "kube-context", Optional: true}, {Name: "kubeconfig", Optional: true, Yield: 3}, {Name: "namespace", Optional: true}, {Name: "aliases", Optional: true, Yield: 4},
	}}}
	for _, c := range all {
		current := ""
		if c.Current {
			current = "*"
		}
		v.Names = append(v.Names, c.Name)
		v.Table.Rows = append(v.Table.Rows, []string{current, c.Name, c.Cluster, c.Project, c.Location, c.KubeContext, c.Kubeconfig, c.Namespace, aliases(c.Aliases)})
	}
	return v
}

// aliases are all of them in one cell.
func aliases(all map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		pairs = append(pairs, name+"="+all[name])
	}
	return strings.Join(pairs, ",")
}

func newGet(s *term.Streams) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:     "get [CONTEXT]",
		Short:   "Show a context, the current one by default",
		Example: "  tpuctl config get\n  tpuctl config get lab -o yaml",
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: complete,
		RunE: func(_ *cobra.Command, args []string) error {
			path, f, err := load()
			if err != nil {
				return err
			}
			name := f.Current
			if len(args) == 1 {
				name = args[0]
			}
			if name == "" {
				return exit.Usagef("no context is the current one in %s: tpuctl config use chooses one", path)
			}
			c, err := f.Get(name, path)
			if err != nil {
				return &exit.UsageError{Err: err}
			}
			one := view{name, name == f.Current, c}
			return output.Print(s, format, show([]view{one}, one, ""))
		},
	}
	output.AddFlag(cmd, &format)
	return cmd
}

// settings of a context, by their flags.
func settings(c *contexts.Context) map[string]*string {
	return map[string]*string{"cluster": &c.Cluster, "project": &c.Project, "location": &c.Location, "kube-context": &c.KubeContext, "kubeconfig": &c.Kubeconfig, "namespace": &c.Namespace}
}

// goodName keeps names usable on any command line.
var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func newSet(s *term.Streams) *cobra.Command {
	var c contexts.Context
	var short []string
	cmd := &cobra.Command{
		Use:   "set CONTEXT",
		Short: "Make a context, or change one",
		Long: `Make a context, or change what the flags name; an empty value takes a setting
out. No server is asked whether the cluster is there.

An alias is a short name for a setting of your programs: with --alias
lr=--config.lr, tpuctl submit --set lr=1e-4 adds --config.lr=1e-4 to the command;
env:LR stands for the variable LR. A job file's own aliases win.`,
		Example: `  tpuctl config set lab --cluster projects/p/locations/us-west4-a/clusters/lab
  tpuctl config set lab --cluster lab --project p --location us-west4-a
  tpuctl config set kind --kube-context kind-kind
  tpuctl config set lab --alias lr=--config.training.learning_rate --alias seed=env:SEED`,
		Args: oneName, ValidArgsFunction: complete,
	}
	f := cmd.Flags()
	fields := settings(&c)
	for name, help := range map[string]string{
		"cluster": "projects/P/locations/L/clusters/C, or C alone with --project and --location", "project": "the cluster's project",
		"location": "the cluster's zone or region", "kube-context": "a context of a kubeconfig, instead of a GKE cluster", "kubeconfig": "the kubeconfig that has it (KUBECONFIG by default)",
		"namespace": "where jobs are looked for and submitted to, where a command does not say",
	} {
		f.StringVar(fields[name], name, "", help)
	}
	f.StringArrayVar(&short, "alias", nil, "NAME=ARGUMENT: what --set NAME=VALUE of tpuctl submit means; NAME= takes it out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		if !goodName.MatchString(name) {
			return exit.Usagef("%q is no name for a context: want letters, digits, dots, dashes and underscores, 63 at most", name)
		}
		path, err := change(func(file *contexts.File, _ string) error {
			now := file.Contexts[name]
			for flag, value := range settings(&now) {
				if cmd.Flags().Changed(flag) {
					*value = *fields[flag]
				}
			}
			var err error
			if now.Aliases, err = changed(now.Aliases, short); err != nil {
				return err
			}
			if err := check(now); err != nil {
				return err
			}
			file.Contexts[name] = now
			if file.Current == "" && len(file.Contexts) == 1 {
				file.Current = name
			}
			return nil
		})
		if err == nil {
			fmt.Fprintf(s.Out, "Set context %s in %s\n", name, path)
		}
		return err
	}
	return cmd
}

// changed are aliases after edits of the form NAME=ARGUMENT, or NAME=.
func changed(had map[string]string, edits []string) (map[string]string, error) {
	now := maps.Clone(had)
	if now == nil {
		now = map[string]string{}
	}
	for _, edit := range edits {
		name, means, said := strings.Cut(edit, "=")
		switch _, there := had[name]; {
		case !said || name == "":
			return nil, exit.Usagef("--alias: %q; want NAME=ARGUMENT, such as lr=--config.training.learning_rate, or NAME= to take it out", edit)
		case means == "" && !there:
			return nil, exit.Usagef("--alias: there is no alias %q to take out%s", name, near.Hint(name, slices.Sorted(maps.Keys(had))))
		case means == "":
			delete(now, name)
			continue
		}
		if problem := jobfile.CheckAlias(name, means); problem != "" {
			return nil, exit.Usagef("--alias: %s", problem)
		}
		now[name] = means
	}
	return now, nil
}

// check refuses what cannot lead to a cluster.
func check(c contexts.Context) error {
	switch {
	case c.Namespace != "" && len(validation.IsDNS1123Label(c.Namespace)) > 0:
		return exit.Usagef("--namespace: %q is no name for a namespace: want lowercase letters, digits and dashes, such as research", c.Namespace)
	case c.Cluster != "" && c.KubeContext != "":
		return exit.Usagef("--cluster and --kube-context both name a cluster: give one of them")
	case c.Kubeconfig != "" && c.KubeContext == "":
		return exit.Usagef("--kubeconfig is read with --kube-context only")
	case c.Cluster == "" && c.KubeContext == "" && c.Project == "":
		return exit.Usagef("a context says where a cluster is: give --cluster, or --project for the only one there, or --kube-context")
	case strings.Contains(c.Cluster, "/"):
		if _, err := gke.ParseClusterName(c.Cluster); err != nil {
			return exit.Usagef("--cluster: %w", err)
		}
	case c.Cluster != "" && c.Project == "":
		return exit.Usagef("--cluster %s: give its whole path projects/P/locations/L/clusters/%s, or --project too", c.Cluster, c.Cluster)
	}
	return nil
}

func newUse(s *term.Streams) *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use:     "use CONTEXT",
		Short:   "Make a context the current one",
		Example: "  tpuctl config use lab\n  tpuctl config use --none",
		Args: func(cmd *cobra.Command, args []string) error {
			if none && len(args) == 0 {
				return nil
			}
			return oneName(cmd, args)
		},
		ValidArgsFunction: complete,
		RunE: func(_ *cobra.Command, args []string) error {
			name := ""
			if !none {
				name = args[0]
			}
			_, err := change(func(f *contexts.File, path string) error {
				if _, err := f.Get(name, path); err != nil && !none {
					return &exit.UsageError{Err: err}
				}
				f.Current = name
				return nil
			})
			switch {
			case err != nil:
				return err
			case none:
				fmt.Fprintln(s.Out, "No context is the current one")
			default:
				fmt.Fprintf(s.Out, "Commands are about context %s from now on\n", name)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "no context is the current one any more")
	return cmd
}

func newDelete(s *term.Streams) *cobra.Command {
	return &cobra.Command{
		Use: "delete CONTEXT", Aliases: []string{"rm"},
		Short:   "Forget a context; the cluster is not touched",
		Example: "  tpuctl config delete lab",
		Args:    oneName, ValidArgsFunction: complete,
		RunE: func(_ *cobra.Command, args []string) error {
			_, err := change(func(f *contexts.File, path string) error {
				if _, err := f.Get(args[0], path); err != nil {
					return &exit.UsageError{Err: err}
				}
				delete(f.Contexts, args[0])
				if f.Current == args[0] {
					f.Current = ""
				}
				return nil
			})
			if err == nil {
				fmt.Fprintf(s.Out, "Deleted context %s\n", args[0])
			}
			return err
		},
	}
}

func oneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the name of one context; %d were given. tpuctl config list shows them", len(args))
	}
	return nil
}

// complete is silent where the file cannot be read.
func complete(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	_, f, _ := load()
	return f.Names(), cobra.ShellCompDirectiveNoFileComp
}
