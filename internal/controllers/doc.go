// Package controllers installs the JobSet and Kueue releases on a cluster:
// the official manifests, embedded, changed only as a Config says, written by
// server-side apply, and waited for until both webhooks answer.
//
// It knows Kubernetes, never GKE, Terraform or cobra. What belongs to a queue
// or a job is not here; only what must stand before the first of them.
package controllers
