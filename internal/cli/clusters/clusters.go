// Package clusters is tpuctl's commands about GKE clusters: which there are,
// what one is like, and how other Kubernetes tools get into it. It shows what
// the Container API says and decides nothing about it.
package clusters

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// Deps are what the commands need from outside; tests replace them.
type Deps struct {
	Streams *term.Streams
	// List finds the clusters of a project; silent are zones that had no answer.
	List func(ctx context.Context, o target.Options) (project string, clusters []*containerpb.Cluster, silent []string, err error)
	// Get reads the cluster that is meant.
	Get func(ctx context.Context, o target.Options) (gke.ClusterName, *containerpb.Cluster, error)
	// Credentials are those of the cluster that is meant.
	Credentials func(ctx context.Context, o target.Options, kind gke.EndpointKind) (gke.ClusterName, gke.ClusterCredentials, error)
	// Program is how this program is called, in a kubeconfig.
	Program func() (string, error)
	Now     func() time.Time
}

// New is the command `cluster` with its children, over the Container API.
func New(s *term.Streams) *cobra.Command {
	return newCluster(Deps{Streams: s, List: target.Clusters, Get: get, Credentials: credentials, Program: program, Now: time.Now})
}

func get(ctx context.Context, o target.Options) (gke.ClusterName, *containerpb.Cluster, error) {
	api, name, err := target.Container(ctx, o)
	if err != nil {
		return name, nil, err
	}
	c, err := api.GetCluster(ctx, name)
	return name, c, err
}

func credentials(ctx context.Context, o target.Options, kind gke.EndpointKind) (gke.ClusterName, gke.ClusterCredentials, error) {
	api, name, err := target.Container(ctx, o)
	if err != nil {
		return name, gke.ClusterCredentials{}, err
	}
	c, err := api.ClusterCredentials(ctx, name, kind)
	return name, c, err
}

func newCluster(d Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cluster",
		Aliases: []string{"clusters"},
		Short:   "See GKE clusters, and get into one with other tools",
		Example: `  tpuctl cluster list --project p
  tpuctl cluster describe
  tpuctl cluster credentials --file lab.kubeconfig`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newList(d), newDescribe(d), newCredentials(d))
	return cmd
}

func newList(d Deps) *cobra.Command {
	var o target.Options
	var format output.Format
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List the GKE clusters of a project",
		Example: `  tpuctl cluster list
  tpuctl cluster list --project p --location us-west4 -o name`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			project, all, silent, err := d.List(cmd.Context(), o)
			if err != nil {
				return err
			}
			if err := output.Print(d.Streams, format, listed(project, all)); err != nil {
				return err
			}
			if len(silent) > 0 {
				return fmt.Errorf("the list may lack clusters: %s; try again", gke.Unheard(silent))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Project, "project", "", "the project (env GOOGLE_PROJECT)")
	cmd.Flags().StringVar(&o.Location, "location", "", "only this zone or region (all by default)")
	output.AddFlag(cmd, &format)
	return cmd
}

