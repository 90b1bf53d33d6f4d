package fakegke

import (
	"fmt"
	"net/http"
	"strings"
)

// storagePrefix is where Cloud Storage's JSON API has its buckets.
const storagePrefix = "/storage/v1/b/"

// storageMethod is the one call of Cloud Storage that is faked.
const storageMethod = "TestBucketIamPermissions"

// missingBucket begins the names of buckets that do not exist; all others do,
// and everybody may do everything with them.
const missingBucket = "no-such-"

// serveStorage answers which permissions an account has on a bucket.
func (s *Server) serveStorage(w http.ResponseWriter, r *http.Request) {
	bucket, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, storagePrefix), "/")
	notFound := func(format string, args ...any) error {
		return &computeError{status: http.StatusNotFound, reason: "notFound", message: fmt.Sprintf(format, args...)}
	}
	if r.Method != http.MethodGet || rest != "iam/testPermissions" {
		writeCompute(w, nil, notFound("The requested URL %s was not found on this server.", r.URL.Path))
		return
	}
	out, err := s.meetFault(r, storageMethod, func() (any, error) {
		if strings.HasPrefix(bucket, missingBucket) {
			return nil, notFound("The specified bucket does not exist.")
		}
		return map[string]any{"kind": "storage#testIamPermissionsResponse", "permissions": r.URL.Query()["permissions"]}, nil
	})
	writeCompute(w, out, err)
}
