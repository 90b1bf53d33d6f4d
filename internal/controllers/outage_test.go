package controllers

import (
	"context"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A cluster that dies in mid-install is told after a minute of silence, with
// its endpoint, not after the whole timeout.
func TestInstallOnAClusterThatDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		cl := fakeClient(interceptor.Funcs{Create: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}})
		cl.Config = &rest.Config{Host: "https://203.0.113.7"}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		err := probe(ctx, cl, jobSet)
		if took := time.Since(began); err == nil || took < time.Minute || took > 65*time.Second {
			t.Fatalf("returned after %s with %v, want an error after a minute", took, err)
		}
		for _, part := range []string{"cluster c", "https://203.0.113.7 has not answered", "connection refused", "run the command again"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	})
}

// A restart of the API server is ridden out.
func TestRetryRidesOutARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := retry(t.Context(), fakeClient(interceptor.Funcs{}), func() error {
			if time.Since(began) < 50*time.Second {
				return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return nil
		})
		if err != nil || time.Since(began) > 53*time.Second {
			t.Errorf("returned after %s with %v", time.Since(began), err)
		}
	})
}
