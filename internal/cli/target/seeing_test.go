package target

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/contexts"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// A completion has what was found in time, of what is being typed, and never
// waits for long, whether what it asks heeds its context or not.
func TestComplete(t *testing.T) {
	for name, c := range map[string]struct {
		ask  func(context.Context) ([]string, error)
		want []string
	}{
		"in time":        {func(context.Context) ([]string, error) { return []string{"b\tx", "a", "ba", "b\tx"}, nil }, []string{"b\tx", "ba"}},
		"an error":       {func(context.Context) ([]string, error) { return []string{"b"}, errors.New("no") }, nil},
		"never":          {func(ctx context.Context) ([]string, error) { <-ctx.Done(); return nil, ctx.Err() }, nil},
		"deaf to wishes": {func(context.Context) ([]string, error) { time.Sleep(time.Minute); return []string{"b"}, nil }, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			cmd := &cobra.Command{}
			cmd.SetContext(t.Context())
			began := time.Now()
			got, directive := Complete(cmd, "b", c.ask)
			if took := time.Since(began); took > time.Second || directive != cobra.ShellCompDirectiveNoFileComp || cmp.Diff(c.want, got) != "" && len(got)+len(c.want) > 0 {
				t.Errorf("%s: %q after %s, want %q", name, got, took, c.want)
			}
			time.Sleep(time.Minute) // of the bubble: who is deaf ends as well
		})
	}
}

// Links into Google's console are given for what it shows: clusters of Google's
// own API.
func TestConsole(t *testing.T) {
	n := gke.ClusterName{Project: "p", Location: "us-west4-a", Cluster: "lab"}
	link := func(c string) string { return JobConsole(&kube.Client{Name: c})("research", "train") }
	for endpoint, shown := range map[string]bool{"": true, "container.googleapis.com": true, "https://us-container.p.googleapis.com": true,
		"http://127.0.0.1:8080": false, "https://googleapis.com.example": false} {
		t.Setenv(EndpointVariable, endpoint)
		if got := ClusterConsole(n) != ""; got != shown {
			t.Errorf("endpoint %q: the cluster's link is there: %t", endpoint, got)
		}
		if got := link(n.String()) != ""; got != shown {
			t.Errorf("endpoint %q: the job's link is there: %t", endpoint, got)
		}
	}
	t.Setenv(EndpointVariable, "")
	if got := link("kind-kind"); got != "" {
		t.Errorf("a cluster of a kubeconfig: %s", got)
	}
	u, err := url.Parse(link(n.String()))
	if err != nil || u.Host != "console.cloud.google.com" || u.Query().Get("project") != "p" || strings.ContainsAny(link(n.String()), " \n\"") {
		t.Fatalf("%v %v", u, err)
	}
	for _, want := range []string{`resource.type="k8s_container"`, `resource.labels.cluster_name="lab"`, `resource.labels.namespace_name="research"`, `labels."k8s-pod/jobset_sigs_k8s_io/jobset-name"="train"`} {
		if !strings.Contains(u.Path, want) {
			t.Errorf("%s lacks %s", u.Path, want)
		}
	}
}

// With --verbose each request is told of, and nothing of what it carries.
func TestRequestsAreLogged(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	for level, want := range map[hclog.Level][]string{hclog.Debug: {"method=GET", "path=/v1/projects/p/locations/-/clusters", "code=404", "took="}, hclog.Warn: nil} {
		var log bytes.Buffer
		ctx := hclog.WithContext(t.Context(), hclog.New(&hclog.LoggerOptions{Output: &log, Level: level}))
		t.Setenv(EndpointVariable, s.URL)
		t.Setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "secret-token")
		if _, err := ClusterNames(ctx, Options{Project: "p"}); err == nil {
			t.Fatal("no error")
		}
		for _, w := range want {
			if !strings.Contains(log.String(), w) {
				t.Errorf("%s lacks %q", log.String(), w)
			}
		}
		if want == nil && log.Len() > 0 || strings.Contains(log.String(), "secret") {
			t.Errorf("at level %s: %s", level, log.String())
		}
	}
}

// A context says where jobs are, where no cluster is named by a flag.
func TestNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	t.Setenv(contexts.Variable, file)
	t.Setenv("TPU_CLUSTER", "")
	t.Setenv("TPU_CONTEXT", "")
	if err := os.WriteFile(file, []byte("current: lab\ncontexts:\n  lab: {project: p, namespace: research}\n  other: {project: q}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    Options
		want string
	}{{Options{}, "research"}, {Options{Context: "other"}, ""}, {Options{Context: "lab", Location: "l"}, "research"}, {Options{KubeContext: "kind"}, ""}} {
		if got, err := Namespace(c.o); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v; want %q", c.o, got, err, c.want)
		}
	}
	if _, err := Namespace(Options{Context: "lba"}); err == nil || !strings.Contains(err.Error(), "did you mean lab?") {
		t.Errorf("an unknown context: %v", err)
	}
}

// Whom a command works as is known without asking by some credentials, and by a
// kubeconfig's name for the user.
func TestAccount(t *testing.T) {
	for _, name := range []string{"GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "token")
	if got := Account(Options{}); got != "" {
		t.Errorf("an access token says %q", got)
	}
	t.Setenv("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", "train@acme.iam.gserviceaccount.com")
	if got := Account(Options{}); got != "train@acme.iam.gserviceaccount.com" {
		t.Errorf("who impersonates is %q", got)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\ncontexts: [{name: kind, context: {cluster: c, user: ada}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for context, want := range map[string]string{"kind": "ada", "other": ""} {
		if got := Account(Options{KubeContext: context, Kubeconfig: kubeconfig}); got != want {
			t.Errorf("context %s: %q, want %q", context, got, want)
		}
	}
	if got := Account(Options{KubeContext: "kind", Kubeconfig: kubeconfig + "-not"}); got != "" {
		t.Errorf("without a file: %q", got)
	}
}
