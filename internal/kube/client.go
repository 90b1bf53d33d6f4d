package kube

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"golang.org/x/oauth2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Scheme knows the core types, CustomResourceDefinitions, JobSet and Kueue.
var Scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, jobset.AddToScheme, kueue.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two types of one name: a programming error
		}
	}
	return s
}()

// Client talks to one cluster. It embeds controller-runtime's uncached client
// (Get, List, Create, Patch, Delete, Watch), typed or unstructured.
type Client struct {
	client.WithWatch
	Name   string       // how messages name the cluster
	Config *rest.Config // for whoever needs another kind of client
	HTTP   *http.Client // carries the credentials
}

// Connect makes a client. It sends nothing: a cluster that cannot be reached
// is found by the first call.
func Connect(a Access) (*Client, error) {
	cfg := &rest.Config{
		Host:            a.Server,
		TLSClientConfig: rest.TLSClientConfig{CAData: a.CA},
		Timeout:         60 * time.Second,
		UserAgent:       FieldManager,
		WarningHandler:  rest.NoWarnings{},
	}
	if a.Wrap != nil {
		cfg.Wrap(a.Wrap) // innermost: retries are requests too
	}
	if a.Tokens != nil {
		cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			return &oauth2.Transport{Source: a.Tokens, Base: rt}
		})
	}
	return ForConfig(a.Name, cfg)
}

// ForConfig makes a client of a ready rest.Config (a kubeconfig context, a
// pod's service account).
func ForConfig(name string, cfg *rest.Config) (*Client, error) {
	// API servers share themselves out by priority and fairness. client-go's own
	// limit would only add its words to errors: just before a deadline it refuses.
	cfg.QPS = -1
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &retrier{rt} })
	hc, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing credentials for cluster %s: %w", name, err)
	}
	own := *hc // without credentials it may be http.DefaultClient
	hc = &own
	if hc.Transport == nil {
		hc.Transport = http.DefaultTransport
	}
	hc.Transport = Heed(hc.Transport)
	// A redirect would carry the token to wherever it points.
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, hc)
	if err != nil {
		return nil, fmt.Errorf("preparing a client for cluster %s: %w", name, err)
	}
	mapper = discovered{mapper, cfg.Host}
	c, err := client.NewWithWatch(cfg, client.Options{HTTPClient: hc, Scheme: Scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("preparing a client for cluster %s: %w", name, err)
	}
	return &Client{WithWatch: newHeeding(c, mapper), Name: name, Config: cfg, HTTP: hc}, nil
}

// ApplyOptions change how Apply writes.
type ApplyOptions struct {
	// Force takes fields over from other managers instead of failing with a
	// conflict that names them.
	Force bool
	// Whole says that all of the object is in obj: fields that somebody else
	// added to it are removed, which server-side apply alone never does. Labels,
	// annotations and status stay theirs.
	Whole  bool
	DryRun bool
}

// Apply writes obj by server-side apply under FieldManager and fills obj with
// what the server stored. obj carries only the fields we own: no status, no
// managedFields. Errors are *Error.
func (c *Client) Apply(ctx context.Context, obj client.Object, o ApplyOptions) error {
	u, err := c.toApply(obj)
	if err != nil {
		return err
	}
	opts := []client.ApplyOption{client.FieldOwner(FieldManager)}
	if o.Force {
		opts = append(opts, client.ForceOwnership)
	}
	if o.DryRun {
		opts = append(opts, client.DryRunAll)
	}
	asked := u.DeepCopy()
	if err := c.WithWatch.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...); err != nil {
		return c.wrap("applying", u, err)
	}
	if o.Whole && !o.DryRun {
		if err := c.alone(ctx, asked, u); err != nil {
			return c.wrap("removing others' fields of", u, err)
		}
	}
	if into, ok := obj.(*unstructured.Unstructured); ok {
		into.Object = u.Object
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj)
}

// toApply strips what an apply must not carry: empty status, creation time and
// managed fields, which typed objects always serialise.
func (c *Client) toApply(obj client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(obj, Scheme)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	u.SetUID("")
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "metadata", "generation")
	return u, nil
}

// Fetch reads the object that obj names into obj, and nothing that was in obj
// stays. found is false, without an error, when the object or its kind does not
// exist; obj is then as it was.
func (c *Client) Fetch(ctx context.Context, obj client.Object) (found bool, err error) {
	// A typed object is decoded over what is there: a field or label that the
	// server no longer has would stay.
	fresh := blank(obj)
	err = c.Get(ctx, client.ObjectKeyFromObject(obj), fresh)
	switch {
	case err == nil:
		reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(fresh).Elem())
		return true, nil
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	}
	return false, c.wrap("reading", obj, err)
}

// Serves tells whether the cluster has a kind of objects.
func (c *Client) Serves(kind schema.GroupKind) (bool, error) {
	_, err := c.RESTMapper().RESTMapping(kind)
	switch {
	case err == nil:
		return true, nil
	case meta.IsNoMatchError(err):
		return false, nil
	}
	return false, &Error{Verb: "looking for", Kind: kind.Kind, Key: "(" + kind.Group + ")", Cluster: c.Name, Err: err}
}

// blank returns an empty object of obj's type and kind.
func blank(obj client.Object) client.Object {
	fresh := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	fresh.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return fresh
}

// Remove deletes obj with its dependents in the background; an object that is
// already gone is no error. With wait it returns when the object is gone, or
// when another of the same name has taken its place.
func (c *Client) Remove(ctx context.Context, obj client.Object, wait bool) error {
	err := c.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return c.wrap("deleting", obj, err)
	}
	if !wait {
		return nil
	}
	return c.Until(ctx, obj, func(found bool) (bool, error) {
		// The deletion was accepted: what is not being deleted is not what was
		// deleted, but something made since.
		return !found || obj.GetDeletionTimestamp().IsZero(), nil
	})
}
