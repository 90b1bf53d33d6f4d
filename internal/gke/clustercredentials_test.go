package gke

import (
	"encoding/base64"
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
