package acctest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// store keeps objects of some kinds as an API server does, without defaults,
// rules or webhooks: an apply replaces what the same manager is allowed to
// write. Tests that need the rules use the sandbox.
type store struct {
	kinds   []storedKind
	objects map[string]*unstructured.Unstructured // by path
	uid     int
	webhook string // what a webhook that is down lets writes fail with
}

type storedKind struct {
	schema.GroupVersionKind
	plural     string
	namespaced bool
}

// root is the path below which objects of the kind are.
func (k storedKind) root() string {
	if k.Group == "" {
		return "/api/" + k.Version
	}
	return "/apis/" + k.GroupVersion().String()
}

// Keep lets the cluster have the kinds of these objects installed. It keeps
// what is written to them; the objects themselves are not stored.
func (c *Cluster) Keep(t testing.TB, examples ...client.Object) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store == nil {
		c.store = &store{objects: map[string]*unstructured.Unstructured{}}
	}
	for _, o := range examples {
		gvk, err := apiutil.GVKForObject(o, kube.Scheme)
		if err != nil {
			t.Fatal(err)
		}
		plural := strings.ToLower(gvk.Kind) + "s"
		if base, ok := strings.CutSuffix(plural, "ys"); ok { // topology
			plural = base + "ies"
		} else if base, ok := strings.CutSuffix(plural, "sss"); ok { // class
			plural = base + "sses"
		}
		c.store.kinds = append(c.store.kinds, storedKind{gvk, plural, o.GetNamespace() != ""})
	}
}

// WebhookDown lets writes of what the cluster keeps fail as they do when the
// controller behind this Service does not run; "" is up again.
func (c *Cluster) WebhookDown(service, namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store.webhook = ""
	if service != "" {
		c.store.webhook = fmt.Sprintf("Internal error occurred: failed calling webhook %q: failed to call webhook: "+
			"Post \"https://%s.%s.svc:443/validate?timeout=10s\": no endpoints available for service %q", "v.kb.io", service, namespace, service)
	}
}

// Client reaches the cluster beside the provider.
func (c *Cluster) Client(t testing.TB) *kube.Client {
	t.Helper()
	at, err := c.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	k, err := kube.Connect(kube.Access{Name: "test", Server: "https://" + at.Host, CA: at.CA})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// discover adds to the lists of groups and kinds what is stored; other answers
// stay what they are.
func (s *store) discover(path string, out any) any {
	if path == "/apis" {
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		seen := map[string]bool{}
		for _, k := range s.kinds {
			if k.Group != "" && !seen[k.Group] {
				seen[k.Group] = true
				v := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
			}
		}
		return groups
	}
	list, ok := out.(metav1.APIResourceList)
	if !ok && out != nil {
		return out
	}
	list.TypeMeta = metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}
	for _, k := range s.kinds {
		if path == k.root() {
			list.GroupVersion = k.GroupVersion().String()
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.plural, Kind: k.Kind, Namespaced: k.namespaced})
		}
	}
	if list.GroupVersion == "" {
		return out
	}
	return list
}

// of finds the kind that a path is about, and whether it names one object.
func (s *store) of(path string) (k storedKind, one, ok bool) {
	for _, k := range s.kinds {
		rest, ok := strings.CutPrefix(path, k.root()+"/")
		if !ok {
			continue
		}
		parts := strings.Split(rest, "/")
		if k.namespaced && len(parts) > 2 {
			parts = parts[2:]
		}
		if parts[0] == k.plural && len(parts) <= 2 {
			return k, len(parts) == 2, true
		}
	}
	return storedKind{}, false, false
}

// serve answers a request for what is stored; false leaves it to others.
func (s *store) serve(w http.ResponseWriter, r *http.Request) bool {
	k, one, ok := s.of(r.URL.Path)
	if !ok {
		return false
	}
	had := s.objects[r.URL.Path]
	switch {
	case r.URL.Query().Get("watch") != "":
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
	case r.Method == http.MethodPost && !one:
		s.create(w, r, k)
	case r.Method == http.MethodDelete && !one:
		for path := range s.objects {
			if s.listed(r, k, path) {
				delete(s.objects, path)
			}
		}
		answer(w, success)
	case r.Method == http.MethodGet && !one && strings.HasPrefix(r.URL.Query().Get("fieldSelector"), "status."):
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest) // as for a kind without selectable fields
	case r.Method == http.MethodGet && !one:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		for path, o := range s.objects {
			if s.listed(r, k, path) {
				list.Items = append(list.Items, *o)
			}
		}
		slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
			return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
		})
		page(list, r.URL.Query())
		answer(w, list.UnstructuredContent())
	case r.Method == http.MethodPatch && s.webhook != "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: s.webhook})
	case r.Method == http.MethodPatch:
		s.patch(w, r, k, had)
	case had == nil:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodDelete && len(had.GetFinalizers()) > 0:
		now := metav1.Now()
		had.SetDeletionTimestamp(&now)
		answer(w, had.Object)
	case r.Method == http.MethodDelete:
		delete(s.objects, r.URL.Path)
		answer(w, had.Object)
	default:
		answer(w, had.Object)
	}
	return true
}

