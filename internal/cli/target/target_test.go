package target

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/contexts"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

type fakeFinder struct {
	clusters []string
	silent   []string
	err      error
	asked    string
}

func (f *fakeFinder) Clusters(_ context.Context, project, location string) (names []gke.ClusterName, silent []string, err error) {
	f.asked = project + "/" + location
	for _, path := range f.clusters {
		n, err := gke.ParseClusterName(path)
		if err != nil {
			return nil, nil, err
		}
		names = append(names, n)
	}
	return names, f.silent, f.err
}

const (
	one = "projects/p/locations/us-west4-a/clusters/one"
	two = "projects/p/locations/us-west4-b/clusters/two"

	regional = "projects/p/locations/us-west4/clusters/regional"
)

func TestFind(t *testing.T) {
	tests := map[string]struct {
		options  Options
		clusters []string
		want     string // the cluster, or a part of the error
		asked    string
		code     int
	}{
		"a path":                      {Options{Cluster: one}, nil, one, "", 0},
		"a short name in full":        {Options{Cluster: "one", Project: "p", Location: "us-west4-a"}, nil, one, "", 0},
		"a short name is looked for":  {Options{Cluster: "two", Project: "p"}, []string{one, two}, two, "p/-", 0},
		"the only one":                {Options{Project: "p"}, []string{one}, one, "p/-", 0},
		"the only one of a location":  {Options{Project: "p", Location: "us-west4-a"}, []string{one}, one, "p/us-west4-a", 0},
		"several":                     {Options{Project: "p"}, []string{one, two}, "there are 2 clusters in project p; choose one with --cluster\n  " + one + "\n  " + two, "p/-", exit.Usage},
		"none":                        {Options{Project: "p", Location: "us-west4-a"}, nil, "there is no cluster in us-west4-a of project p", "p/us-west4-a", exit.Failure},
		"none of that name":           {Options{Cluster: "three", Project: "p"}, []string{one, two}, "there is no cluster three in project p; there is\n  " + one, "p/-", exit.Failure},
		"a hint prefers its zone":     {Options{Project: "p", Location: "us-west4-b", hint: true}, []string{one, two}, two, "p/-", 0},
		"a hint may be elsewhere":     {Options{Cluster: "two", Project: "p", Location: "us-west4-a", hint: true}, []string{one, two}, two, "p/-", 0},
		"a hint finds the region":     {Options{Project: "p", Location: "us-west4-b", hint: true}, []string{one, regional}, regional, "p/-", 0},
		"nothing is known":            {Options{}, nil, "which cluster?", "", exit.Usage},
		"a name without a project":    {Options{Cluster: "one"}, nil, "which cluster?", "", exit.Usage},
		"a path that is not complete": {Options{Cluster: "projects/p/clusters/one"}, nil, "is not a cluster path", "", exit.Usage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := &fakeFinder{clusters: tt.clusters}
			n, err := Find(context.Background(), tt.options, f)
			if f.asked != tt.asked {
				t.Errorf("asked for %q, want %q", f.asked, tt.asked)
			}
			if tt.code == 0 {
				if err != nil || n.String() != tt.want {
					t.Errorf("got %s, %v; want %s", n, err, tt.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || exit.Code(err) != tt.code {
				t.Errorf("got %v with exit code %d; want %q with %d", err, exit.Code(err), tt.want, tt.code)
			}
		})
	}
}

func TestFindPassesErrorsOn(t *testing.T) {
	denied := errors.New("permission denied")
	if _, err := Find(context.Background(), Options{Project: "p"}, &fakeFinder{err: denied}); !errors.Is(err, denied) {
		t.Errorf("got %v", err)
	}
}

// What a list lacks may be the cluster that is meant: nothing is guessed then,
// unless the zone of the environment has it.
func TestFindInAListThatIsNotComplete(t *testing.T) {
	const unheard = "GKE had no answer from us-west4-b"
	for name, tt := range map[string]struct {
		options  Options
		clusters []string
		want     string
	}{
		"the only one":              {Options{Project: "p"}, []string{one}, unheard},
		"that name":                 {Options{Cluster: "one", Project: "p"}, []string{one}, "name the cluster in full with --cluster; these answered\n  " + one},
		"none":                      {Options{Project: "p"}, nil, "not settled in project p: " + unheard},
		"none of that name":         {Options{Cluster: "three", Project: "p"}, []string{one}, unheard},
		"in the hinted zone":        {Options{Project: "p", Location: "us-west4-a", hint: true}, []string{one, regional}, one},
		"not in the hinted zone":    {Options{Project: "p", Location: "us-west4-c", hint: true}, []string{one}, unheard},
		"the hinted zone is silent": {Options{Project: "p", Location: "us-west4-b", hint: true}, []string{regional}, unheard},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := Find(context.Background(), tt.options, &fakeFinder{clusters: tt.clusters, silent: []string{"us-west4-b"}})
			if err == nil && n.String() != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %s, %v; want %s", n, err, tt.want)
			}
		})
	}
}

