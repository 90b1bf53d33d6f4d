package provider_test

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

// keyFile writes a service account key whose tokens the returned server
// issues, and gives a part of the private key to know it by.
func keyFile(t *testing.T, token string) (file, secret string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token": %q, "token_type": "Bearer", "expires_in": 3600}`, token)
	}))
	t.Cleanup(server.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	b, err := json.Marshal(map[string]string{"type": "service_account", "client_email": "ci@acme.iam.gserviceaccount.com", "private_key": text, "token_uri": server.URL})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, strings.Split(text, "\n")[2]
}

// With every log there is turned on, neither what Terraform prints, nor its
// plan, state, logs or any other file holds a part of the credentials or the
// token that they became; also when the API refuses that token. The provider
// writes no file.
func TestNoSecretAnywhere(t *testing.T) {
	g := acctest.NewGKE(t)
	file, private := keyFile(t, acctest.Token)
	refused, refusedKey := keyFile(t, "refused-bearer-token")
	secrets := map[string]string{"token": acctest.Token, "key": private, "refused token": "refused-bearer-token", "refused key": refusedKey, "a private key": "PRIVATE KEY-----"}
	d, err := tfrun.New(filepath.Join(t.TempDir(), "module"), "", tfrun.FindCLI(), acctest.ProviderBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	config := `
terraform {
  required_providers {
    tpu = { source = "` + tfrun.Source + `" }
  }
}
` + strings.Replace(g.Config("infra", `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}

resource "tpu_slice_pool" "v5e" {
  cluster     = tpu_training_cluster.main.id
  name        = "v5e"
  accelerator = "v5litepod-16"
}
`), fmt.Sprintf("access_token  = %q", acctest.Token), `credentials = var.key`, 1) + `
variable "key" {
  type      = string
  sensitive = true
}
`
	if strings.Contains(config, acctest.Token) {
		t.Fatal("the configuration holds the token: the test would prove nothing")
	}
	if err := d.Write("main.tf", config); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(d.Path, "trace.log")
	d.Env = []string{"TF_LOG=TRACE", "TF_LOG_PROVIDER=TRACE", "TF_LOG_PATH=" + log, "TF_VAR_key=" + file, "GODEBUG=http2debug=2"}
	var printed acctest.Output
	run := func(works bool, args ...string) {
		t.Helper()
		if err := d.Run(t.Context(), &printed, append(args, "-no-color")...); (err == nil) != works {
			t.Fatalf("%s: %v\n%s", args, err, printed.String())
		}
	}
	run(true, "init")
	run(true, "plan", "-out=plan")
	run(true, "apply", "plan")
	run(true, "show", "-json", "plan")
	run(true, "show", "-json")
	d.Env = append(d.Env, "TF_VAR_key="+refused)
	run(false, "plan")
	for _, want := range []string{"credentials refused", "ci@acme.iam.gserviceaccount.com"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("the refusal does not say %q:\n%s", want, printed.String())
		}
	}
	d.Env = append(d.Env, "TF_VAR_key="+file)
	run(true, "destroy", "-auto-approve")

	look := func(name string, b []byte) {
		for what, secret := range secrets {
			for form, text := range map[string]string{"": secret, " in base64": base64.StdEncoding.EncodeToString([]byte(secret)), " as Go prints bytes": fmt.Sprint([]byte(secret))} {
				if bytes.Contains(b, []byte(text)) {
					t.Errorf("%s holds the %s%s", name, what, form)
				}
			}
		}
	}
	look("the output", []byte(printed.String()))
	own := map[string]bool{"main.tf": true, "terraformrc": true, "plan": true, "trace.log": true, "terraform.tfstate": true, "terraform.tfstate.backup": true, ".terraform.lock.hcl": true}
	traced := int64(0)
	err = filepath.WalkDir(d.Path, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(d.Path, path)
		if name == "terraform.d" || name == ".terraform" { // the provider's binary
			return fs.SkipDir
		}
		if e.IsDir() {
			return nil
		}
		if !own[name] {
			t.Errorf("somebody wrote %s", name)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if name == "trace.log" {
			traced = int64(len(b))
		}
		look(name, b)
		if name == "plan" {
			return unzip(b, func(part string, b []byte) { look("plan/"+part, b) })
		}
		return nil
	})
	if err != nil || traced < 10_000 {
		t.Fatalf("looked at %d bytes of trace: %v", traced, err)
	}
}

// unzip shows what is in a plan file.
func unzip(b []byte, look func(string, []byte)) error {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return err
		}
		part, err := io.ReadAll(r)
		_ = r.Close()
		if err != nil {
			return err
		}
		look(f.Name, part)
	}
	return nil
}
