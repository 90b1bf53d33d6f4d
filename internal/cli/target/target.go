// Package target finds the cluster that a command is about, from flags, the
// environment and what the account can see, and reaches it. It never writes a
// kubeconfig.
package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/contexts"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Options say which cluster. Empty fields are looked up in the environment, as
// the provider and hashicorp/google do.
type Options struct {
	Cluster     string // path or short name
	Project     string
	Location    string // zone or region
	KubeContext string
	Kubeconfig  string
	Context     string // one of tpuctl's own; "" = the current one, where nothing else is said

	// hint: Location comes from the environment. It is where node pools go by
	// default; the cluster may be regional, or somewhere else.
	hint bool
	// namespace and aliases are the context's.
	namespace string
	aliases   map[string]string
}

// Namespace is where jobs are by default, as the context that is meant says; ""
// where none is, or it says nothing of it.
func Namespace(o Options) (string, error) {
	o, err := o.withContext(os.Getenv)
	return o.namespace, err
}

// Aliases are short names for settings of programs, as the context that is meant
// has them.
func Aliases(o Options) (map[string]string, error) {
	o, err := o.withContext(os.Getenv)
	return o.aliases, err
}

// AddFlags adds the flags that choose a cluster.
func (o *Options) AddFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Cluster, "cluster", "", "projects/P/locations/L/clusters/C, or C alone with --project and --location (env TPU_CLUSTER); the only cluster there is by default")
	f.StringVar(&o.Project, "project", "", "the cluster's project (env GOOGLE_PROJECT)")
	f.StringVar(&o.Location, "location", "", "the cluster's zone or region (env GOOGLE_ZONE, GOOGLE_REGION)")
	f.StringVar(&o.KubeContext, "kube-context", "", "a context of the kubeconfig instead: any cluster with JobSet and Kueue")
	f.StringVar(&o.Context, "context", "", "a cluster named by tpuctl config (env TPU_CONTEXT); the current one by default")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "the kubeconfig of --kube-context (env KUBECONFIG); alone, its current context is meant")
	o.completions(cmd)
}

// withContext fills empty fields from the context that is meant, if one is: by
// name, or the current one where neither flags nor TPU_CLUSTER say more.
func (o Options) withContext(getenv func(string) string) (Options, error) {
	name := cmp.Or(o.Context, getenv("TPU_CONTEXT"))
	said := o.Cluster+o.Project+o.Location+o.KubeContext+o.Kubeconfig != "" || getenv("TPU_CLUSTER") != ""
	if name == "" && said {
		return o, nil
	}
	path, err := contexts.Path()
	if err != nil && name == "" {
		return o, nil // no place for a file, and none is asked for
	}
	if err != nil {
		return o, err
	}
	file, err := contexts.Load(path)
	if err != nil {
		return o, err
	}
	if name = cmp.Or(name, file.Current); name == "" {
		return o, nil
	}
	c, err := file.Get(name, path)
	if err != nil {
		return o, exit.Usagef("--context: %w", err)
	}
	if o.Kubeconfig != "" && o.KubeContext == "" && c.KubeContext == "" {
		if o.Context != "" {
			return o, exit.Usagef("--context %s and --kubeconfig both name a cluster: give one of them", name)
		}
	} else if o.Cluster == "" && o.KubeContext == "" {
		o.Cluster, o.KubeContext, o.Kubeconfig = c.Cluster, c.KubeContext, cmp.Or(o.Kubeconfig, c.Kubeconfig)
	}
	o.Project, o.Location = cmp.Or(o.Project, c.Project), cmp.Or(o.Location, c.Location)
	o.namespace, o.aliases = c.Namespace, c.Aliases
	return o, nil
}

// settle is which cluster is meant, from flags, tpuctl's contexts and the
// environment, in this order.
func (o Options) settle(getenv func(string) string) (Options, error) {
	o, err := o.withContext(getenv)
	if err != nil {
		return o, err
	}
	if o.ofKubeconfig() { // nothing of a GKE cluster
		return o, nil
	}
	return o.withEnvironment(getenv), nil
}

// ofKubeconfig tells whether the cluster is one of a kubeconfig.
func (o Options) ofKubeconfig() bool { return o.KubeContext != "" || o.Kubeconfig != "" }

// withEnvironment fills empty fields from the environment.
func (o Options) withEnvironment(getenv func(string) string) Options {
	first := func(value string, names ...string) string {
		for _, n := range names {
			value = cmp.Or(value, getenv(n))
		}
		return value
	}
	o.Cluster = first(o.Cluster, "TPU_CLUSTER")
	o.Project = first(o.Project, "GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")
	o.hint = o.Location == ""
	o.Location = first(o.Location, "GOOGLE_ZONE", "GCLOUD_ZONE", "CLOUDSDK_COMPUTE_ZONE", "GOOGLE_REGION", "GCLOUD_REGION", "CLOUDSDK_COMPUTE_REGION")
	return o
}

// FromEnvironment is what is known without any flag.
func FromEnvironment(getenv func(string) string) Options { return Options{}.withEnvironment(getenv) }

// Finder is the part of the Container API that finding a cluster takes.
type Finder interface {
	// Clusters lists the clusters of a location; "-" is all of them. silent are
	// zones and regions that did not answer.
	Clusters(ctx context.Context, project, location string) (names []gke.ClusterName, silent []string, err error)
}

