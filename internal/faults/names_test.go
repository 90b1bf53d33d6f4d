package faults

import (
	"net/http/httptest"
	"testing"
)

func TestMethodNames(t *testing.T) {
	const p = "/v1/projects/p/locations/z"
	for _, c := range []struct{ verb, url, want string }{
		{"POST", p + "/clusters", "CreateCluster"},
		{"GET", p + "/clusters/c?$alt=json", "GetCluster"},
		{"GET", p + "/clusters", "ListClusters"},
		{"POST", p + "/clusters/c/nodePools", "CreateNodePool"},
		{"GET", p + "/clusters/c/nodePools", "ListNodePools"},
		{"DELETE", p + "/clusters/c/nodePools/n", "DeleteNodePool"},
		{"PUT", p + "/clusters/c/nodePools/n", "UpdateNodePool"},
		{"POST", p + "/clusters/c/nodePools/n:setSize", "SetNodePoolSize"},
		{"GET", p + "/operations", "ListOperations"},
		{"POST", p + "/operations/o:cancel", "CancelOperation"},
		{"GET", "/v1/projects/p/zones/z/clusters/c", "GetCluster"},
		{"POST", "/google.container.v1.ClusterManager/CreateNodePool", "CreateNodePool"},
		{"GET", "/sandbox/status", ""},
		{"POST", "/compute/v1/projects/p/regions/r/resourcePolicies", "compute.resourcePolicies.insert"},
		{"GET", "/compute/v1/projects/p/regions/r/resourcePolicies/x", "compute.resourcePolicies.get"},
		{"DELETE", "/compute/v1/projects/p/regions/r/resourcePolicies/x", "compute.resourcePolicies.delete"},
		{"POST", "/compute/v1/projects/p/regions/r/operations/o/wait", "compute.regionOperations.wait"},
		{"GET", "/storage/v1/b/runs/iam/testPermissions", "storage.buckets.testIamPermissions"},
		{"GET", "/storage/v1/b/runs", ""},
	} {
		if got := googleMethod(httptest.NewRequest(c.verb, c.url, nil)); got != c.want {
			t.Errorf("%s %s is %q, want %q", c.verb, c.url, got, c.want)
		}
	}
	for _, c := range []struct{ verb, url, want string }{
		{"PATCH", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/n/jobsets/j?fieldManager=x", "kube PATCH jobsets"},
		{"GET", "/apis/jobset.x-k8s.io/v1alpha2/jobsets?watch=true", "kube WATCH jobsets"},
		{"GET", "/api/v1/pods", "kube GET pods"},
		{"POST", "/api/v1/namespaces/n/pods/p/binding", "kube POST pods/binding"},
		{"POST", "/api/v1/namespaces", "kube POST namespaces"},
		{"DELETE", "/api/v1/namespaces/n", "kube DELETE namespaces"},
		{"PUT", "/api/v1/namespaces/n/finalize", "kube PUT namespaces/finalize"},
		{"GET", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q/status", "kube GET clusterqueues/status"},
		{"GET", "/api/v1", "kube GET /api/v1"},
		{"GET", "/apis/apps/v1", "kube GET /apis/apps/v1"},
		{"GET", "/readyz", "kube GET /readyz"},
	} {
		if got := kubeMethod(httptest.NewRequest(c.verb, c.url, nil)); got != c.want {
			t.Errorf("%s %s is %q, want %q", c.verb, c.url, got, c.want)
		}
	}
}

func TestMethodsThatThereCanBe(t *testing.T) {
	for _, c := range []struct {
		method           string
		request, isARead bool
	}{
		{"", true, true},
		{"*", true, true},
		{"*NodePool*", true, true},
		{"CreateNodePool", true, false},
		{"createnodepool", false, false},
		{"CreateNodePol", false, false},
		{"CreateNodePol*", false, false},
		{"Create*", true, false},
		{"List*", true, true},
		{"GetCluster", true, true},
		{"c*", true, true}, // compute
		{"compute.resourcePolicies.insert", true, false},
		{"compute.resourcePolicies.get", true, true},
		{"compute.resourcePolicies", false, false},
		{"compute.*", true, true},
		{"storage.*", true, true},
		{"storage.buckets.testIamPermissions", true, true},
		{"storage.buckets.get", false, false},
		{"kube *", true, true},
		{"kube PATCH jobsets", true, false},
		{"kube GET *", true, true},
		{"kube GET /readyz", true, true},
		{"kube WATCH pods", true, false},
		{"kube P* jobsets", true, false},
		{"kube patch jobsets", false, false},
		{"kube jobsets", false, false},
		{"kube GET", false, false},
		{"kubectl", false, false},
	} {
		if request, read := nameable(c.method, false), nameable(c.method, true); request != c.request || read != c.isARead {
			t.Errorf("%q: %v, as a read %v; want %v, %v", c.method, request, read, c.request, c.isARead)
		}
	}
}