var success = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}

// listed tells whether the object at path is among those that a request about a
// whole kind means: of its namespace, with its labels.
func (s *store) listed(r *http.Request, k storedKind, path string) bool {
	if kind, _, _ := s.of(path); kind != k || !strings.HasPrefix(path, strings.TrimSuffix(r.URL.Path, k.plural)) {
		return false
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	return err != nil || selector.Matches(labels.Set(s.objects[path].GetLabels()))
}

// create keeps a new object.
func (s *store) create(w http.ResponseWriter, r *http.Request, k storedKind) {
	body, _ := io.ReadAll(r.Body)
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := r.URL.Path + "/" + o.GetName()
	if s.objects[path] != nil {
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	}
	s.uid++
	o.SetUID(types.UID(strconv.Itoa(s.uid)))
	o.SetCreationTimestamp(metav1.Now())
	o.SetGeneration(1)
	o.SetResourceVersion("1")
	o.SetGroupVersionKind(k.GroupVersionKind)
	s.objects[path] = o
	answer(w, o.Object)
}

// page leaves of a list what the query asks for.
func page(list *unstructured.UnstructuredList, query url.Values) {
	from, _ := strconv.Atoi(query.Get("continue")) // none is from the first
	list.Items = list.Items[min(from, len(list.Items)):]
	if limit, _ := strconv.Atoi(query.Get("limit")); limit > 0 && limit < len(list.Items) {
		list.Items = list.Items[:limit]
		list.SetContinue(strconv.Itoa(from + limit))
	}
}

// patch applies (server-side) or merges.
func (s *store) patch(w http.ResponseWriter, r *http.Request, k storedKind, had *unstructured.Unstructured) {
	body, _ := io.ReadAll(r.Body)
	var given map[string]any
	if err := yaml.Unmarshal(body, &given); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o := &unstructured.Unstructured{Object: given}
	switch {
	case !strings.Contains(r.Header.Get("Content-Type"), "apply-patch") && had == nil:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	case !strings.Contains(r.Header.Get("Content-Type"), "apply-patch"):
		merged := had.DeepCopy()
		mergeInto(merged.Object, given)
		o = merged
	case had != nil:
		if status, ok := had.Object["status"]; ok {
			o.Object["status"] = status
		}
		o.SetUID(had.GetUID())
		o.SetFinalizers(had.GetFinalizers())
	default:
		s.uid++
		o.SetUID(types.UID(strconv.Itoa(s.uid)))
	}
	o.SetGroupVersionKind(k.GroupVersionKind)
	o.SetName(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	generation, version := int64(1), int64(1)
	if had != nil {
		last, _ := strconv.ParseInt(had.GetResourceVersion(), 10, 64)
		generation, version = had.GetGeneration(), last+1
		if desired(o) != desired(had) {
			generation++
		}
	}
	o.SetGeneration(generation)
	o.SetResourceVersion(strconv.FormatInt(version, 10))
	s.objects[r.URL.Path] = o
	answer(w, o.Object)
}

// desired is what somebody wants of an object: all but metadata and status, as
// JSON has it.
func desired(o *unstructured.Unstructured) string {
	rest := maps.Clone(o.Object)
	delete(rest, "metadata")
	delete(rest, "status")
	text, _ := json.Marshal(rest)
	return string(text)
}

func mergeInto(into, from map[string]any) {
	for k, v := range from {
		a, isMap := v.(map[string]any)
		b, hasMap := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && hasMap:
			mergeInto(b, a)
		default:
			into[k] = v
		}
	}
}

func answer(w http.ResponseWriter, o map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: fmt.Sprint(reason)})
}
