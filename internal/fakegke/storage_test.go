package fakegke_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

func TestBucketPermissions(t *testing.T) {
	s, err := fakegke.New(fakegke.WithToken("secret"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, token string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		body, _ := io.ReadAll(w.Body)
		return w.Code, string(body)
	}
	for _, c := range []struct {
		method, path, token string
		code                int
		says                string
	}{
		{http.MethodGet, "/storage/v1/b/runs/iam/testPermissions?permissions=storage.objects.create", "secret", http.StatusOK, `"storage.objects.create"`},
		{http.MethodGet, "/storage/v1/b/no-such-bucket/iam/testPermissions?permissions=storage.objects.create", "secret", http.StatusNotFound, "bucket does not exist"},
		{http.MethodGet, "/storage/v1/b/read-only-data/iam/testPermissions?permissions=storage.objects.create&permissions=storage.objects.get", "secret", http.StatusOK, `"permissions":["storage.objects.get"]`},
		{http.MethodGet, "/storage/v1/b/runs/iam/testPermissions", "other", http.StatusUnauthorized, ""},
		{http.MethodGet, "/storage/v1/b/runs", "secret", http.StatusNotFound, "not found on this server"},
		{http.MethodPost, "/storage/v1/b/runs/iam/testPermissions", "secret", http.StatusNotFound, ""},
	} {
		if code, body := ask(c.method, c.path, c.token); code != c.code || !strings.Contains(body, c.says) {
			t.Errorf("%s %s: %d %s", c.method, c.path, code, body)
		}
	}
}
