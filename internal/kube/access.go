// Package kube reaches one Kubernetes cluster: credentials, server-side apply
// under the project's own field manager, and waiting for an object to reach a
// state. It knows Kubernetes, never GKE, Terraform or cobra.
package kube

import (
	"net/http"

	"golang.org/x/oauth2"
)

// FieldManager owns every field that this project applies.
const FieldManager = "terraform-provider-tpu"

// Access is all it takes to talk to a cluster's API server.
type Access struct {
	Name   string             // how messages name the cluster
	Server string             // https://host[:port]
	CA     []byte             // PEM; empty means the system's roots
	Tokens oauth2.TokenSource // bearer tokens; refreshed as they expire
	// Wrap goes around what sends the requests, to see each of them; nil: nothing
	// does.
	Wrap func(http.RoundTripper) http.RoundTripper
}
