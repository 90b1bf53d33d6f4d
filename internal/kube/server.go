package kube

import (
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NotServerError says that what answers is no Kubernetes API server: none has
// nothing to say to what it serves. It is not the absence of an object.
type NotServerError struct {
	Server string // its address
	Said   string // what it answered
}

func (e *NotServerError) Error() string {
	return e.Server + " is no Kubernetes API server: asked what it serves, it answers with " + e.Said + "; check the address"
}

// discovered tells a server without a kind from one that is none of
// Kubernetes'.
type discovered struct {
	meta.RESTMapper
	server string
}

// RESTMapping implements meta.RESTMapper.
func (d discovered) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m, err := d.RESTMapper.RESTMapping(kind, versions...)
	switch {
	case err == nil || meta.IsNoMatchError(err):
	case apierrors.IsNotFound(err):
		return nil, &NotServerError{Server: d.server, Said: "404 Not Found"}
	case errors.As(err, new(*json.SyntaxError)):
		return nil, &NotServerError{Server: d.server, Said: "what is no JSON, such as a web page"}
	}
	return m, err
}
