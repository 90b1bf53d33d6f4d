package faults

import (
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
)

const (
	grpcPrefix    = "/google.container.v1.ClusterManager/"
	computePrefix = "/compute/v1/"
	storagePrefix = "/storage/v1/b/"
	storageSuffix = "/iam/testPermissions"
)

// storageMethod is what Cloud Storage's documentation calls the one call of it
// that there is.
const storageMethod = "storage.buckets.testIamPermissions"

// route is one way to call a method by REST.
type route struct {
	verb   string
	path   *regexp.Regexp
	method string
}

// routes are those of the GKE API, from the annotations of its definition.
var routes = sync.OnceValue(func() []route {
	var out []route
	methods := containerpb.File_google_container_v1_cluster_service_proto.Services().ByName("ClusterManager").Methods()
	for i := range methods.Len() {
		m := methods.Get(i)
		rule, ok := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
		if !ok || rule == nil {
			continue
		}
		for _, r := range append([]*annotations.HttpRule{rule}, rule.AdditionalBindings...) {
			if verb, template := binding(r); template != "" {
				out = append(out, route{verb, pathPattern(template), string(m.Name())})
			}
		}
	}
	return out
})

func binding(r *annotations.HttpRule) (verb, path string) {
	switch p := r.Pattern.(type) {
	case *annotations.HttpRule_Get:
		return http.MethodGet, p.Get
	case *annotations.HttpRule_Post:
		return http.MethodPost, p.Post
	case *annotations.HttpRule_Put:
		return http.MethodPut, p.Put
	case *annotations.HttpRule_Patch:
		return http.MethodPatch, p.Patch
	case *annotations.HttpRule_Delete:
		return http.MethodDelete, p.Delete
	}
	return "", ""
}

var variable = regexp.MustCompile(`\{[^}=]+(=([^}]*))?\}`)

// pathPattern turns "/v1/{name=projects/*/locations/*}:verb" into an expression.
func pathPattern(template string) *regexp.Regexp {
	var b strings.Builder
	rest := template
	for {
		at := variable.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		b.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		inner := "*"
		if at[4] >= 0 {
			inner = rest[at[4]:at[5]]
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(inner), `\*`, `[^/:]+`))
		rest = rest[at[1]:]
	}
	return regexp.MustCompile("^" + b.String() + regexp.QuoteMeta(rest) + "$")
}

// googleMethod names a request of the GKE API as its definition does, and one
// of Compute Engine or Cloud Storage as their documentation does.
func googleMethod(r *http.Request) string {
	if m, ok := strings.CutPrefix(r.URL.Path, grpcPrefix); ok {
		return m
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, computePrefix); ok {
		return computeMethod(r.Method, strings.Split(rest, "/"))
	}
	if bucket, ok := strings.CutPrefix(r.URL.Path, storagePrefix); ok && strings.HasSuffix(bucket, storageSuffix) {
		return storageMethod
	}
	for _, one := range routes() {
		if one.verb == r.Method && one.path.MatchString(r.URL.Path) {
			return one.method
		}
	}
	return ""
}

// computeMethod reads projects/P/regions/R/COLLECTION[/NAME[/VERB]].
func computeMethod(verb string, parts []string) string {
	if len(parts) < 5 || parts[2] != "regions" {
		return ""
	}
	collection, item := parts[4], len(parts) > 5
	if collection == "operations" {
		collection = "regionOperations"
	}
	action := map[string]string{
		http.MethodGet: "list", http.MethodPost: "insert",
	}[verb]
	if item {
		action = map[string]string{http.MethodGet: "get", http.MethodDelete: "delete", http.MethodPatch: "patch", http.MethodPut: "update"}[verb]
	}
	if len(parts) > 6 {
		action = parts[6]
	}
	if action == "" {
		return ""
	}
	return "compute." + collection + "." + action
}

// kubeMethod names a request of an API server: "kube PATCH jobsets", "kube
// WATCH pods", "kube POST pods/binding"; what is no resource by its path, "kube
// GET /readyz".
func kubeMethod(r *http.Request) string {
	verb := r.Method
	if w := r.URL.Query().Get("watch"); w == "true" || w == "1" {
		verb = "WATCH"
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:] // api/v1/...
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:] // apis/GROUP/VERSION/...
	default:
		return "kube " + verb + " " + r.URL.Path
	}
	// namespaces/N/RESOURCE...; a namespace itself, and its own subresources,
	// look alike in front.
	if parts[0] == "namespaces" && len(parts) > 2 && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
		parts = parts[2:]
	}
	name := parts[0]
	if len(parts) > 2 {
		name += "/" + strings.Join(parts[2:], "/")
	}
	return "kube " + verb + " " + name
}

// verbs are those of an API server's requests.
var verbs = []string{http.MethodGet, "WATCH", http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions}

// nameable tells whether there can be a request (a read) whose method fits the
// pattern: a typing error would wait for its call in vain.
func nameable(method string, read bool) bool {
	fixed := method
	wild := strings.IndexAny(method, `*?[\`)
	if wild >= 0 {
		fixed = method[:wild]
	}
	switch {
	case method == "" || wild == 0:
		return true
	case strings.HasPrefix(fixed, "kube "):
		verb, rest, whole := strings.Cut(fixed[len("kube "):], " ")
		return slices.ContainsFunc(verbs, func(v string) bool {
			if read && v != http.MethodGet && v != http.MethodHead {
				return false // what is watched is never answered from the past
			}
			return v == verb && whole && (rest != "" || wild >= 0) || !whole && wild >= 0 && strings.HasPrefix(v, verb)
		})
	case strings.HasPrefix(fixed, "compute."):
		collection, action, whole := strings.Cut(fixed[len("compute."):], ".")
		if wild >= 0 {
			return true
		}
		reads := action == "get" || action == "list"
		return whole && collection != "" && action != "" && (reads || !read)
	case wild >= 0 && (strings.HasPrefix("kube ", fixed) || strings.HasPrefix("compute.", fixed)):
		return true
	}
	if fits, _ := path.Match(pattern(method), storageMethod); fits {
		return true
	}
	return slices.ContainsFunc(routes(), func(one route) bool {
		fits, _ := path.Match(pattern(method), one.method)
		return fits && (!read || one.verb == http.MethodGet)
	})
}
