package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// noWatch refuses to watch, as a role without that verb does.
func noWatch(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, apierrors.NewForbidden(pods, "", errors.New("no watch"))
}

func fakeClient(funcs interceptor.Funcs, objs ...client.Object) *Client {
	return &Client{Name: "c", WithWatch: fake.NewClientBuilder().WithScheme(Scheme).WithInterceptorFuncs(funcs).WithObjects(objs...).Build()}
}

func configMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cm"}, Data: map[string]string{"k": value}}
}

// changeAt is no multiple of recheck: the fake's watch does not replay what
// happened between a read and the watch, as a server does.
const changeAt = 70 * time.Second

// waits runs Until for a ConfigMap whose value is "after", while change runs
// after changeAt, and returns how long it took.
func waits(t *testing.T, c *Client, limit time.Duration, change func()) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	go func() {
		time.Sleep(changeAt)
		change()
	}()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cm"}}
	err := c.Until(ctx, obj, func(found bool) (bool, error) {
		if found && obj.Data["k"] == "bad" {
			return false, errors.New("it went bad")
		}
		return found && obj.Data["k"] == "after", nil
	})
	took := time.Since(began)
	time.Sleep(time.Hour) // let change's goroutine end in its bubble
	return took, err
}

func TestUntil(t *testing.T) {
	update := func(c *Client, value string) func() {
		return func() { _ = c.Update(context.Background(), configMap(value)) }
	}
	t.Run("sees a change at once by its watch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := fakeClient(interceptor.Funcs{}, configMap("before"))
			if took, err := waits(t, c, time.Hour, update(c, "after")); err != nil || took != changeAt {
				t.Errorf("returned after %s with %v, want exactly %s", took, err, changeAt)
			}
		})
	})
	t.Run("sees an object that appears", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := fakeClient(interceptor.Funcs{})
			create := func() { _ = c.Create(context.Background(), configMap("after")) }
			if took, err := waits(t, c, time.Hour, create); err != nil || took != changeAt {
				t.Errorf("returned after %s with %v, want exactly %s", took, err, changeAt)
			}
		})
	})
	t.Run("reads again where it may not watch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := fakeClient(interceptor.Funcs{Watch: noWatch}, configMap("before"))
			if took, err := waits(t, c, time.Hour, update(c, "after")); err != nil || took > changeAt+longestPause {
				t.Errorf("returned after %s with %v, want within a second of the change", took, err)
			}
		})
	})
	t.Run("a silent watch is not trusted for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			silent := func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
				return watch.NewFake(), nil
			}
			c := fakeClient(interceptor.Funcs{Watch: silent}, configMap("before"))
			if took, err := waits(t, c, time.Hour, update(c, "after")); err != nil || took > changeAt+recheck {
				t.Errorf("returned after %s with %v, want within half a minute of the change", took, err)
			}
		})
	})
	t.Run("a failure that done reports ends it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := fakeClient(interceptor.Funcs{}, configMap("before"))
			if took, err := waits(t, c, time.Hour, update(c, "bad")); err == nil || err.Error() != "it went bad" || took != changeAt {
				t.Errorf("returned after %s with %v", took, err)
			}
		})
	})
	t.Run("a server that is away for a while is waited for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			away := func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if at := time.Since(began); at > 20*time.Second && at < 79*time.Second {
					return refused()
				}
				return w.Get(ctx, key, obj, opts...)
			}
			c := fakeClient(interceptor.Funcs{Get: away, Watch: noWatch}, configMap("before"))
			if took, err := waits(t, c, time.Hour, update(c, "after")); err != nil || took > 80*time.Second {
				t.Errorf("returned after %s with %v, want within a second of 1m19s", took, err)
			}
		})
	})
	t.Run("a timeout names the object and the last answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			away := func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return refused()
			}
			c := fakeClient(interceptor.Funcs{Get: away})
			took, err := waits(t, c, 40*time.Second, func() {})
			if took != 40*time.Second || !errors.Is(err, context.DeadlineExceeded) || !Unreachable(err) || !strings.Contains(err.Error(), "waiting for ConfigMap ns/cm on cluster c") {
				t.Errorf("returned after %s with %v", took, err)
			}
		})
	})
	t.Run("a server that is gone ends it after a minute", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			dies := func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if time.Since(began) > 20*time.Second {
					return refused()
				}
				return w.Get(ctx, key, obj, opts...)
			}
			c := fakeClient(interceptor.Funcs{Get: dies, Watch: noWatch}, configMap("before"))
			c.Config = &rest.Config{Host: "https://203.0.113.7"}
			took, err := waits(t, c, time.Hour, func() {})
			var silent *UnreachableError
			if !errors.As(err, &silent) || took < 80*time.Second || took > 85*time.Second {
				t.Fatalf("returned after %s with %v, want an UnreachableError a minute after the server died", took, err)
			}
			for _, part := range []string{"reading ConfigMap ns/cm on cluster c: ", "https://203.0.113.7 has not answered for 1m", "connection refused", "run the command again"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Count(err.Error(), "authorized networks") != 1 {
				t.Errorf("the advice is not given once:\n%v", err)
			}
			if Transient(err) {
				t.Error("a cluster that was given up would be waited for again")
			}
		})
	})
	t.Run("a refusal ends it at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			deny := func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return apierrors.NewForbidden(pods, "cm", errors.New("no"))
			}
			c := fakeClient(interceptor.Funcs{Get: deny})
			if took, err := waits(t, c, time.Hour, func() {}); took != 0 || !apierrors.IsForbidden(err) {
				t.Errorf("returned after %s with %v, want a refusal at once", took, err)
			}
		})
	})
}

func TestRemove(t *testing.T) {
	t.Run("returns when the object is gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			held := configMap("x")
			held.Finalizers = []string{"example.com/held"}
			c := fakeClient(interceptor.Funcs{}, held)
			began := time.Now()
			go func() {
				// Not a multiple of recheck: the fake's watch, unlike a server's, has
				// no past, and would miss what happens while it is renewed.
				time.Sleep(40 * time.Second)
				released := configMap("x")
				_ = c.Patch(context.Background(), released, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
			}()
			if err := c.Remove(t.Context(), configMap(""), true); err != nil || time.Since(began) != 40*time.Second {
				t.Errorf("returned after %s with %v, want exactly 40s", time.Since(began), err)
			}
		})
	})
	t.Run("what is gone already is no error", func(t *testing.T) {
		c := fakeClient(interceptor.Funcs{})
		if err := c.Remove(t.Context(), configMap(""), true); err != nil {
			t.Error(err)
		}
	})
}

// A label that the server no longer has must not survive in the reader's copy.
func TestFetchReplacesWhatWasThere(t *testing.T) {
	c := fakeClient(interceptor.Funcs{}, configMap("now"))
	obj := configMap("then")
	obj.Labels = map[string]string{"stale": "yes"}
	obj.Data["stale"] = "yes"
	found, err := c.Fetch(t.Context(), obj)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	if len(obj.Labels) != 0 || len(obj.Data) != 1 || obj.Data["k"] != "now" {
		t.Errorf("got labels %v, data %v", obj.Labels, obj.Data)
	}
}
