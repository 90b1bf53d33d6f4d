package faults

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// codeNames are Google's names of what an HTTP status means (google.rpc.Code).
var codeNames = map[int]struct {
	name string
	code codes.Code
}{
	http.StatusBadRequest:          {"INVALID_ARGUMENT", codes.InvalidArgument},
	http.StatusUnauthorized:        {"UNAUTHENTICATED", codes.Unauthenticated},
	http.StatusForbidden:           {"PERMISSION_DENIED", codes.PermissionDenied},
	http.StatusNotFound:            {"NOT_FOUND", codes.NotFound},
	http.StatusConflict:            {"ALREADY_EXISTS", codes.AlreadyExists},
	http.StatusTooManyRequests:     {"RESOURCE_EXHAUSTED", codes.ResourceExhausted},
	http.StatusInternalServerError: {"INTERNAL", codes.Internal},
	http.StatusNotImplemented:      {"UNIMPLEMENTED", codes.Unimplemented},
	http.StatusServiceUnavailable:  {"UNAVAILABLE", codes.Unavailable},
	http.StatusGatewayTimeout:      {"DEADLINE_EXCEEDED", codes.DeadlineExceeded},
}

// texts are what Google's front end says.
var texts = map[int]string{
	http.StatusTooManyRequests:     "Quota exceeded for quota metric 'API requests' and limit 'API requests per minute' of service 'container.googleapis.com'.",
	http.StatusServiceUnavailable:  "The service is currently unavailable.",
	http.StatusInternalServerError: "Internal error encountered.",
}

func (r Rule) text() string {
	if r.Message != "" {
		return r.Message
	}
	if t := texts[r.Code]; t != "" {
		return t
	}
	return http.StatusText(r.Code)
}

// retryAfter is in whole seconds, as the header has it.
func (r Rule) retryAfter(w http.ResponseWriter) {
	if r.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(time.Duration(r.RetryAfter).Seconds()))))
	}
}

func refuseGoogle(w http.ResponseWriter, r *http.Request, rule Rule) {
	known := codeNames[rule.Code]
	if known.name == "" {
		known.name, known.code = "UNKNOWN", codes.Unknown
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		h := w.Header() // an answer of trailers only
		h.Set("Content-Type", "application/grpc")
		h.Set("Grpc-Status", strconv.Itoa(int(known.code)))
		h.Set("Grpc-Message", url.PathEscape(rule.text()))
		w.WriteHeader(http.StatusOK)
		return
	}
	body := map[string]any{"code": rule.Code, "message": rule.text(), "status": known.name}
	if strings.HasPrefix(r.URL.Path, computePrefix) {
		reason := map[int]string{http.StatusTooManyRequests: "rateLimitExceeded", http.StatusServiceUnavailable: "backendError"}[rule.Code]
		body["errors"] = []map[string]string{{"message": rule.text(), "domain": "global", "reason": reason}}
	}
	rule.retryAfter(w)
	writeJSON(w, rule.Code, map[string]any{"error": body})
}

func refuseKube(w http.ResponseWriter, _ *http.Request, rule Rule) {
	reasons := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
		http.StatusConflict: metav1.StatusReasonConflict, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
		http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
		http.StatusGatewayTimeout: metav1.StatusReasonTimeout, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	}
	message := rule.Message
	if message == "" {
		message = fmt.Sprintf("the server answered %d (%s)", rule.Code, http.StatusText(rule.Code))
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(rule.Code), Reason: reasons[rule.Code], Message: message,
	}
	if rule.RetryAfter > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(math.Ceil(time.Duration(rule.RetryAfter).Seconds()))}
	}
	rule.retryAfter(w)
	writeJSON(w, rule.Code, status)
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the caller is gone: nobody to tell
}
