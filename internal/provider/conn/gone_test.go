package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"golang.org/x/oauth2"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// A deleted cluster takes everything on it along; one that only does not
// answer keeps it.
func TestGone(t *testing.T) {
	const path = "projects/p/locations/l/clusters/c"
	refused := fmt.Errorf("reading: %w", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	exists := func(status string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"name":"c","status":"`+status+`"}`)
		}
	}
	missing := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"code":404,"message":"Not found: projects/p/locations/l/clusters/c.","status":"NOT_FOUND"}}`)
	}
	tests := map[string]struct {
		api  http.HandlerFunc
		err  error
		want bool
	}{
		"no error":                          {missing, nil, false},
		"GKE does not know the cluster":     {missing, &gke.Error{Cause: gke.NotFound}, true},
		"no answer, and GKE deleted it":     {missing, refused, true},
		"no answer, and GKE is deleting it": {exists("STOPPING"), refused, true},
		"no answer, but GKE has it":         {exists("RUNNING"), refused, false},
		"another error":                     {missing, errors.New("a bug"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tt.api)
			defer server.Close()
			client, err := gke.New(gke.Config{Endpoint: server.URL, Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "t"})})
			if err != nil {
				t.Fatal(err)
			}
			d := &Data{GKE: client}
			if got := d.Gone(t.Context(), path, tt.err); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
