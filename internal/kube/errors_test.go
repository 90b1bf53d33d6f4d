package kube

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var pods = schema.GroupResource{Resource: "pods"}

func refused() error {
	return &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
}

func webhookDown() error {
	return apierrors.NewInternalError(errors.New(`failed calling webhook "mjobset.kb.io": no endpoints available for service "jobset-webhook-service"`))
}

// Each answer of a cluster is sorted by what a caller does next: wait, report
// an unreachable cluster, or give up.
func TestKindsOfErrors(t *testing.T) {
	type verdict struct{ Unreachable, Transient, Untrusted, WebhookNotServing bool }
	tests := map[string]struct {
		err  error
		want verdict
	}{
		"no error":              {nil, verdict{}},
		"connection refused":    {refused(), verdict{Unreachable: true, Transient: true}},
		"no such host":          {&net.DNSError{Name: "nowhere.invalid", IsNotFound: true}, verdict{Unreachable: true, Transient: true}},
		"cut in mid answer":     {fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), verdict{Transient: true}},
		"throttled":             {apierrors.NewTooManyRequests("slow down", 1), verdict{Transient: true}},
		"etcd is slow":          {apierrors.NewServerTimeout(pods, "create", 1), verdict{Transient: true}},
		"starting":              {apierrors.NewServiceUnavailable("starting"), verdict{Transient: true}},
		"webhook down":          {webhookDown(), verdict{Transient: true, WebhookNotServing: true}},
		"another internal":      {apierrors.NewInternalError(errors.New("etcd lost its disk")), verdict{}},
		"not found":             {apierrors.NewNotFound(pods, "p"), verdict{}},
		"forbidden":             {apierrors.NewForbidden(pods, "p", errors.New("no")), verdict{}},
		"invalid":               {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), verdict{}},
		"another cluster's key": {&url.Error{Op: "Get", URL: "https://h", Err: x509.UnknownAuthorityError{}}, verdict{Untrusted: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := verdict{Unreachable(tt.err), Transient(tt.err), Untrusted(tt.err), WebhookNotServing(tt.err)}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An error says what was attempted, on which object of which cluster, what was
// answered, and what to do next.
func TestErrorText(t *testing.T) {
	conflict := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "Apply failed with 1 conflict",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.replicas", Message: `conflict with "kubectl-edit"`,
		}}},
	}}
	tests := map[string]struct {
		err  error
		want []string
	}{
		"conflict": {conflict, []string{"Apply failed with 1 conflict", ".spec.replicas", "kubectl-edit", "Remove them there"}},
		"changed":  {apierrors.NewConflict(pods, "p", errors.New("changed")), []string{"run the command again"}},
		"webhook down": {
			apierrors.NewInternalError(errors.New(`failed calling webhook "mclusterqueue.kb.io": failed to call webhook: Post "https://kueue-webhook-service.kueue-system.svc:443/mutate?timeout=10s": no endpoints available for service "kueue-webhook-service"`)),
			[]string{"Service kueue-webhook-service in namespace kueue-system is down", "kubectl get pods -n kueue-system", "apply again"},
		},
		"webhook elsewhere": {webhookDown(), []string{"is down or starting"}},
		"unauthorized":      {apierrors.NewUnauthorized("who are you"), []string{"does not accept these credentials"}},
		"forbidden":         {apierrors.NewForbidden(pods, "p", errors.New("no verb")), []string{"roles/container.developer"}},
		"going namespace":   {apierrors.NewForbidden(pods, "p", errors.New("unable to create new content in namespace ns because it is being terminated")), []string{"deleting what it is in"}},
		"going definition":  {apierrors.NewForbidden(pods, "p", errors.New("create not allowed while custom resource definition is terminating")), []string{"deleting what it is in"}},
		"quota":             {apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: q, requested: pods=1")), []string{"kubectl describe resourcequota"}},
		"unreachable":       {refused(), []string{"connection refused", "does not answer", "authorized networks"}},
		"untrusted":         {x509.UnknownAuthorityError{}, []string{"certificate", "created again"}},
		"not found":         {apierrors.NewNotFound(pods, "p"), nil},
	}
	c := &Client{Name: "projects/p/locations/l/clusters/c"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := c.wrap("applying", pod, tt.err)
			text := err.Error()
			for _, part := range append(tt.want, "applying Pod ns/p on cluster projects/p/locations/l/clusters/c: ") {
				if !strings.Contains(text, part) {
					t.Errorf("%q does not say %q", text, part)
				}
			}
			var e *Error
			if !errors.As(fmt.Errorf("above: %w", err), &e) || !errors.Is(err, tt.err) {
				t.Errorf("the error does not unwrap to *Error and to its cause")
			}
		})
	}
}

// A wait that ran out says both why it ended and what the server last said.
func TestLastAnswerKeepsBoth(t *testing.T) {
	err := error(&lastAnswer{cause: context.DeadlineExceeded, last: webhookDown()})
	if !errors.Is(err, context.DeadlineExceeded) || !WebhookNotServing(err) {
		t.Errorf("%v hides one of its causes", err)
	}
	if !strings.Contains(err.Error(), "no endpoints available") {
		t.Errorf("%v does not tell the last answer", err)
	}
}