// A cluster that is named in full is asked for without a list; when it is not
// there, what is there helps.
func TestMissingClusterNamesThoseThatAre(t *testing.T) {
	nope := gke.ClusterName{Project: "p", Location: "us-west4-a", Cluster: "nope"}
	const is = "cluster nope does not exist in us-west4-a of project p"
	for want, f := range map[string]*fakeFinder{
		is + "; clusters there are\n  " + one:                                              {clusters: []string{one, two}},
		is + "; clusters elsewhere in the project are\n  " + two:                           {clusters: []string{two}},
		is + ", and the project has no cluster at all: make one with tpu_training_cluster": {},
		is + ": check --cluster, --project and --location":                                 {err: errors.New("permission denied")},
		is + "; clusters elsewhere in the project are\n  " + two + "\nGKE had no answer from us-west4-a, so clusters there are not listed. That passes by itself": {clusters: []string{two}, silent: []string{"us-west4-a"}},
		is + ".\nGKE had no answer from us-west4-a, so clusters there are not listed. That passes by itself":                                                      {silent: []string{"us-west4-a"}},
	} {
		if err := missing(context.Background(), nope, f); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if f.asked != "p/-" {
			t.Errorf("asked for %q", f.asked)
		}
	}
}

func TestConnectToAMissingCluster(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/clusters") {
			_, _ = io.WriteString(w, `{"clusters": [{"name": "one", "location": "us-west4-a"}]}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error": {"code": 404, "status": "NOT_FOUND", "message": "Not found: projects/p/locations/us-west4-a/clusters/nope."}}`)
	}))
	defer s.Close()
	t.Setenv(EndpointVariable, s.URL)
	t.Setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "token")
	_, err := Connect(context.Background(), Options{Cluster: "projects/p/locations/us-west4-a/clusters/nope"})
	want := "cluster nope does not exist in us-west4-a of project p; clusters there are\n  " + one
	if err == nil || err.Error() != want || exit.Code(err) != exit.Failure {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestEnvironment(t *testing.T) {
	env := map[string]string{"TPU_CLUSTER": one, "GOOGLE_PROJECT": "p", "GOOGLE_REGION": "us-west4", "GOOGLE_ZONE": "us-west4-a"}
	getenv := func(k string) string { return env[k] }
	if got, want := FromEnvironment(getenv), (Options{Cluster: one, Project: "p", Location: "us-west4-a", hint: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	flags := Options{Cluster: two, Project: "q", Location: "europe-west4"}
	if got := flags.withEnvironment(getenv); !reflect.DeepEqual(got, flags) {
		t.Errorf("flags lose to the environment: %+v", got)
	}
}

func TestKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	const config = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: here, context: {cluster: c, user: u}}]
`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Connect(context.Background(), Options{Kubeconfig: path, KubeContext: "here"})
	if err != nil || c.Config.Host != "https://127.0.0.1:1" {
		t.Fatalf("got %v, %v", c, err)
	}
	_, err = Connect(context.Background(), Options{Kubeconfig: path, KubeContext: "there"})
	if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), `has no context "there"; it has here`) {
		t.Errorf("got %v", err)
	}
	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"no current context": {Options{Kubeconfig: path}, "has no current context: choose one with --kube-context; it has here"},
		"no such file":       {Options{Kubeconfig: path + "-not"}, "-not: no such file"},
		"a cluster as well":  {Options{Kubeconfig: path, Cluster: one}, "--cluster and --kubeconfig both name a cluster"},
	} {
		if _, err := Connect(context.Background(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	t.Setenv("KUBECONFIG", path+"-not")
	if _, err = Connect(context.Background(), Options{KubeContext: "here"}); exit.Code(err) != exit.Usage || !strings.HasPrefix(err.Error(), "there is no kubeconfig "+path+"-not") {
		t.Errorf("got %v", err)
	}
	// A kubeconfig alone is its current context, whatever the environment says.
	current := path + "-current"
	if err := os.WriteFile(current, []byte(config+"current-context: here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TPU_CLUSTER", one)
	t.Setenv("GOOGLE_PROJECT", "p")
	if c, err := Connect(context.Background(), Options{Kubeconfig: current}); err != nil || c.Config.Host != "https://127.0.0.1:1" {
		t.Errorf("got %v, %v", c, err)
	}
	if got := Account(Options{Kubeconfig: current}); got != "u" {
		t.Errorf("account %q", got)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != config {
		t.Errorf("the kubeconfig was written to: %v\n%s", err, after)
	}
}

// Flags win over a context, a context that is named over the environment, and
// the environment's cluster over the current context.
func TestContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	t.Setenv(contexts.Variable, file)
	const config = `current: lab
contexts:
  lab: {cluster: ` + one + `}
  short: {cluster: two, project: q}
  kind: {kube-context: kind-kind, kubeconfig: /kc}
`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		flags Options
		env   map[string]string
		want  Options
	}{
		"the current one":              {Options{}, nil, Options{Cluster: one, hint: true}},
		"with a project around":        {Options{}, map[string]string{"GOOGLE_PROJECT": "p"}, Options{Cluster: one, Project: "p", hint: true}},
		"a flag":                       {Options{Cluster: two}, nil, Options{Cluster: two, hint: true}},
		"a project by flag":            {Options{Project: "p"}, nil, Options{Project: "p", hint: true}},
		"the environment's cluster":    {Options{}, map[string]string{"TPU_CLUSTER": two}, Options{Cluster: two, hint: true}},
		"one by name":                  {Options{Context: "short"}, map[string]string{"TPU_CLUSTER": two, "GOOGLE_PROJECT": "p"}, Options{Context: "short", Cluster: "two", Project: "q", hint: true}},
		"one by the environment":       {Options{}, map[string]string{"TPU_CONTEXT": "short"}, Options{Cluster: "two", Project: "q", hint: true}},
		"by name, and a flag":          {Options{Context: "short", Cluster: "three"}, nil, Options{Context: "short", Cluster: "three", Project: "q", hint: true}},
		"a kubeconfig's":               {Options{Context: "kind"}, map[string]string{"GOOGLE_PROJECT": "p"}, Options{Context: "kind", KubeContext: "kind-kind", Kubeconfig: "/kc"}},
		"a kubeconfig first":           {Options{Kubeconfig: "/other"}, map[string]string{"GOOGLE_PROJECT": "p"}, Options{Kubeconfig: "/other"}},
		"a kubeconfig's context first": {Options{KubeContext: "x"}, map[string]string{"GOOGLE_PROJECT": "p"}, Options{KubeContext: "x"}},
	} {
		got, err := tt.flags.settle(func(k string) string { return tt.env[k] })
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tt.want)
		}
	}
	none := func(string) string { return "" }
	if _, err := (Options{Context: "nope"}).settle(none); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "it has kind, lab, short") {
		t.Errorf("one that there is not: %v", err)
	}
	if err := os.WriteFile(file, []byte("current: gone"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Options{}).settle(none); err == nil || !strings.Contains(err.Error(), `there is no context "gone"`) {
		t.Errorf("a current one that is gone: %v", err)
	}
	if got, err := (Options{Cluster: one}).settle(none); err != nil || got.Cluster != one {
		t.Errorf("a flag beside a broken file: %+v, %v", got, err)
	}
}
