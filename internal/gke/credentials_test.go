package gke

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// rsaKey is a private key as credentials JSON holds it.
var rsaKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
})

// fields is credentials JSON.
type fields map[string]any

func (f fields) String() string {
	b, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// with is f with other fields; nil removes one.
func (f fields) with(other fields) fields {
	out := fields{}
	for _, m := range []fields{f, other} {
		for k, v := range m {
			out[k] = v
			if v == nil {
				delete(out, k)
			}
		}
	}
	return out
}

const actAs = "train@acme.iam.gserviceaccount.com"

func keyFile() fields {
	return fields{"type": "service_account", "client_email": "ci@acme.iam.gserviceaccount.com", "private_key": rsaKey(), "token_uri": "https://oauth2.googleapis.com/token"}
}

func login() fields {
	return fields{"type": "authorized_user", "client_id": "id", "client_secret": "s3cret", "refresh_token": "r3fresh-s3cret"}
}

func federated(source fields) fields {
	return fields{"type": "external_account", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": "https://sts.googleapis.com/v1/token",
		"audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/ci/providers/ci", "credential_source": source}
}

const impersonateURL = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/" + actAs + ":generateAccessToken"

// nowhere is a home without credentials.
func nowhere(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Which credentials are used, and how they are told: by kind, place and
// account, never by content.
func TestWhichCredentials(t *testing.T) {
	nowhere(t)
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "key.json"), keyFile().String())
	gcloud := filepath.Dir(write(t, filepath.Join(dir, "gcloud", "application_default_credentials.json"), login().with(fields{"account": "me@acme.test"}).String()))
	const token = "s3cret"
	for _, c := range []struct {
		name string
		cfg  CredentialsConfig
		env  map[string]string
		want string
	}{
		{name: "token", cfg: CredentialsConfig{AccessToken: token}, want: "the access token from access_token in the provider's configuration"},
		{name: "token in the environment", env: map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": token, "GOOGLE_CREDENTIALS": login().String()},
			want: "the access token from GOOGLE_OAUTH_ACCESS_TOKEN"},
		{name: "configuration before environment", cfg: CredentialsConfig{JSON: login().String()}, env: map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": token},
			want: "credentials in the provider's configuration (the login of a user)"},
		{name: "file", env: map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file},
			want: "the file " + file + " named by GOOGLE_APPLICATION_CREDENTIALS (the key of service account ci@acme.iam.gserviceaccount.com)"},
		{name: "the provider's variable before everybody's", env: map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere", "GCLOUD_KEYFILE_JSON": file},
			want: "the file " + file + " named by GCLOUD_KEYFILE_JSON (the key of service account ci@acme.iam.gserviceaccount.com)"},
		{name: "gcloud", env: map[string]string{"CLOUDSDK_CONFIG": gcloud},
			want: "gcloud's application default credentials in " + filepath.Join(gcloud, "application_default_credentials.json") + " (the login of user me@acme.test)"},
		{name: "federation by a file", cfg: CredentialsConfig{JSON: federated(fields{"file": "/var/run/token"}).String()},
			want: "credentials in the provider's configuration (workload identity federation with the file /var/run/token)"},
		{name: "federation by an address", cfg: CredentialsConfig{JSON: federated(fields{"url": "https://ci.test/id?secret=s3cret"}).with(fields{"service_account_impersonation_url": impersonateURL}).String()},
			want: "credentials in the provider's configuration (workload identity federation with the address https://ci.test, acting as service account " + actAs + ")"},
		{name: "an impersonating file", cfg: CredentialsConfig{JSON: fields{"type": "impersonated_service_account", "service_account_impersonation_url": impersonateURL, "source_credentials": login()}.String()},
			want: "credentials in the provider's configuration (impersonation of service account " + actAs + " by the login of a user)"},
		{name: "impersonation", cfg: CredentialsConfig{AccessToken: token, Impersonate: actAs}, env: map[string]string{"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": "other"},
			want: actAs + ", impersonated by the access token from access_token in the provider's configuration"},
		{name: "impersonation by the environment", env: map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": token, "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": actAs},
			want: actAs + ", impersonated by the access token from GOOGLE_OAUTH_ACCESS_TOKEN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Getenv = func(k string) string { return c.env[k] }
			got, err := FindCredentials(c.cfg).Describe()
			if got != c.want || err != nil {
				t.Errorf("got  %q, %v\nwant %q", got, err, c.want)
			}
			if strings.Contains(got, "s3cret") {
				t.Errorf("a secret shows: %s", got)
			}
		})
	}
}

