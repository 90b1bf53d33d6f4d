package compute

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// InUse is the cause of a deletion that Compute Engine refuses because another
// resource needs the object. The other causes are those of internal/gke.
const InUse gke.Cause = "in use by another resource"

// Error is a call or an operation that did not succeed: what was attempted, on
// what, and what Compute Engine answered. errors.Is(err, gke.NotFound) works.
type Error struct {
	Verb    string // "creating workload policy", ...
	Object  string // projects/P/regions/R/resourcePolicies/NAME
	Project string
	Cause   gke.Cause
	Message string // Compute Engine's own words
	Err     error
}

func (e *Error) Error() string {
	msg := e.Verb + " " + e.Object
	if e.Cause != gke.Other {
		msg += ": " + string(e.Cause)
	}
	if e.Message != "" {
		msg += ": " + e.Message
	}
	if next := e.next(); next != "" {
		msg += "\n" + next
	}
	return msg
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, gke.NotFound) work.
func (e *Error) Is(target error) bool {
	c, ok := target.(gke.Cause)
	return ok && e.Cause == c
}

// next says what to do, or "".
func (e *Error) next() string {
	const byHand = "or make the policy yourself and name it in placement_policy"
	if _, _, next, ok := gke.TokenFailure(e.Err); ok {
		return next
	}
	switch e.Cause {
	case gke.Permission:
		return "The account in use needs roles/compute.instanceAdmin.v1 on project " + e.Project + " (permissions compute.resourcePolicies.create, get and delete), " + byHand + "."
	case gke.APINotEnabled:
		return "Enable it: gcloud services enable compute.googleapis.com --project " + e.Project
	case gke.Quota:
		return "Ask for a larger quota of resource policies for project " + e.Project + " (console: IAM & Admin, Quotas), " + byHand + "."
	case gke.Unauthenticated:
		return "Google does not accept the token. Log in again (gcloud auth application-default login), or renew GOOGLE_OAUTH_ACCESS_TOKEN or the key file in use."
	case gke.NoCredentials:
		return "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_OAUTH_ACCESS_TOKEN, or the provider's credentials or access_token."
	case gke.Throttled, gke.Unavailable:
		return "This passes by itself; apply again later."
	case gke.Unreachable:
		return "Check the network, the proxy (HTTPS_PROXY) and compute_endpoint (TPU_COMPUTE_ENDPOINT)."
	case gke.TimedOut:
		return "Apply again to go on waiting, or raise the timeout."
	}
	return ""
}

// passes tells whether asking again may help.
func (e *Error) passes() bool {
	return e.Cause == gke.Throttled || e.Cause == gke.Unavailable || e.Cause == gke.Unreachable
}

// target says what a call is about, for its errors.
type target struct {
	verb string
	p    Policy
}

func (t target) path() string { return t.p.path() }

func (t target) failed(cause gke.Cause, message string, err error) *Error {
	return &Error{Verb: t.verb, Object: t.path(), Project: t.p.Project, Cause: cause, Message: message, Err: err}
}

// ended is the error of a call whose context ended, by an interrupt (Ctrl-C)
// or a timeout.
func (t target) ended(ctx context.Context, message string, err error) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return t.failed(gke.TimedOut, message, err)
	}
	return t.failed(gke.Interrupted, message, err)
}

// wrap turns whatever a request returned into an *Error.
func wrap(t target, err error) *Error {
	var done *Error
	var api *googleapi.Error
	var retrieve *oauth2.RetrieveError
	var u *url.Error
	cause, message, _, noToken := gke.TokenFailure(err)
	switch {
	case errors.As(err, &done):
		return done
	case noToken:
		return t.failed(cause, message, err)
	case errors.As(err, &api):
		return t.failed(causeOf(api), words(api), err)
	case errors.As(err, &retrieve):
		return t.failed(gke.Unauthenticated, retrieve.ErrorDescription, err)
	case gke.CredentialsMissing(err):
		return t.failed(gke.NoCredentials, plain(err), err)
	case errors.As(err, &u): // no answer came
		return t.failed(gke.Unreachable, plain(err), err)
	}
	return t.failed(gke.Other, err.Error(), err)
}

func words(api *googleapi.Error) string {
	if api.Message == "" {
		return http.StatusText(api.Code)
	}
	return api.Message
}

// plain strips the URL, which says nothing new.
func plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}

// causeOf classifies by Compute Engine's reason first: one status serves for
// several of them.
func causeOf(api *googleapi.Error) gke.Cause {
	for _, item := range api.Errors {
		if c, ok := causes[item.Reason]; ok {
			return c
		}
	}
	switch {
	case strings.Contains(api.Message, "has not been used in project"):
		return gke.APINotEnabled
	case api.Code == http.StatusBadRequest:
		return gke.Invalid
	case api.Code == http.StatusUnauthorized:
		return gke.Unauthenticated
	case api.Code == http.StatusForbidden:
		return gke.Permission
	case api.Code == http.StatusNotFound:
		return gke.NotFound
	case api.Code == http.StatusConflict:
		return gke.AlreadyExists
	case api.Code == http.StatusTooManyRequests:
		return gke.Throttled
	case api.Code >= http.StatusInternalServerError:
		return gke.Unavailable
	}
	return gke.Other
}

// causes are Compute Engine's reasons, of refused requests (first spelling)
// and of operations that failed (second).
var causes = map[string]gke.Cause{
	"accessNotConfigured":                    gke.APINotEnabled,
	"resourceInUseByAnotherResource":         InUse,
	"RESOURCE_IN_USE_BY_ANOTHER_RESOURCE":    InUse,
	"quotaExceeded":                          gke.Quota,
	"QUOTA_EXCEEDED":                         gke.Quota,
	"rateLimitExceeded":                      gke.Throttled,
	"userRateLimitExceeded":                  gke.Throttled,
	"alreadyExists":                          gke.AlreadyExists,
	"RESOURCE_ALREADY_EXISTS":                gke.AlreadyExists,
	"notFound":                               gke.NotFound,
	"RESOURCE_NOT_FOUND":                     gke.NotFound,
	"PERMISSIONS_ERROR":                      gke.Permission,
	"resourceNotReady":                       gke.Unavailable,
	"RESOURCE_OPERATION_RATE_LIMIT_EXCEEDED": gke.Throttled,
}
