package kube

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// Any other server is not taken for an empty cluster.
func TestNoKubernetesServer(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"404 Not Found":                       http.NotFound,
		"what is no JSON, such as a web page": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>Hello</html>") },
	} {
		s := httptest.NewServer(answer)
		defer s.Close()
		c, err := ForConfig("c", &rest.Config{Host: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		other := new(NotServerError)
		if err := c.List(t.Context(), &corev1.PodList{}); !errors.As(err, &other) || *other != (NotServerError{Server: s.URL, Said: name}) || apierrors.IsNotFound(err) {
			t.Errorf("list: %v", err)
		}
		ns := &corev1.Namespace{}
		ns.Name = "research"
		if found, err := c.Fetch(t.Context(), ns); found || !errors.As(err, &other) {
			t.Errorf("fetch: %t, %v", found, err)
		}
	}
}