// What cannot work is refused before anybody is asked, with what is wrong and
// what is right, and without a word of what was given.
func TestUnusableCredentials(t *testing.T) {
	nowhere(t)
	dir := t.TempDir()
	cut := write(t, filepath.Join(dir, "cut.json"), keyFile().String()[:200])
	for _, c := range []struct {
		name, json, token string
		want              string
	}{
		{name: "no file", json: "/nowhere/key.json", want: "reading credentials in the provider's configuration: the file /nowhere/key.json: no such file"},
		{name: "a folder", json: dir, want: dir + ": is a directory"},
		{name: "a file cut short", json: cut, want: "the file " + cut + " named by credentials in the provider's configuration: it is not JSON, or not all of it is there"},
		{name: "not JSON", json: `{"private_key": "s3cret`, want: "it is not JSON"},
		{name: "a wrong field", json: `{"type": "service_account", "client_email": ["s3cret"]}`, want: "its field client_email is a JSON array"},
		{name: "no type", json: `{"private_key": "s3cret"}`, want: "it has no field type: want credentials of type authorized_user, external_account,"},
		{name: "unknown type", json: `{"type": "odd", "private_key": "s3cret"}`, want: `credentials of type "odd" are not understood: want type authorized_user,`},
		{name: "an OAuth client", json: `{"installed": {"client_secret": "s3cret"}}`, want: "it is the secret of an OAuth client, which only starts a login"},
		{name: "incomplete", json: keyFile().with(fields{"client_email": nil, "private_key": ""}).String(), want: "credentials of type service_account lack client_email, private_key"},
		{name: "no key", json: keyFile().with(fields{"private_key": "s3cret"}).String(), want: "its private_key is not a PEM key"},
		{name: "half a key", json: keyFile().with(fields{"private_key": "-----BEGIN PRIVATE KEY-----\nczNjcmV0\n-----END PRIVATE KEY-----\n"}).String(), want: "no private key can be read from it"},
		{name: "a plain token address", json: keyFile().with(fields{"token_uri": "http://example.com/token"}).String(), want: "its token_uri is not an https:// address: secrets would travel unencrypted"},
		{name: "federation with nothing", json: federated(fields{}).String(), want: "credentials of type external_account lack credential_source"},
		{name: "impersonation by nobody", json: fields{"type": "impersonated_service_account", "service_account_impersonation_url": impersonateURL}.String(), want: "lack source_credentials"},
		{name: "impersonation by half a login", json: fields{"type": "impersonated_service_account", "service_account_impersonation_url": impersonateURL, "source_credentials": login().with(fields{"refresh_token": nil})}.String(),
			want: "its source_credentials: credentials of type authorized_user lack refresh_token"},
		{name: "base64", json: base64.StdEncoding.EncodeToString([]byte(login().String())), want: "it is base64"},
		{name: "a bare key", json: rsaKey(), want: "it is a bare key"},
		{name: "a token instead of credentials", json: "ya29.s3cret/x", want: "it is an access token: give it as access_token"},
		{name: "neither", json: "s3cret", want: "its 6 characters are neither JSON nor the path of a file"},
		{name: "credentials instead of a token", token: login().String(), want: "reading access_token in the provider's configuration: it is credentials JSON or a key, not an access token"},
		{name: "a token with its word", token: "Bearer s3cret", want: "without the word Bearer"},
		{name: "a token of two lines", token: "s3cret\ns3cret", want: "it has spaces, line breaks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := FindCredentials(CredentialsConfig{JSON: c.json, AccessToken: c.token, Getenv: func(string) string { return "" }}).Token()
			if err == nil || !strings.Contains(err.Error(), c.want) || !CredentialsMissing(err) {
				t.Fatalf("got %v\nwant %s", err, c.want)
			}
			for _, secret := range []string{"s3cret", "czNjcmV0", string(bytes.TrimSpace([]byte(rsaKey())))[60:100]} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("a secret shows: %v", err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		})
	}
}

// While one of them is unknown, other credentials do not stand in for it: they
// may be another account's.
func TestUnknownCredentialsAreNotReplaced(t *testing.T) {
	env := map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": "s3cret"}
	_, err := FindCredentials(CredentialsConfig{Unknown: "access_token", Getenv: func(k string) string { return env[k] }}).Token()
	if !CredentialsMissing(err) || !strings.Contains(err.Error(), "access_token is not known before the apply") {
		t.Errorf("got %v", err)
	}
}
