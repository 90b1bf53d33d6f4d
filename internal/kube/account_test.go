package kube

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The API server says whom it takes us for; one that does not know the question
// is an error that says what was asked.
func TestAccount(t *testing.T) {
	status := http.StatusCreated
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api":
			_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case r.URL.Path == "/apis":
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"authentication.k8s.io","versions":[{"groupVersion":"authentication.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"authentication.k8s.io/v1","version":"v1"}}]}`)
		case r.URL.Path == "/apis/authentication.k8s.io/v1":
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"authentication.k8s.io/v1","resources":[{"name":"selfsubjectreviews","kind":"SelfSubjectReview","namespaced":false,"verbs":["create"]}]}`)
		case r.Method == http.MethodPost && r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews" && status == http.StatusCreated:
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"ada@example.com"}}}`)
		default:
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
		}
	}))
	defer s.Close()
	c, err := Connect(Access{Name: "c", Server: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Account(t.Context()); err != nil || got != "ada@example.com" {
		t.Errorf("got %q, %v", got, err)
	}
	status = http.StatusForbidden
	var told *Error
	if got, err := c.Account(t.Context()); got != "" || !errors.As(err, &told) || !strings.Contains(err.Error(), "asking for account in use on cluster c") {
		t.Errorf("refused: %q, %v", got, err)
	}
}

// What is put around a connection sees every request, retries included.
func TestWrap(t *testing.T) {
	down := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down {
			down = false
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer s.Close()
	seen := 0
	c, err := Connect(Access{Name: "c", Server: s.URL, Wrap: func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) { seen++; return next.RoundTrip(r) })
	}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.HTTP.Get(s.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if seen != 2 {
		t.Errorf("%d requests were seen, want 2", seen)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
