package gke

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/googleapis/gax-go/v2/apierror"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
)

// Cause is why GKE did not do what it was asked. Each is an error, so that
// errors.Is(err, gke.NotFound) works; errors.As with *Error gives the rest.
type Cause string

// The causes that somebody branches on.
const (
	Other           Cause = ""
	NotFound        Cause = "not found"
	AlreadyExists   Cause = "already exists"
	Invalid         Cause = "invalid request"
	Stockout        Cause = "no capacity in the zone"
	Reservation     Cause = "reservation without enough capacity"
	NoReservation   Cause = "reservation not usable"
	Quota           Cause = "quota exceeded"
	Policy          Cause = "forbidden by organization policy"
	NoAddresses     Cause = "no free IP addresses"
	NotOffered      Cause = "machine type not offered in the zone"
	ServiceAccount  Cause = "node service account not usable"
	Key             Cause = "encryption key not usable"
	Stale           Cause = "changed in the meantime"
	Permission      Cause = "permission denied"
	Unauthenticated Cause = "credentials refused"
	NoCredentials   Cause = "no credentials"
	APINotEnabled   Cause = "API not enabled"
	Incompatible    Cause = "another operation is in the way" // passes by itself
	TooManyOps      Cause = "too many concurrent operations"  // passes by itself
	Throttled       Cause = "too many requests"               // passes by itself
	Unavailable     Cause = "service unavailable"
	Unreachable     Cause = "no answer"
	NotSecure       Cause = "no secure connection"
	Interrupted     Cause = "interrupted"
	TimedOut        Cause = "timed out"
)

func (c Cause) Error() string { return string(c) }

// Error is a call or an operation that did not succeed: what was attempted, on
// what, where, and what GKE answered.
type Error struct {
	Verb    string // "creating node pool", ...
	Object  string // resource path or parent
	Zone    string // zone or region, or ""
	Cause   Cause
	Message string // GKE's own words, or ours where it did not answer
	Facts   Facts  // what those words say
	Account string // the credentials in use, when the error is about them; never their content
	Err     error  // what the client library returned; nil for a failed operation
	// State is what there is now, and what that means for the next apply, where a
	// larger change stopped in its middle.
	State string

	answered bool // Message is GKE's
}

// Error says it all: what was attempted, why it failed in our words, in GKE's,
// and what to do next.
func (e *Error) Error() string {
	msg := e.Attempt()
	if brief := e.Brief(); brief != "" {
		msg += ": " + brief
	}
	if words := e.Words(); words != "" {
		msg += words
	}
	if next := e.Next(); next != "" {
		msg += "\n" + next
	}
	if e.State != "" {
		msg += "\n" + e.State
	}
	return msg
}

// Attempt is what was attempted, on which object, and where.
func (e *Error) Attempt() string {
	msg := e.Verb + " " + e.Object
	if e.Zone != "" {
		msg += " in " + e.Zone
	}
	return msg
}

// Words are GKE's own, on a line of their own; or ours, behind a colon.
func (e *Error) Words() string {
	switch {
	case e.Message == "":
		return ""
	case e.answered:
		return "\nGKE answered: " + e.Message
	}
	return ": " + e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, gke.NotFound) work.
func (e *Error) Is(target error) bool {
	c, ok := target.(Cause)
	return ok && e.Cause == c
}

// Refused tells whether the request itself is at fault: the same request will
// be refused again until somebody changes something.
func (e *Error) Refused() bool {
	switch e.Cause {
	case Invalid, Permission, Unauthenticated, NoCredentials, APINotEnabled, AlreadyExists, NotFound,
		NoReservation, Policy, NotOffered, ServiceAccount, Key, Stale:
		return true
	}
	return false
}

// wrap turns whatever a call returned into an *Error; nil stays nil.
func wrap(ctx context.Context, verb, object, zone string, err error) error {
	if err == nil {
		return nil
	}
	var done *Error
	if errors.As(err, &done) {
		return err
	}
	e := &Error{Verb: verb, Object: object, Zone: zone, Err: err}
	var api *apierror.APIError
	var answer *googleapi.Error
	var retrieve *oauth2.RetrieveError
	var missing *credentialsError
	var token *tokenError
	switch {
	case errors.As(err, &missing):
		e.Cause, e.Message = NoCredentials, missing.Error()
	case errors.As(err, &token):
		e.Cause, e.Message = token.cause, token.what
	case errors.As(err, &retrieve):
		e.Cause, e.Message = Unauthenticated, retrieve.ErrorDescription
		if e.Message == "" {
			e.Message = retrieve.ErrorCode
		}
	case errors.As(err, &api):
		d := api.Details()
		if errors.As(err, &answer) {
			e.answer(codeOfAnswer(answer), answer.Message, d)
		} else if st := api.GRPCStatus(); st != nil {
			e.answer(st.Code(), st.Message(), d)
		}
	case errors.As(err, &answer):
		e.answer(codeOfAnswer(answer), answer.Message, noDetails)
		if e.Message == "" {
			e.Message = fmt.Sprintf("HTTP status %d", answer.Code)
		}
	case ctx.Err() != nil:
		e.Cause, e.Message = causeOfContext(ctx), ""
	case notSecure(err):
		e.Cause, e.Message = NotSecure, plain(err)
	case unreachable(err):
		e.Cause, e.Message = Unreachable, plain(err)
	default:
		e.Message = plain(err)
	}
	return e
}

// causeOfContext tells an interrupt (Ctrl-C) from a timeout.
func causeOfContext(ctx context.Context) Cause {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return TimedOut
	}
	return Interrupted
}

// plain strips the URL, which says nothing new and can be long.
func plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}

// notSecure tells whether the endpoint speaks no TLS, or has a certificate that
// is not trusted or not its own.
func notSecure(err error) bool {
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record) || errors.As(err, &certificate)
}

func unreachable(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded)
}

// operationError is the *Error of an operation that ended without success.
func operationError(verb, object, zone string, grpcCode int32, message string) *Error {
	e := &Error{Verb: verb, Object: object, Zone: zone}
	e.answer(codes.Code(grpcCode), message, noDetails)
	return e
}

// answer takes in what GKE answered.
func (e *Error) answer(c codes.Code, message string, d apierror.ErrDetails) {
	e.Cause, e.Message, e.answered = causeOf(c, message, d.ErrorInfo.GetReason()), message, true
	e.Facts = factsOf(e.Cause, message, d)
}
