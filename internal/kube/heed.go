package kube

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Heed makes a transport return when a request's context ends, whatever it is
// at: helpers for credentials, and the libraries that ask for tokens, wait
// without looking. What they come to then is dropped.
func Heed(next http.RoundTripper) http.RoundTripper { return heed{next} }

type heed struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (h heed) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if ctx.Done() == nil {
		return h.next.RoundTrip(req)
	}
	type answer struct {
		resp *http.Response
		err  error
	}
	given := make(chan answer, 1)
	go func() {
		resp, err := h.next.RoundTrip(req) //nolint:bodyclose // whoever takes it closes it
		given <- answer{resp, err}
	}()
	select {
	case a := <-given:
		return a.resp, a.err
	case <-ctx.Done():
		go func() {
			if a := <-given; a.err == nil {
				_ = a.resp.Body.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// UnsentError says that a call ended before its request was sent: while it was
// found out what the cluster serves.
type UnsentError struct{ Err error }

func (e *UnsentError) Error() string {
	return "the cluster has not said yet what it serves: " + e.Err.Error()
}
func (e *UnsentError) Unwrap() error { return e.Err }

// heeding is a client whose calls end with their context also while it is being
// found out what the cluster serves, which the client itself does without one.
type heeding struct {
	client.WithWatch
	mapper meta.RESTMapper
	known  *sync.Map // schema.GroupVersionKind -> struct{}
}

func newHeeding(c client.WithWatch, mapper meta.RESTMapper) client.WithWatch {
	return heeding{c, mapper, &sync.Map{}}
}

// ready waits until the kind of obj is known, or not known, to the cluster. What
// is wrong with it the call itself says.
func (h heeding) ready(ctx context.Context, obj runtime.Object) error {
	gvk, err := apiutil.GVKForObject(obj, Scheme)
	if err != nil {
		return nil //nolint:nilerr // said by the call
	}
	if _, list := obj.(client.ObjectList); list {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	if _, known := h.known.Load(gvk); known {
		return nil
	}
	return h.look(ctx, gvk)
}

func (h heeding) look(ctx context.Context, gvk schema.GroupVersionKind) error {
	found := make(chan error, 1)
	go func() {
		_, err := h.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		found <- err
	}()
	select {
	case err := <-found:
		if err == nil {
			h.known.Store(gvk, struct{}{})
		}
		return err
	case <-ctx.Done():
		return &UnsentError{ctx.Err()}
	}
}

// Get implements client.Reader.
func (h heeding) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := h.ready(ctx, obj); err != nil {
		return err
	}
	return h.WithWatch.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (h heeding) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := h.ready(ctx, list); err != nil {
		return err
	}
	return h.WithWatch.List(ctx, list, opts...)
}

// Create implements client.Writer.
func (h heeding) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := h.ready(ctx, obj); err != nil {
		return err
	}
	return h.WithWatch.Create(ctx, obj, opts...)
}

// Delete implements client.Writer.
func (h heeding) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := h.ready(ctx, obj); err != nil {
		return err
	}
	return h.WithWatch.Delete(ctx, obj, opts...)
}
