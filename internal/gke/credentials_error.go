package gke

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// credentialsError says that there are no usable credentials, and where they
// were looked for. It never contains a secret.
type credentialsError struct {
	what        string
	err         error
	commandLine bool // as CredentialsConfig has it
}

// next is what to do about it.
func (e *credentialsError) next() string {
	if e.commandLine {
		return "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_OAUTH_ACCESS_TOKEN. " +
			"A cluster that your kubeconfig reaches by other means is chosen with --kube-context."
	}
	return "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_OAUTH_ACCESS_TOKEN, or the provider's credentials or access_token."
}

func (e *credentialsError) Error() string {
	if e.err != nil {
		return e.what + ": " + e.err.Error()
	}
	return e.what
}

func (e *credentialsError) Unwrap() error { return e.err }

// CredentialsMissing tells whether err says that there are no usable
// credentials.
func CredentialsMissing(err error) bool {
	var missing *credentialsError
	return errors.As(err, &missing)
}

// tokenError is that credentials were found and gave no token: which they are,
// who was asked, what was answered, and what to do.
type tokenError struct {
	what  string
	cause Cause
	next  string
}

func (e *tokenError) Error() string { return e.what }

// TokenFailure tells why credentials that were found gave no token, and what
// to do about it. ok is false for every other error.
func TokenFailure(err error) (cause Cause, message, next string, ok bool) {
	var t *tokenError
	if !errors.As(err, &t) {
		return Other, "", "", false
	}
	return t.cause, t.what, t.next, true
}

// failed is the error of a token that did not come.
func (c *Credentials) failed(err error) error {
	var had *credentialsError
	if errors.As(err, &had) {
		return err
	}
	e := &tokenError{what: "getting a token with " + c.describe(), cause: NoCredentials}
	x := c.via.refusal()
	switch {
	case x == nil: // nobody was asked
		e.what += ": " + firstLine(err)
		if strings.Contains(err.Error(), "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES") {
			e.what = "getting a token with " + c.describe() + ": executables are run only when the environment allows it"
			e.next = "If you trust the command in the credentials, set GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1."
		}
	case errors.Is(x.err, errPlain):
		e.what += fmt.Sprintf(": asking %s: %v", x.host, x.err)
	case x.err != nil:
		e.cause = Unreachable
		e.what += fmt.Sprintf(": asking %s: %s", x.host, plain(x.err))
		e.next = "Check the network and the proxy (HTTPS_PROXY)."
	default:
		e.what += fmt.Sprintf(": %s answers: %s", x.host, x.message)
		e.cause, e.next = c.advise(x)
	}
	return e
}

// advise classifies the answer of a token server and says what to do.
func (c *Credentials) advise(x *exchange) (Cause, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	says := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(x.message, w) {
				return true
			}
		}
		return false
	}
	switch {
	case x.status == http.StatusTooManyRequests || x.status >= 500:
		return Unavailable, "This passes by itself; apply again."
	case x.status >= 300 && x.status < 400:
		return NoCredentials, "It redirects, and a redirect is not followed with a secret. Check the addresses in the credentials."
	case says("has not been used in project", "SERVICE_DISABLED"):
		return APINotEnabled, "Enable it in the project of the credentials: gcloud services enable iamcredentials.googleapis.com"
	case x.status == http.StatusForbidden && c.actAs != "":
		member := c.found.account
		if member == "" {
			member = "the account in use"
		}
		chain := ""
		if n := len(c.cfg.Delegates); n > 0 {
			chain = fmt.Sprintf(" With delegates, each account needs it on the next: %s, %s, %s.", member, strings.Join(c.cfg.Delegates, ", "), c.actAs)
		}
		return Permission, "The permission iam.serviceAccounts.getAccessToken is missing: grant " + member + " the role roles/iam.serviceAccountTokenCreator on " + c.actAs + "." + chain
	case x.status == http.StatusForbidden:
		return Permission, "Grant the identity roles/iam.workloadIdentityUser (or roles/iam.serviceAccountTokenCreator) on the service account it acts as."
	case x.status == http.StatusNotFound && c.actAs != "":
		return Permission, "Check that the service account " + c.actAs + " exists and is written as its email address."
	case says("invalid_rapt", "reauth"):
		return Unauthenticated, "Your organisation wants you to log in again: gcloud auth application-default login"
	case says("Invalid JWT Signature", "account not found", "account has been disabled"):
		return Unauthenticated, "The key was deleted or disabled, or its service account was. Make a new key, or use other credentials."
	case says("must be a short-lived token", "iat"):
		return Unauthenticated, "The clock of this machine is probably wrong."
	case says("invalid_target", "audience"):
		return Unauthenticated, "The audience in the credentials does not name a workload identity provider that exists and is enabled. Make the file again: gcloud iam workload-identity-pools create-cred-config"
	case strings.HasPrefix(x.host, "sts."):
		return Unauthenticated, "The workload identity provider does not accept the identity: check its issuer, audiences and attribute condition, and that the identity has not expired."
	}
	return Unauthenticated, "The login has ended or was revoked. Log in again (gcloud auth application-default login), or use other credentials."
}

// account describes the credentials of a client, for errors about them; "" if
// they are not of this package.
func (c *Client) account() string {
	own, ok := c.tokens.(*Credentials)
	if !ok {
		return ""
	}
	text, err := own.Describe()
	if err != nil {
		return ""
	}
	return text
}

// blame adds the account to an error that is about what it may do.
func (c *Client) blame(err error) error {
	if cause := cause(err); cause != Permission && cause != Unauthenticated {
		return err
	}
	return amend(err, func(e *Error) { e.Account = c.account() })
}
