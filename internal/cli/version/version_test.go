package version

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// run is the command below a root that has --verbose, as tpuctl's does.
func run(t *testing.T, build Build, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := &cobra.Command{Use: "tpuctl", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().BoolP("verbose", "v", false, "")
	root.AddCommand(New(&term.Streams{Out: &out, Err: &out}, build))
	root.SetArgs(append([]string{"version"}, args...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestShort(t *testing.T) {
	asked := false
	build := Build{Version: "v1.2.3", Details: func(context.Context) []Detail { asked = true; return nil }}
	for args, want := range map[string]string{"": "tpuctl v1.2.3\n", "-o name": "v1.2.3\n"} {
		if got := run(t, build, strings.Fields(args)...); got != want {
			t.Errorf("version %s: %q, want %q", args, got, want)
		}
	}
	if asked {
		t.Error("credentials were looked for although nobody asked")
	}
}

func TestVerbose(t *testing.T) {
	build := Build{Version: "v1.2.3", Details: func(context.Context) []Detail {
		return []Detail{{"credentials", "an access token"}, {"location", ""}}
	}}
	page := run(t, build, "--verbose")
	for _, want := range []string{"tpuctl v1.2.3\n", "  go                  " + runtime.Version(), "  platform            " + runtime.GOOS + "/" + runtime.GOARCH, "  credentials         an access token"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing:\n%s", want, page)
		}
	}
	if strings.Contains(page, "location") {
		t.Errorf("a detail without a value is shown:\n%s", page)
	}
	var got info
	if err := json.Unmarshal([]byte(run(t, build, "-v", "-o", "json")), &got); err != nil || got.Version != "v1.2.3" || got.Details["credentials"] != "an access token" {
		t.Errorf("json: %+v, %v", got, err)
	}
}

func TestVerboseWithoutDetails(t *testing.T) {
	if page := run(t, Build{Version: "dev"}, "-v"); !strings.HasPrefix(page, "tpuctl dev\n") {
		t.Errorf("got\n%s", page)
	}
}

// Credentials are described by kind and place. Whatever they hold, and in
// whatever form it is printed, none of it is shown.
func TestVerboseNeverPrintsASecret(t *testing.T) {
	const secret = "s3cr3t-part"
	describe := func(context.Context) []Detail {
		text, err := gke.FindCredentials(gke.CredentialsConfig{}).Describe()
		return []Detail{{"credentials", text}, {"error", errors.Join(err, errors.New("-")).Error()}}
	}
	key := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(key, []byte(`{"type": "authorized_user", "client_id": "id", "client_secret": "`+secret+`", "refresh_token": "`+secret+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string]map[string]string{
		"token": {"GOOGLE_OAUTH_ACCESS_TOKEN": secret},
		"file":  {"GOOGLE_APPLICATION_CREDENTIALS": key},
		"both":  {"GOOGLE_OAUTH_ACCESS_TOKEN": secret, "GOOGLE_APPLICATION_CREDENTIALS": key},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS"} {
				t.Setenv(variable, env[variable])
			}
			for _, format := range []string{"table", "wide", "json", "yaml", "name"} {
				out := run(t, Build{Version: "v1.2.3", Details: describe}, "-v", "-o", format)
				if strings.Contains(out, secret) {
					t.Errorf("-o %s prints a secret:\n%s", format, out)
				}
				if format != "name" && !strings.Contains(out, "credentials") {
					t.Errorf("-o %s does not say which credentials were found:\n%s", format, out)
				}
			}
		})
	}
}
