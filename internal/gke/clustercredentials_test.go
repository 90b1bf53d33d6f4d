package gke

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Each kind of endpoint is found, or it is said what there is instead; the
// token has its whole life before it.
func TestClusterCredentials(t *testing.T) {
	ca := base64.StdEncoding.EncodeToString([]byte("PEM"))
	const all = `"status": "RUNNING", "endpoint": "34.0.0.1", "controlPlaneEndpointsConfig": {
		"dnsEndpointConfig": {"endpoint": "gke-1.us-west4.gke.goog", "allowExternalTraffic": true}, "ipEndpointsConfig": {"privateEndpoint": "10.0.0.2"}}`
	for _, c := range []struct {
		name, cluster string
		kind          EndpointKind
		endpoint, ca  string
		err           string
	}{
		{"the address", all, EndpointIP, "34.0.0.1", "PEM", ""},
		{"the private address", all, EndpointPrivateIP, "10.0.0.2", "PEM", ""},
		{"the private address of older clusters", `"privateClusterConfig": {"privateEndpoint": "10.0.0.3"}`, EndpointPrivateIP, "10.0.0.3", "PEM", ""},
		{"the name", all, EndpointDNS, "gke-1.us-west4.gke.goog", "", ""},
		{"no name", `"endpoint": "34.0.0.1"`, EndpointDNS, "", "", "it has no endpoint of type dns; enable it: gcloud container clusters update --enable-dns-access"},
		{"a name for GKE alone", `"controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "x", "allowExternalTraffic": false}}`, EndpointDNS, "", "", "refuses traffic from outside"},
		{"a name only", `"controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "x"}}`, EndpointIP, "", "", `it has a DNS endpoint: endpoint_type = "dns"`},
		{"not there yet", `"status": "PROVISIONING"`, EndpointIP, "", "", "it has no endpoint of type ip; its status is PROVISIONING"},
	} {
		t.Run(c.name, func(t *testing.T) {
			net := hosts{"oauth2.googleapis.com": oauth("key"), "container.googleapis.com": func(w http.ResponseWriter, _ *http.Request) {
				answer(w, 200, `{"name": "main", "masterAuth": {"clusterCaCertificate": "`+ca+`"}, `+c.cluster+`}`)
			}}
			cl, err := New(Config{Tokens: FindCredentials(CredentialsConfig{JSON: keyFile().String(), Transport: net, Getenv: noEnv}), Transport: net})
			if err != nil {
				t.Fatal(err)
			}
			got, err := cl.ClusterCredentials(t.Context(), name, c.kind)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || got.Endpoint != c.endpoint || string(got.CA) != c.ca || got.Token != "key-2" || time.Until(got.Expiry) < 59*time.Minute {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// The public address is taken where there is one; else the name, if it answers
// from outside; else the private address.
func TestAccess(t *testing.T) {
	const (
		name1, inside, closed = `"endpoint": "n.gke.goog", "allowExternalTraffic": true`, `"endpoint": "n.gke.goog"`, `"endpoint": "n.gke.goog", "allowExternalTraffic": false`
		byName, byAddress     = "https://n.gke.goog", "https://34.0.0.1"
	)
	ends := func(ip, dns string) string {
		return `"endpoint": "34.0.0.1", "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {` + dns + `}, "ipEndpointsConfig": {` + ip + `}}`
	}
	for _, c := range []struct{ name, cluster, server, err string }{
		{"no word about endpoints", `"endpoint": "34.0.0.1"`, byAddress, ""},
		{"public, and a name", ends(`"enabled": true, "enablePublicEndpoint": true`, name1), byAddress, ""},
		{"public by default", ends(`"enabled": true`, name1), byAddress, ""},
		{"private, and a name", ends(`"enabled": true, "enablePublicEndpoint": false`, name1), byName, ""},
		{"private, and a name for inside", ends(`"enabled": true, "enablePublicEndpoint": false`, inside), byAddress, ""},
		{"private, and a name that is closed", ends(`"enabled": true, "enablePublicEndpoint": false`, closed), byAddress, ""},
		{"private, and no name", ends(`"enabled": true, "enablePublicEndpoint": false`, ``), byAddress, ""},
		{"allowed, but no name yet", ends(`"enabled": true, "enablePublicEndpoint": false`, `"allowExternalTraffic": true`), byAddress, ""},
		{"off, and a name", ends(`"enabled": false`, name1), byName, ""},
		{"off, and public before", ends(`"enabled": false, "enablePublicEndpoint": true`, name1), byName, ""},
		{"private, said as older clusters do", `"endpoint": "34.0.0.1", "privateClusterConfig": {"enablePrivateEndpoint": true}, "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {` + name1 + `}}`, byName, ""},
		{"public, said as older clusters do", `"endpoint": "34.0.0.1", "privateClusterConfig": {"enablePrivateNodes": true}, "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {` + name1 + `}}`, byAddress, ""},
		{"off, and a name that is closed", `"status": "RUNNING", "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {` + closed + `}, "ipEndpointsConfig": {"enabled": false}}`, "", "refuses traffic from outside GKE's network; enable it: gcloud"},
		{"none yet", `"status": "PROVISIONING"`, "", "it has no endpoint; its status is PROVISIONING"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := hosts{"container.googleapis.com": func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, `{"name": "main", `+c.cluster+`}`) }}
			cl, err := New(Config{Tokens: static("t"), Transport: api})
			if err != nil {
				t.Fatal(err)
			}
			got, err := cl.Access(t.Context(), name)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || !errors.Is(err, Unavailable) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || got.Server != c.server || got.Tokens == nil {
				t.Errorf("got %+v, %v; want %s", got, err, c.server)
			}
		})
	}
}

// A cluster that does not exist is told with those that do, and with the zones
// that did not say.
func TestAbsent(t *testing.T) {
	const is = "cluster main does not exist in us-west4-a of project acme"
	for _, c := range []struct{ name, answer, want string }{
		{"others there", `{"clusters": [{"name": "one", "location": "us-west4-a"}, {"name": "two", "location": "us-west4-b"}]}`, is + "; clusters there are\n  projects/acme/locations/us-west4-a/clusters/one"},
		{"others elsewhere", `{"clusters": [{"name": "two", "location": "us-west4-b"}]}`, is + "; clusters elsewhere in the project are\n  projects/acme/locations/us-west4-b/clusters/two"},
		{"some silent", `{"clusters": [{"name": "two", "location": "us-west4-b"}], "missingZones": ["us-west4-c", "us-east1-d"]}`,
			is + "; clusters elsewhere in the project are\n  projects/acme/locations/us-west4-b/clusters/two\nGKE had no answer from us-west4-c, us-east1-d, so clusters there are not listed. That passes by itself"},
		{"all silent", `{"missingZones": ["us-west4-c"]}`, is + ".\nGKE had no answer from us-west4-c, so clusters there are not listed. That passes by itself"},
		{"none", `{}`, is + ", and the project has no cluster at all: make one with tpu_training_cluster"},
		{"no list", "", is + ": check project, location and name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := hosts{"container.googleapis.com": func(w http.ResponseWriter, _ *http.Request) {
				if c.answer == "" {
					answer(w, 403, `{"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}}`)
					return
				}
				answer(w, 200, c.answer)
			}}
			cl, err := New(Config{Tokens: static("t"), Transport: api})
			if err != nil {
				t.Fatal(err)
			}
			if got := cl.Absent(t.Context(), ClusterName{Project: "acme", Location: "us-west4-a", Cluster: "main"}); got.Error() != c.want {
				t.Errorf("got  %v\nwant %s", got, c.want)
			}
		})
	}
}
