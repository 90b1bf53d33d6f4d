package gke

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// hosts answers requests without a network, by host: Google's token servers
// have names that only https reaches.
type hosts map[string]http.HandlerFunc

func (h hosts) RoundTrip(req *http.Request) (*http.Response, error) {
	serve, ok := h[req.URL.Host]
	if !ok {
		return nil, fmt.Errorf("dial tcp: lookup %s: no such host", req.URL.Host)
	}
	w := httptest.NewRecorder()
	serve(w, req)
	return w.Result(), nil
}

// oauth issues tokens named NAME-1, NAME-2, ... that live for an hour.
func oauth(name string) http.HandlerFunc {
	var n atomic.Int32
	return func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, fmt.Sprintf(`{"access_token": "%s-%d", "token_type": "Bearer", "expires_in": 3600, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}`, name, n.Add(1)))
	}
}

// iam issues a token of a service account to whoever has the token wanted.
func iam(t *testing.T, wanted string, delegates ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Delegates []string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(delegates, body.Delegates); d != "" {
			t.Errorf("delegates (-want +got):\n%s", d)
		}
		if got := r.Header.Get("Authorization"); got != "Bearer "+wanted {
			t.Errorf("IAM was asked with %q, want %q", got, wanted)
		}
		if !strings.HasSuffix(r.URL.Path, "/serviceAccounts/"+actAs+":generateAccessToken") {
			t.Errorf("IAM was asked for %s", r.URL.Path)
		}
		answer(w, 200, fmt.Sprintf(`{"accessToken": "acting", "expireTime": %q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	}
}

func refusing(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { answer(w, status, body) }
}

func subjectFile(t *testing.T) string {
	t.Helper()
	return write(t, filepath.Join(t.TempDir(), "subject"), "subject-t0ken")
}

func noEnv(string) string { return "" }

// Every kind of credentials becomes a token, by the servers it names.
func TestTokens(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   CredentialsConfig
		hosts hosts
		want  string
	}{
		{"an access token", CredentialsConfig{AccessToken: " t0ken\n"}, nil, "t0ken"},
		{"a key", CredentialsConfig{JSON: keyFile().String()}, hosts{"oauth2.googleapis.com": oauth("key")}, "key-1"},
		{"a login", CredentialsConfig{JSON: login().String()}, hosts{"oauth2.googleapis.com": oauth("login")}, "login-1"},
		{"federation", CredentialsConfig{JSON: federated(fields{"file": subjectFile(t)}).String()}, hosts{"sts.googleapis.com": func(w http.ResponseWriter, r *http.Request) {
			if got := r.FormValue("subject_token"); got != "subject-t0ken" {
				t.Errorf("STS got the subject token %q", got)
			}
			oauth("federated")(w, r)
		}}, "federated-1"},
		{"federation by an address", CredentialsConfig{JSON: federated(fields{"url": "https://ci.test/token"}).String()}, hosts{
			"ci.test":            func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "subject") },
			"sts.googleapis.com": oauth("federated")}, "federated-1"},
		{"federation as a service account",
			CredentialsConfig{JSON: federated(fields{"file": subjectFile(t)}).with(fields{"service_account_impersonation_url": impersonateURL}).String()},
			hosts{"sts.googleapis.com": oauth("federated"), "iamcredentials.googleapis.com": iam(t, "federated-1")}, "acting"},
		{"impersonation", CredentialsConfig{JSON: keyFile().String(), Impersonate: actAs},
			hosts{"oauth2.googleapis.com": oauth("key"), "iamcredentials.googleapis.com": iam(t, "key-1")}, "acting"},
		{"impersonation through others", CredentialsConfig{AccessToken: "t0ken", Impersonate: actAs, Delegates: []string{"a@x", "b@x"}},
			hosts{"iamcredentials.googleapis.com": iam(t, "t0ken", "projects/-/serviceAccounts/a@x", "projects/-/serviceAccounts/b@x")}, "acting"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Transport, c.cfg.Getenv = c.hosts, noEnv
			got, err := FindCredentials(c.cfg).Token()
			if err != nil || got.AccessToken != c.want {
				t.Errorf("got %v, %v; want %s", got, err, c.want)
			}
		})
	}
}

// Why there is no token: which credentials, who was asked, what was answered,
// and what to do; and no secret of any side.
func TestTokenFailures(t *testing.T) {
	key, fed := keyFile().String(), federated(fields{"file": subjectFile(t)}).String()
	denied := refusing(403, `{"error": {"code": 403, "message": "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).", "status": "PERMISSION_DENIED"}}`)
	for _, c := range []struct {
		name  string
		cfg   CredentialsConfig
		hosts hosts
		cause Cause
		what  string
		next  string
	}{
		{"a deleted key", CredentialsConfig{JSON: key}, hosts{"oauth2.googleapis.com": refusing(400, `{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}`)},
			Unauthenticated, "getting a token with credentials in the provider's configuration (the key of service account ci@acme.iam.gserviceaccount.com): oauth2.googleapis.com answers: invalid_grant: Invalid JWT Signature.",
			"The key was deleted or disabled"},
		{"an ended login", CredentialsConfig{JSON: login().String()}, hosts{"oauth2.googleapis.com": refusing(400, `{"error": "invalid_grant", "error_description": "Token has been expired or revoked."}`)},
			Unauthenticated, "Token has been expired or revoked.", "Log in again (gcloud auth application-default login)"},
		{"a session that is over", CredentialsConfig{JSON: login().String()}, hosts{"oauth2.googleapis.com": refusing(400, `{"error": "invalid_grant", "error_description": "reauth related error (invalid_rapt)"}`)},
			Unauthenticated, "invalid_rapt", "wants you to log in again"},
		{"no permission to impersonate", CredentialsConfig{JSON: key, Impersonate: actAs, Delegates: []string{"a@x"}}, hosts{"oauth2.googleapis.com": oauth("key"), "iamcredentials.googleapis.com": denied},
			Permission, "getting a token with " + actAs + ", impersonated by credentials in the provider's configuration (the key of service account ci@acme.iam.gserviceaccount.com): iamcredentials.googleapis.com answers: Permission 'iam.serviceAccounts.getAccessToken' denied",
			"grant serviceAccount:ci@acme.iam.gserviceaccount.com the role roles/iam.serviceAccountTokenCreator on " + actAs + ". With delegates, each account needs it on the next: serviceAccount:ci@acme.iam.gserviceaccount.com, a@x, " + actAs},
		{"no permission to act as the file says", CredentialsConfig{JSON: federated(fields{"file": subjectFile(t)}).with(fields{"service_account_impersonation_url": impersonateURL}).String()},
			hosts{"sts.googleapis.com": oauth("federated"), "iamcredentials.googleapis.com": denied}, Permission, "acting as service account " + actAs, "roles/iam.workloadIdentityUser"},
		{"an account that does not exist", CredentialsConfig{AccessToken: "t0ken", Impersonate: actAs}, hosts{"iamcredentials.googleapis.com": refusing(404, `{"error": {"code": 404, "message": "Not found; Gaia id not found for email."}}`)},
			Permission, "Gaia id not found", "Check that the service account " + actAs + " exists"},
		{"an API not enabled", CredentialsConfig{AccessToken: "t0ken", Impersonate: actAs}, hosts{"iamcredentials.googleapis.com": refusing(403, `{"error": {"code": 403, "message": "IAM Service Account Credentials API has not been used in project 1 before or it is disabled."}}`)},
			APINotEnabled, "has not been used", "gcloud services enable iamcredentials.googleapis.com"},
		{"a provider that says no", CredentialsConfig{JSON: fed}, hosts{"sts.googleapis.com": refusing(400, `{"error": "invalid_grant", "error_description": "The issuer in ID Token https://x does not match."}`)},
			Unauthenticated, "sts.googleapis.com answers: invalid_grant: The issuer", "check its issuer, audiences and attribute condition"},
		{"a provider that does not exist", CredentialsConfig{JSON: fed}, hosts{"sts.googleapis.com": refusing(400, `{"error": "invalid_target", "error_description": "The target service indicated by the \"audience\" parameters is invalid."}`)},
			Unauthenticated, "invalid_target", "gcloud iam workload-identity-pools create-cred-config"},
		{"no subject", CredentialsConfig{JSON: federated(fields{"file": "/nowhere/subject"}).String()}, hosts{}, NoCredentials, `failed to open credential file "/nowhere/subject"`, ""},
		{"an executable", CredentialsConfig{JSON: federated(fields{"executable": fields{"command": "/bin/echo s3cret", "timeout_millis": 5000}}).String()}, hosts{},
			NoCredentials, "(workload identity federation with an executable): executables are run only when the environment allows it", "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1"},
		{"an address over plain http", CredentialsConfig{JSON: federated(fields{"url": "http://ci.test/token", "headers": fields{"Authorization": "s3cret"}}).String()}, hosts{"ci.test": oauth("never")},
			NoCredentials, "asking ci.test: refused: it is plain http", ""},
		{"a redirect", CredentialsConfig{JSON: key}, hosts{"oauth2.googleapis.com": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/token", http.StatusTemporaryRedirect)
		}, "169.254.169.254": oauth("stolen")}, NoCredentials, "a redirect", "not followed"},
		{"nobody there", CredentialsConfig{JSON: key}, hosts{}, Unreachable, "asking oauth2.googleapis.com: dial tcp: lookup oauth2.googleapis.com: no such host", "Check the network"},
		{"a server with a problem", CredentialsConfig{JSON: key}, hosts{"oauth2.googleapis.com": refusing(503, "s3cret")}, Unavailable, "oauth2.googleapis.com answers: HTTP status 503 Service Unavailable", "passes by itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "")
			c.cfg.Transport, c.cfg.Getenv = c.hosts, noEnv
			tok, err := FindCredentials(c.cfg).Token()
			cause, what, next, ok := TokenFailure(err)
			if !ok || cause != c.cause || !strings.Contains(what, c.what) || !strings.Contains(next, c.next) {
				t.Errorf("got %v, %q: %q\n%q\nwant %q: %q\n%q", tok, cause, what, next, c.cause, c.what, c.next)
			}
			for _, secret := range []string{"s3cret", "t0ken", "key-1", "subject-t0ken", rsaKey()[60:100]} {
				if strings.Contains(what+next, secret) {
					t.Errorf("a secret shows: %s\n%s", what, next)
				}
			}
			full := wrap(t.Context(), "reading cluster", name.String(), "", err)
			if !errors.Is(full, c.cause) || !strings.Contains(full.Error(), c.what) || !strings.Contains(full.Error(), c.next) {
				t.Errorf("as the error of a call: %v", full)
			}
		})
	}
}

// A wait of hours outlives several tokens: each request carries one that is
// good for another while, and nothing is asked of the token server in between.
func TestTokensAreRenewedInLongWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issued := map[string]time.Time{}
		token := oauth("key")
		api := func(w http.ResponseWriter, r *http.Request) {
			born, ok := issued[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
			if age := time.Since(born); !ok || age > time.Hour-renewEarly {
				t.Errorf("a request came with a token of age %v", age)
			}
			status := "PROVISIONING"
			if len(issued) == 5 {
				status = "RUNNING"
			}
			answer(w, 200, `{"name": "main", "status": "`+status+`"}`)
		}
		net := hosts{"container.googleapis.com": api, "oauth2.googleapis.com": func(w http.ResponseWriter, r *http.Request) {
			issued[fmt.Sprintf("key-%d", len(issued)+1)] = time.Now()
			token(w, r)
		}}
		c, err := New(Config{Tokens: FindCredentials(CredentialsConfig{JSON: keyFile().String(), Transport: net, Getenv: noEnv}), Transport: net, PollInterval: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := c.SettleCluster(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 3*time.Hour || len(issued) != 5 {
			t.Errorf("%d tokens in %v", len(issued), took)
		}
	})
}

// A fresh token has its whole life before it, however long the last one has.
func TestFresh(t *testing.T) {
	c := FindCredentials(CredentialsConfig{JSON: keyFile().String(), Transport: hosts{"oauth2.googleapis.com": oauth("key")}, Getenv: noEnv})
	for i, ask := range []func() (string, error){c.text(false), c.text(false), c.text(true)} {
		want := []string{"key-1", "key-1", "key-2"}[i]
		if got, err := ask(); err != nil || got != want {
			t.Errorf("%d: got %s, %v; want %s", i, got, err, want)
		}
	}
}

func (c *Credentials) text(fresh bool) func() (string, error) {
	return func() (string, error) {
		ask := c.Token
		if fresh {
			ask = c.Fresh
		}
		tok, err := ask()
		if err != nil {
			return "", err
		}
		return tok.AccessToken, nil
	}
}

// What Google does not accept is told with the credentials it came from.
func TestRefusalsNameTheCredentials(t *testing.T) {
	for _, c := range []struct {
		code int
		want string
	}{
		{401, "Google does not accept the access token from GOOGLE_OAUTH_ACCESS_TOKEN: it has expired or was revoked."},
		{403, "In use is the access token from GOOGLE_OAUTH_ACCESS_TOKEN. It needs roles/container.admin on project acme"},
	} {
		env := map[string]string{tokenVariable: "t0ken"}
		api := hosts{"container.googleapis.com": refusing(c.code, fmt.Sprintf(`{"error": {"code": %d, "message": "No."}}`, c.code))}
		cl, err := New(Config{Tokens: FindCredentials(CredentialsConfig{Getenv: func(k string) string { return env[k] }}), Transport: api})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cl.GetCluster(t.Context(), name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}

// Secrets go over https or stay on the machine; a metadata server is asked
// without any.
func TestWhereSecretsMayTravel(t *testing.T) {
	for _, c := range []struct {
		url, authorization, body string
		want                     bool
	}{
		{url: "https://sts.googleapis.com/v1/token", authorization: "Bearer t", body: "b", want: true},
		{url: "http://127.0.0.1:80/token", authorization: "Bearer t", body: "b", want: true},
		{url: "http://localhost:80/token", body: "b", want: true},
		{url: "http://169.254.169.254/latest/api/token", want: true},
		{url: "http://metadata.google.internal/computeMetadata/v1/", want: true},
		{url: "http://169.254.169.254/token", authorization: "Bearer t"},
		{url: "http://169.254.169.254/token", body: "b"},
		{url: "http://10.0.0.1/token"},
		{url: "http://localhost.example.com/token"},
		{url: "ftp://127.0.0.1/token"},
	} {
		asked := false
		x := &exchanges{base: roundTrip(func(*http.Request) (*http.Response, error) {
			asked = true
			return httptest.NewRecorder().Result(), nil
		})}
		var body io.Reader
		if c.body != "" {
			body = strings.NewReader(c.body)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, body)
		if err != nil {
			t.Fatal(err)
		}
		if c.authorization != "" {
			req.Header.Set("Authorization", c.authorization)
		}
		resp, err := x.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if asked != c.want || (err == nil) != c.want {
			t.Errorf("%+v: sent %t, %v", c, asked, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The same over a real connection: a redirect takes no secret to another server.
func TestNoRedirectsForTokens(t *testing.T) {
	var stolen atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect) // 307 sends the body again
	}))
	defer server.Close()
	_, err := FindCredentials(CredentialsConfig{JSON: keyFile().with(fields{"token_uri": server.URL}).String(), Getenv: noEnv}).Token()
	if err == nil || stolen.Load() != 0 {
		t.Errorf("got %v; %d requests went elsewhere", err, stolen.Load())
	}
}
