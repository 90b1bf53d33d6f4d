package gke

import (
	"encoding/json"
	"regexp"
	"strings"

	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
)

// signs are the words by which a cause is known, in order: one code stands for
// much (RESOURCE_EXHAUSTED for a stockout, a quota, a reservation and a busy
// cluster; PERMISSION_DENIED also for a quota, a missing region and an API that
// is off; NOT_FOUND also for a reservation and a service account). Where each
// was seen is written in the tests. Matching ignores case: GKE writes
// "Insufficient regional quota" alone and "insufficient regional quota" in a list.
var signs = []struct {
	cause Cause
	words *regexp.Regexp
}{
	{APINotEnabled, anyOf(`has not been used in project`, `API is not enabled for this project`, `SERVICE_DISABLED`)},
	{NoReservation, anyOf(`reservation ".*?" not found`, `Invalid value for field 'resource\.reservationAffinity'`, `reservation .* (is not shared|does not exist|cannot be consumed)`)},
	{Reservation, anyOf(`Reservation does not have enough resources`, `Insufficient reserved capacity`)},
	{Key, anyOf(`Cloud KMS error`, `cloudkms\.`, `CLOUD_KMS_KEY_`)},
	{Policy, anyOf("Constraint [`']?constraints/", `constraints/\S+ violated`, `orgpolicy`)},
	{NoAddresses, anyOf(`IP_SPACE_EXHAUSTED`, `IP space of .* is exhausted`, `does not have available private IP space`, `Insufficient free IP addresses`)},
	{Quota, anyOf(`GCE_QUOTA_EXCEEDED`, `QUOTA_EXCEEDED`, `Insufficient (regional |project |zonal )?quota to satisfy`, `Quota '[^']+' exceeded`)},
	{NotOffered, anyOf(`Machine type with name .* does not exist in zone`)},
	{Stockout, anyOf(`GCE_STOCKOUT`, `ZONE_RESOURCE_POOL_EXHAUSTED`, `does not have enough resources available`, `resource pool exhausted`, `is currently unavailable in the \S+ zone`)},
	{ServiceAccount, anyOf(`Service account ".*" does not exist`, `Gaia id not found`, `GKE_SERVICE_ACCOUNT_DELETED`, `not fully initialized with the default service accounts`,
		`NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS`)},
	{Permission, anyOf(`does not have access to service account`, `Required '?"?[a-zA-Z.]+'?"? permission`)},
	{TooManyOps, anyOf(`concurrent operations quota`, `Too many operations`)},
	{Incompatible, anyOf(`incompatible operation`, `is currently (creating|deleting|updating|upgrading|resizing)`, `Please wait and try again once it is done`)},
	{Stale, anyOf(`\betag\b`, `fingerprint mismatch`, `resource version mismatch`)},
}

func anyOf(patterns ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.Join(patterns, "|"))
}

// reasons of google.rpc.ErrorInfo that say more than the code.
var reasons = map[string]Cause{
	"SERVICE_DISABLED": APINotEnabled, "RATE_LIMIT_EXCEEDED": Throttled, "RESOURCE_QUOTA_EXCEEDED": Quota, "IAM_PERMISSION_DENIED": Permission,
}

// causeOf classifies an answer: by its reason, by its words, and at last by its
// code.
func causeOf(c codes.Code, message, reason string) Cause {
	if cause, ok := reasons[reason]; ok && cause != Permission {
		return cause
	}
	for _, s := range signs {
		if s.words.MatchString(message) {
			return s.cause
		}
	}
	switch c {
	case codes.NotFound:
		return NotFound
	case codes.AlreadyExists:
		return AlreadyExists
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return Invalid
	case codes.PermissionDenied:
		return Permission
	case codes.Unauthenticated:
		return Unauthenticated
	case codes.ResourceExhausted:
		return Throttled
	case codes.Unavailable, codes.Internal, codes.Aborted:
		return Unavailable
	case codes.DeadlineExceeded:
		return Unreachable
	}
	return Other
}

// codeOfAnswer is the code that the body of a REST answer names, or the one
// that google.rpc.Code documents for the HTTP status: 409 is ALREADY_EXISTS and
// ABORTED, 400 is INVALID_ARGUMENT and FAILED_PRECONDITION.
func codeOfAnswer(e *googleapi.Error) codes.Code {
	var body struct {
		Error struct {
			Status json.RawMessage `json:"status"`
		} `json:"error"`
	}
	var c codes.Code
	if json.Unmarshal([]byte(e.Body), &body) == nil && len(body.Error.Status) > 0 && c.UnmarshalJSON(body.Error.Status) == nil && c != codes.OK {
		return c
	}
	return codeOfHTTP(e.Code)
}

func codeOfHTTP(status int) codes.Code {
	switch status {
	case 400:
		return codes.InvalidArgument
	case 401:
		return codes.Unauthenticated
	case 403:
		return codes.PermissionDenied
	case 404:
		return codes.NotFound
	case 409:
		return codes.AlreadyExists
	case 429:
		return codes.ResourceExhausted
	case 500:
		return codes.Internal
	case 502, 503:
		return codes.Unavailable
	case 504:
		return codes.DeadlineExceeded
	}
	return codes.Unknown
}
