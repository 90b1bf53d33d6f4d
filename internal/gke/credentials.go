package gke

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"google.golang.org/api/impersonate"
	"google.golang.org/api/option"
)

// scope is the one OAuth scope that GKE and its clusters need.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// renewEarly is how long before its end a token is replaced. What is sent with
// a token then still has time to arrive, also when the clocks differ a little.
const renewEarly = time.Minute

// impersonateVariable is the service account to act as, as in hashicorp/google.
const impersonateVariable = "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"

// CredentialsConfig is what the user gave. Nothing given means the environment
// and then application default credentials.
type CredentialsConfig struct {
	AccessToken string              // a bearer token, used as it is
	JSON        string              // credentials JSON, or the path of a file with it
	Impersonate string              // service account to act as; "" asks the environment
	Delegates   []string            // accounts between the found one and Impersonate, in order
	Unknown     string              // what of this is not known yet ("access_token"), or "": then there is no token
	CommandLine bool                // there is no provider's configuration to speak of
	Getenv      func(string) string // os.Getenv when nil
	Transport   http.RoundTripper   // carries the requests for tokens; http.DefaultTransport when nil
}

// Credentials find themselves when a token is first needed, so that making
// them needs neither a network nor any credentials. They are safe for
// concurrent use; tokens are renewed as they expire.
type Credentials struct {
	cfg CredentialsConfig
	via *exchanges

	mu     sync.Mutex
	source oauth2.TokenSource
	found  found
	actAs  string // the service account that is impersonated, or ""
}

// FindCredentials prepares credentials; it reads nothing yet.
func FindCredentials(cfg CredentialsConfig) *Credentials {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	return &Credentials{cfg: cfg, via: &exchanges{base: cfg.Transport}}
}

// Token returns a valid bearer token.
func (c *Credentials) Token() (*oauth2.Token, error) {
	source, err := c.find()
	if err != nil {
		return nil, err
	}
	t, err := source.Token()
	if err != nil {
		return nil, c.failed(err)
	}
	return t, nil
}

// Fresh returns a token with its whole life before it, past whatever is cached
// here. An access token that was given is what it is.
func (c *Credentials) Fresh() (*oauth2.Token, error) { return FindCredentials(c.cfg).Token() }

// Describe says which credentials are in use, by kind, place and account,
// never by content. It needs no network.
func (c *Credentials) Describe() (string, error) {
	if _, err := c.find(); err != nil {
		return "", err
	}
	return c.describe(), nil
}

func (c *Credentials) describe() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.actAs != "" {
		return c.actAs + ", impersonated by " + c.found.String()
	}
	return c.found.String()
}

// find looks once; a failure is looked into again, since the user may log in
// meanwhile.
func (c *Credentials) find() (oauth2.TokenSource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.source != nil {
		return c.source, nil
	}
	if c.cfg.Unknown != "" {
		return nil, &credentialsError{what: "the provider's " + c.cfg.Unknown + " is not known before the apply, so nothing can be asked of Google yet. " +
			"Apply what it comes from first (-target), or give it by a variable"}
	}
	// Outlives this call: tokens are renewed with it.
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, c.via.client(nil))
	f, err := c.look(ctx)
	if err != nil {
		var none *credentialsError
		if errors.As(err, &none) {
			none.commandLine = c.cfg.CommandLine
		}
		return nil, err
	}
	source := f.source
	actAs := cmp.Or(c.cfg.Impersonate, c.cfg.Getenv(impersonateVariable))
	if actAs != "" {
		source, err = impersonate.CredentialsTokenSource(ctx,
			impersonate.CredentialsConfig{TargetPrincipal: actAs, Scopes: []string{scope}, Delegates: c.cfg.Delegates},
			option.WithHTTPClient(c.via.client(oauth2.ReuseTokenSourceWithExpiry(nil, source, renewEarly))))
		if err != nil {
			return nil, &credentialsError{what: "impersonating " + actAs + " with " + f.String(), err: err, commandLine: c.cfg.CommandLine}
		}
	}
	c.found, c.actAs = f, actAs
	c.source = oauth2.ReuseTokenSourceWithExpiry(nil, source, renewEarly)
	return c.source, nil
}

// Account is whom the credentials stand for, by e-mail address, where they say
// so themselves; "" where only Google knows. It needs no network.
func (c *Credentials) Account() string {
	if _, err := c.find(); err != nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.actAs != "" {
		return c.actAs
	}
	_, account, _ := strings.Cut(c.found.account, ":")
	return account
}
