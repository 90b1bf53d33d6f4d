package kube

import (
	"context"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// firstPause and longestPause bound the time between two reads where no
	// watch is possible.
	firstPause   = 250 * time.Millisecond
	longestPause = time.Second
	// recheck is how often an object is read again although its watch is
	// silent: a proxy may have dropped the connection without a word.
	recheck = 30 * time.Second
)

// Until waits until done says so, fails, or ctx ends. done sees obj as it is,
// at once and after every change; found is false while the object does not
// exist. Changes come by a watch; where none is possible (no permission, a kind
// that is not served yet) the object is read up to 4 times a second. A server
// that does not answer for a moment is waited for; after OutageLimit it is an
// *UnreachableError.
func (c *Client) Until(ctx context.Context, obj client.Object, done func(found bool) (bool, error)) error {
	w := waiter{c: c, obj: obj, done: done}
	pause := firstPause
	var last error // of the server, when ctx ends
	var outage Outage
	for {
		found, err := c.Fetch(ctx, obj)
		err = outage.Note(c, err)
		if err != nil && !Transient(err) {
			return w.ended(ctx, err)
		}
		watchable := false
		if last = err; err == nil {
			if ok, err := done(found); ok || err != nil {
				return err
			}
			version := ""
			if found {
				version = obj.GetResourceVersion()
			}
			var ok bool
			if ok, watchable, err = w.follow(ctx, version); ok || err != nil {
				return err
			}
		}
		if watchable && ctx.Err() == nil {
			pause = firstPause
			continue // the watch ended by itself: read and watch again
		}
		select {
		case <-ctx.Done():
			return w.ended(ctx, last)
		case <-time.After(pause):
			pause = min(pause*5/4, longestPause)
		}
	}
}

// waiter is one Until.
type waiter struct {
	c    *Client
	obj  client.Object
	done func(bool) (bool, error)
}

// ended is the error of a wait whose context is over, or else err itself. It
// keeps what the server said last.
func (w *waiter) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if err != nil && !isContextError(err) {
		return w.c.wrap("waiting for", w.obj, &lastAnswer{cause: cause, last: err})
	}
	return w.c.wrap("waiting for", w.obj, cause)
}

// follow watches the object from a version on ("" when it does not exist) and
// shows done every change. watchable is false when no watch could be opened or
// it broke at once; ok is what done said.
func (w *waiter) follow(ctx context.Context, version string) (ok, watchable bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, recheck)
	defer cancel()
	events, err := w.open(ctx, version)
	if err != nil {
		return false, false, nil // Fetch tells the same error, if it matters
	}
	defer events.Stop()
	opened := time.Now()
	for {
		select {
		case <-ctx.Done():
			return false, true, nil
		case event, open := <-events.ResultChan():
			if !open || event.Type == watch.Error {
				// A version that is too old to watch from, or a connection cut.
				// One that breaks at once is not to be opened in a tight loop.
				return false, time.Since(opened) > longestPause, nil
			}
			mine, found := w.take(event)
			if !mine {
				continue
			}
			if ok, err := w.done(found); ok || err != nil {
				return ok, true, err
			}
		}
	}
}

// open starts a watch of this one object. Unstructured lists serve every kind,
// typed or not.
func (w *waiter) open(ctx context.Context, version string) (watch.Interface, error) {
	gvk, err := apiutil.GVKForObject(w.obj, Scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	opts := &client.ListOptions{
		Namespace:     w.obj.GetNamespace(),
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, w.obj.GetName()),
		Raw:           &metav1.ListOptions{ResourceVersion: version},
	}
	if _, ok := w.obj.(*metav1.PartialObjectMetadata); ok {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		return w.c.Watch(ctx, list, opts)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	return w.c.Watch(ctx, list, opts)
}

// take fills obj from an event. mine is false for events of other objects and
// those that carry none.
func (w *waiter) take(event watch.Event) (mine, found bool) {
	o, err := meta.Accessor(event.Object)
	if err != nil || event.Type == watch.Bookmark || o.GetName() != w.obj.GetName() || o.GetNamespace() != w.obj.GetNamespace() {
		return false, false
	}
	if event.Type == watch.Deleted {
		return true, false
	}
	into := reflect.ValueOf(w.obj)
	if from := reflect.ValueOf(event.Object); from.Type() == into.Type() {
		into.Elem().Set(from.Elem())
		return true, true
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event.Object)
	if err != nil {
		return false, false
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, w.obj) == nil, true
}
