package fakegke

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
)

// apiError is an error as GKE returns it: a code, a text, and the id of the
// request among its details.
func apiError(code codes.Code, msg string, details ...protoadapt.MessageV1) error {
	st := status.New(code, msg)
	var id [8]byte
	_, _ = rand.Read(id[:])
	details = append(details, &errdetails.RequestInfo{RequestId: "0x" + hex.EncodeToString(id[:])})
	if with, err := st.WithDetails(details...); err == nil {
		st = with
	}
	return st.Err()
}

func invalid(format string, args ...any) error {
	return apiError(codes.InvalidArgument, fmt.Sprintf(format, args...))
}

func precondition(format string, args ...any) error {
	return apiError(codes.FailedPrecondition, fmt.Sprintf(format, args...))
}

func denied(format string, args ...any) error {
	return apiError(codes.PermissionDenied, fmt.Sprintf(format, args...))
}

func internal(format string, args ...any) error {
	return apiError(codes.Internal, fmt.Sprintf(format, args...))
}

func notFound(path string) error {
	return apiError(codes.NotFound, "Not found: "+shown(path)+".")
}

func alreadyExists(path string) error {
	return apiError(codes.AlreadyExists, "Already exists: "+shown(path)+".")
}

// quotaExceeded is what a cluster with too many operations in flight answers.
func quotaExceeded(cluster string, quota int) error {
	return apiError(codes.ResourceExhausted, fmt.Sprintf("Too many operations: cluster %q hits the concurrent operations quota %d, please try again later.", cluster, quota))
}

// unauthenticated is Google's front end speaking, not GKE.
func unauthenticated(header string) error {
	msg, reason := "Request had invalid authentication credentials. ", "ACCESS_TOKEN_TYPE_UNSUPPORTED"
	if header == "" {
		msg, reason = "Request is missing required authentication credential. ", "CREDENTIALS_MISSING"
	}
	msg += "Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
	return apiError(codes.Unauthenticated, msg, &errdetails.ErrorInfo{
		Reason: reason, Domain: "googleapis.com", Metadata: map[string]string{"service": "container.googleapis.com"},
	})
}