// view is a cluster as json and yaml show it.
type view struct {
	Name       string            `json:"name"` // the path
	Status     string            `json:"status"`
	Message    string            `json:"message,omitempty"`
	Version    string            `json:"version"`
	Channel    string            `json:"channel,omitempty"`
	Endpoint   string            `json:"endpoint,omitempty"`
	Network    string            `json:"network,omitempty"`
	Subnetwork string            `json:"subnetwork,omitempty"`
	Nodes      int32             `json:"nodes"`
	Created    string            `json:"created,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Pools      []poolView        `json:"node_pools,omitempty"`
	Console    string            `json:"console,omitempty"`
}

type poolView struct {
	Name     string `json:"name"`
	Status   string `json:"status"`
	Machine  string `json:"machine_type"`
	Topology string `json:"topology,omitempty"`
	Nodes    int32  `json:"nodes"`
	Version  string `json:"version"`
	Message  string `json:"message,omitempty"`
}

func viewOf(n gke.ClusterName, c *containerpb.Cluster, pools bool) view {
	v := view{
		Name: n.String(), Status: status(c.GetStatus().String()), Message: conditions(c.GetConditions()), Version: c.GetCurrentMasterVersion(),
		Endpoint: c.GetEndpoint(), Network: c.GetNetwork(), Subnetwork: c.GetSubnetwork(), Nodes: c.GetCurrentNodeCount(),
		Created: utc(c.GetCreateTime()), Labels: c.GetResourceLabels(), Console: target.ClusterConsole(n),
	}
	if ch := c.GetReleaseChannel().GetChannel(); ch != containerpb.ReleaseChannel_UNSPECIFIED {
		v.Channel = ch.String()
	}
	if !pools {
		return v
	}
	for _, p := range c.GetNodePools() {
		v.Pools = append(v.Pools, poolView{
			p.GetName(), status(p.GetStatus().String()), p.GetConfig().GetMachineType(), p.GetPlacementPolicy().GetTpuTopology(),
			p.GetInitialNodeCount(), p.GetVersion(), conditions(p.GetConditions()),
		})
	}
	slices.SortFunc(v.Pools, func(a, b poolView) int { return strings.Compare(a.Name, b.Name) })
	return v
}

// utc is a time as GKE writes it, in the one way that times are printed.
func utc(s string) string {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.UTC().Format(time.RFC3339)
	}
	return s
}

func status(s string) string {
	if s == "STATUS_UNSPECIFIED" {
		return ""
	}
	return s
}

func conditions(all []*containerpb.StatusCondition) string {
	var texts []string
	for _, c := range all {
		texts = append(texts, c.GetMessage())
	}
	return strings.Join(texts, "; ")
}

func listed(project string, all []*containerpb.Cluster) output.View {
	data := []view{}
	v := output.View{Table: output.Table{
		Columns: []output.Column{
			{Name: "name"}, {Name: "location"}, {Name: "status", Style: statusStyle}, {Name: "version", Yield: 2}, {Name: "channel", Optional: true, Yield: 3}, {Name: "nodes"},
			{Name: "created", Wide: true}, {Name: "endpoint", Wide: true}, {Name: "message", Optional: true, Yield: 1},
		},
		Empty: "No GKE clusters in project " + project + ": tpu_training_cluster makes one.",
	}}
	slices.SortFunc(all, func(a, b *containerpb.Cluster) int {
		return strings.Compare(a.GetLocation()+"/"+a.GetName(), b.GetLocation()+"/"+b.GetName())
	})
	for _, c := range all {
		n := gke.ClusterName{Project: project, Location: c.GetLocation(), Cluster: c.GetName()}
		one := viewOf(n, c, false)
		data = append(data, one)
		v.Names = append(v.Names, n.String())
		v.Table.Rows = append(v.Table.Rows, []string{c.GetName(), c.GetLocation(), one.Status, one.Version, one.Channel, fmt.Sprint(one.Nodes), one.Created, one.Endpoint, one.Message})
	}
	v.Data = data
	return v
}

func statusStyle(s string) term.Style {
	switch s {
	case "RUNNING":
		return term.Good
	case "PROVISIONING", "RECONCILING", "STOPPING":
		return term.Busy
	}
	return term.Bad
}

// named lets the cluster be an argument, as well as a flag.
func named(o *target.Options, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if o.Cluster != "" && o.Cluster != args[0] {
		return exit.Usagef("%s and --cluster %s both name a cluster: give one of them", args[0], o.Cluster)
	}
	o.Cluster = args[0]
	return nil
}

func oneAtMost(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("want one cluster at most; %d were given. tpuctl cluster list shows them", len(args))
	}
	return nil
}

func (d Deps) complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return target.Complete(cmd, typed, func(ctx context.Context) ([]string, error) {
		project, all, _, err := d.List(ctx, target.Options{})
		var names []string
		for _, c := range all {
			names = append(names, gke.ClusterName{Project: project, Location: c.GetLocation(), Cluster: c.GetName()}.String())
		}
		return names, err
	})
}

func newDescribe(d Deps) *cobra.Command {
	var o target.Options
	var format output.Format
	cmd := &cobra.Command{
		Use:   "describe [CLUSTER]",
		Short: "Show a GKE cluster and its node pools",
		Example: `  tpuctl cluster describe
  tpuctl cluster describe projects/p/locations/us-west4-a/clusters/lab -o json`,
		Args: oneAtMost, ValidArgsFunction: d.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := named(&o, args); err != nil {
				return err
			}
			n, c, err := d.Get(cmd.Context(), o)
			if err != nil {
				return err
			}
			v := viewOf(n, c, true)
			return output.Print(d.Streams, format, output.View{Data: v, Names: []string{v.Name}, Page: func(w io.Writer, wide bool) error {
				text, err := d.page(v, wide)
				if err == nil {
					_, err = io.WriteString(w, text)
				}
				return err
			}})
		},
	}
	o.AddFlags(cmd)
	output.AddFlag(cmd, &format)
	return cmd
}

func (d Deps) page(v view, wide bool) (string, error) {
	p := output.NewPage(d.Streams, v.Name)
	p.Styled("status", v.Status, statusStyle(v.Status))
	p.Field("message", v.Message)
	p.Field("version", v.Version)
	p.Field("channel", v.Channel)
	p.Field("endpoint", v.Endpoint)
	p.Field("network", v.Network)
	p.Field("subnetwork", v.Subnetwork)
	p.Field("nodes", fmt.Sprint(v.Nodes))
	if created, err := time.Parse(time.RFC3339, v.Created); err == nil {
		p.Field("created", output.Moment(d.Now(), created))
	}
	p.Link("console", v.Console)
	if len(v.Pools) > 0 {
		p.Section("node pools")
		t := output.Table{Columns: []output.Column{
			{Name: "name"}, {Name: "status", Style: statusStyle}, {Name: "machine", Yield: 2}, {Name: "topology", Optional: true}, {Name: "nodes"}, {Name: "version", Yield: 3}, {Name: "message", Optional: true, Yield: 1},
		}}
		for _, pool := range v.Pools {
			t.Rows = append(t.Rows, []string{pool.Name, pool.Status, pool.Machine, pool.Topology, fmt.Sprint(pool.Nodes), pool.Version, pool.Message})
		}
		if err := p.Table(t, wide); err != nil {
			return "", err
		}
	}
	return p.String(), nil
}
