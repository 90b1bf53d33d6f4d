package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Error is a call that a cluster refused or never answered. It says what was
// attempted, on which object of which cluster, and what came back.
type Error struct {
	Verb    string // "applying", "reading", ...
	Kind    string
	Key     string // namespace/name or name
	Cluster string
	Err     error
}

func (e *Error) Error() string {
	msg := fmt.Sprintf("%s %s %s on cluster %s: %v", e.Verb, e.Kind, e.Key, e.Cluster, e.Err)
	if hint := e.Hint(); hint != "" {
		msg += "\n" + hint
	}
	return msg
}

func (e *Error) Unwrap() error { return e.Err }

// Hint is what to do next, or "".
func (e *Error) Hint() string {
	var silent *UnreachableError
	switch {
	case errors.As(e.Err, &silent):
		return "" // it says so itself
	case apierrors.IsConflict(e.Err):
		var managers []string
		var status apierrors.APIStatus
		if errors.As(e.Err, &status) && status.Status().Details != nil {
			for _, c := range status.Status().Details.Causes {
				if c.Type == metav1.CauseTypeFieldManagerConflict {
					managers = append(managers, c.Field+" ("+c.Message+")")
				}
			}
		}
		if len(managers) == 0 {
			return "Another client changed the object at the same time; run the command again."
		}
		return "These fields belong to somebody else: " + strings.Join(managers, ", ") + ". Remove them there, or leave them out here."
	case WebhookNotServing(e.Err):
		return webhookHint(e.Err)
	case apierrors.IsUnauthorized(e.Err):
		return "The cluster does not accept these credentials. Check which account is in use and that it belongs to the cluster's project."
	case terminating(e.Err):
		return "Somebody is deleting what it is in. Wait until that is gone and make it again first, then apply again."
	case exceeded(e.Err):
		return "A ResourceQuota of the namespace allows no more. See kubectl describe resourcequota -A."
	case apierrors.IsForbidden(e.Err):
		return "The account may not do this. It needs roles/container.developer on the project, or a Kubernetes role that allows the verb."
	case Untrusted(e.Err):
		return "What answers is not this cluster: its certificate is signed by somebody else. The cluster may have been created again, or a proxy intercepts the connection."
	case Unreachable(e.Err):
		return "The cluster's API server does not answer. Check that the cluster is running, and that this machine may reach its endpoint (authorized networks, private endpoint, proxy)."
	}
	return ""
}

// terminating tells whether something cannot be made because its namespace, or
// the definition of its kind, is being deleted.
func terminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "create not allowed while custom resource definition is terminating") ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "because it is being terminated")
}

// exceeded tells whether a ResourceQuota forbids it.
func exceeded(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota:")
}

// webhookService is where the API server sends a webhook's calls, as its message
// names it.
var webhookService = regexp.MustCompile(`https://([a-z0-9-]+)\.([a-z0-9-]+)\.svc[:/]`)

// webhookHint names the controller that is down by its Service and namespace.
func webhookHint(err error) string {
	m := webhookService.FindStringSubmatch(err.Error())
	if m == nil {
		return "The controller that checks such objects is down or starting."
	}
	return fmt.Sprintf("The controller behind Service %s in namespace %s is down or starting; it checks such objects. "+
		"See why with kubectl get pods -n %s; when its pods are Ready, apply again.", m[1], m[2], m[2])
}

// Unreachable tells whether err means that no API server answered at all.
func Unreachable(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	var u *url.Error
	return errors.As(err, &op) || errors.As(err, &dns) || (errors.As(err, &u) && u.Timeout())
}

// Transient tells whether the same call may pass a moment later: an API server
// or webhook that is starting, overloaded, or was cut off. A cluster that was
// given up (UnreachableError) is not waited for again.
func Transient(err error) bool {
	var silent *UnreachableError
	if errors.As(err, &silent) {
		return false
	}
	if apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || Unreachable(err) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return true
	}
	return WebhookNotServing(err)
}

// WebhookNotServing recognises what the API server answers while a webhook's
// pods are not up yet.
func WebhookNotServing(err error) bool {
	return err != nil && apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}

// lastAnswer is the end of a wait during which the server had trouble: both
// matter to whoever reads it.
type lastAnswer struct{ cause, last error }

func (e *lastAnswer) Error() string {
	return fmt.Sprintf("%v; the last answer was: %v", e.cause, e.last)
}
func (e *lastAnswer) Unwrap() []error { return []error{e.cause, e.last} }

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (c *Client) wrap(verb string, obj client.Object, err error) error {
	e := &Error{Verb: verb, Cluster: c.Name, Key: obj.GetName(), Err: err}
	if ns := obj.GetNamespace(); ns != "" {
		e.Key = ns + "/" + e.Key
	}
	if gvk, gvkErr := apiutil.GVKForObject(obj, Scheme); gvkErr == nil {
		e.Kind = gvk.Kind
	}
	return e
}

// Untrusted tells whether something answered that is not the cluster: its
// certificate is not signed by the cluster's CA.
func Untrusted(err error) bool {
	var verify *tls.CertificateVerificationError
	var host x509.HostnameError
	var authority x509.UnknownAuthorityError
	return errors.As(err, &verify) || errors.As(err, &host) || errors.As(err, &authority)
}