// Find settles which cluster is meant.
func Find(ctx context.Context, o Options, f Finder) (gke.ClusterName, error) {
	if strings.Contains(o.Cluster, "/") {
		name, err := gke.ParseClusterName(o.Cluster)
		if err != nil {
			return gke.ClusterName{}, &exit.UsageError{Err: err}
		}
		return name, nil
	}
	if o.Project == "" {
		return gke.ClusterName{}, exit.Usagef("which cluster? Give --cluster projects/P/locations/L/clusters/C (or TPU_CLUSTER), or --project (or GOOGLE_PROJECT) to look for one, or --kube-context")
	}
	if o.Cluster != "" && o.Location != "" && !o.hint {
		return gke.ClusterName{Project: o.Project, Location: o.Location, Cluster: o.Cluster}, nil
	}
	location := "-"
	if !o.hint {
		location = cmp.Or(o.Location, "-")
	}
	all, silent, err := f.Clusters(ctx, o.Project, location)
	if err != nil {
		return gke.ClusterName{}, err
	}
	n, err := choose(all, o)
	if len(silent) > 0 && (err != nil || !o.near(n, silent)) {
		return gke.ClusterName{}, unsettled(all, silent, o)
	}
	return n, err
}

// near tells whether a cluster is the one that is meant whatever there is in
// the silent zones: it is where the hint points, and there all answered.
func (o Options) near(n gke.ClusterName, silent []string) bool {
	return o.hint && n.Location == o.Location && !slices.Contains(silent, o.Location)
}

// where is where a cluster was looked for.
func (o Options) where() string {
	if o.Location != "" && !o.hint {
		return o.Location + " of project " + o.Project
	}
	return "project " + o.Project
}

// unsettled is that a list is not complete: what it lacks may be the cluster
// that is meant, or another one of its name.
func unsettled(all []gke.ClusterName, silent []string, o Options) error {
	found := ""
	if len(all) > 0 {
		found = "; these answered\n" + lines(all)
	}
	return fmt.Errorf("which cluster is meant is not settled in %s: %s; try again, or name the cluster in full with --cluster%s", o.where(), gke.Unheard(silent), found)
}

// choose takes the one cluster that fits, or says why there is none.
func choose(all []gke.ClusterName, o Options) (gke.ClusterName, error) {
	where := o.where()
	fit := filter(all, func(c gke.ClusterName) bool { return o.Cluster == "" || c.Cluster == o.Cluster })
	if o.hint && len(fit) > 1 { // prefer what is in the zone, then in its region
		for _, near := range []func(gke.ClusterName) bool{
			func(c gke.ClusterName) bool { return c.Location == o.Location },
			func(c gke.ClusterName) bool { return c.Location == (gke.ClusterName{Location: o.Location}).Region() },
		} {
			if closer := filter(fit, near); len(closer) > 0 {
				fit = closer
				break
			}
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(all) == 0:
		return gke.ClusterName{}, fmt.Errorf("there is no cluster in %s: check --project and --location, or make one with tpu_training_cluster", where)
	case len(fit) == 0:
		return gke.ClusterName{}, fmt.Errorf("there is no cluster %s in %s; there is\n%s", o.Cluster, where, lines(all))
	}
	return gke.ClusterName{}, exit.Usagef("there are %d clusters in %s; choose one with --cluster\n%s", len(fit), where, lines(fit))
}

func filter(names []gke.ClusterName, keep func(gke.ClusterName) bool) []gke.ClusterName {
	var kept []gke.ClusterName
	for _, n := range names {
		if keep(n) {
			kept = append(kept, n)
		}
	}
	return kept
}

func lines(names []gke.ClusterName) string {
	s := make([]string, len(names))
	for i, n := range names {
		s[i] = "  " + n.String()
	}
	return strings.Join(s, "\n")
}

// missing explains that a cluster that was named in full is not there, by what
// is. That those cannot be listed is no news.
func missing(ctx context.Context, name gke.ClusterName, f Finder) error {
	all, silent, err := f.Clusters(ctx, name.Project, "-")
	if err != nil {
		return fmt.Errorf("cluster %s does not exist in %s of project %s: check --cluster, --project and --location", name.Cluster, name.Location, name.Project)
	}
	return gke.AbsentAmong(name, all, silent)
}

// Container finds the cluster and returns a client of the Container API, for
// what Kubernetes knows nothing about.
func Container(ctx context.Context, o Options) (*gke.Client, gke.ClusterName, error) {
	o, err := o.settle(os.Getenv)
	if err != nil {
		return nil, gke.ClusterName{}, err
	}
	if o.ofKubeconfig() {
		return nil, gke.ClusterName{}, exit.Usagef("a kubeconfig's context does not say which GKE cluster this is: give --cluster instead")
	}
	api, err := newAPI(ctx)
	if err != nil {
		return nil, gke.ClusterName{}, err
	}
	name, err := Find(ctx, o, api)
	return api.client, name, err
}

// Connect finds the cluster and makes a client of it.
func Connect(ctx context.Context, o Options) (*kube.Client, error) {
	if o.Cluster != "" && o.ofKubeconfig() {
		flag := "--kube-context"
		if o.KubeContext == "" {
			flag = "--kubeconfig"
		}
		return nil, exit.Usagef("--cluster and %s both name a cluster: give one of them", flag)
	}
	o, err := o.settle(os.Getenv)
	if err != nil {
		return nil, err
	}
	log := hclog.FromContext(ctx)
	if o.ofKubeconfig() {
		return fromKubeconfig(ctx, o)
	}
	api, err := newAPI(ctx)
	if err != nil {
		return nil, err
	}
	name, err := Find(ctx, o, api)
	if err != nil {
		return nil, err
	}
	log.Debug("asking GKE how to reach the cluster", "cluster", name.String())
	access, err := api.Access(ctx, name)
	if errors.Is(err, gke.NotFound) {
		return nil, missing(ctx, name, api)
	}
	if err != nil {
		return nil, err
	}
	log.Debug("talking to the cluster's API server", "server", access.Server)
	access.Wrap = logged(ctx)
	return kube.Connect(access)
}
