package fakegke

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// storagePrefix is where Cloud Storage's JSON API has its buckets.
const storagePrefix = "/storage/v1/b/"

// storageMethod is the one call of Cloud Storage that is faked.
const storageMethod = "TestBucketIamPermissions"

// How the names of buckets begin that do not exist, and of those that nobody may
// write to. All others exist, and everybody may do everything with them.
const (
	missingBucket  = "no-such-"
	readOnlyBucket = "read-only-"
)

// reading are the permissions on buckets that nobody may write to.
var reading = []string{"storage.buckets.get", "storage.objects.get", "storage.objects.list"}

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
		asked := r.URL.Query()["permissions"]
		if strings.HasPrefix(bucket, readOnlyBucket) {
			asked = slices.DeleteFunc(asked, func(p string) bool { return !slices.Contains(reading, p) })
		}
		return map[string]any{"kind": "storage#testIamPermissionsResponse", "permissions": asked}, nil
	})
	writeCompute(w, out, err)
}
