package gke

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"golang.org/x/oauth2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// EndpointKind is one of the ways to a cluster's API server.
type EndpointKind string

// The ways to an API server.
const (
	EndpointIP        EndpointKind = "ip"         // the address that GKE gives as the cluster's: public, or private if there is no public one
	EndpointPrivateIP EndpointKind = "private_ip" // from inside the VPC
	EndpointDNS       EndpointKind = "dns"        // a name; IAM decides who gets through
)

// EndpointKinds are all of them.
func EndpointKinds() []EndpointKind {
	return []EndpointKind{EndpointIP, EndpointPrivateIP, EndpointDNS}
}

// opensDNS says how a DNS endpoint comes to answer everybody whom IAM lets through.
const opensDNS = "enable it: gcloud container clusters update --enable-dns-access, or control_plane = { dns_endpoint = true } of its tpu_training_cluster"

// ClusterCredentials are what any Kubernetes client needs to reach a cluster
// for as long as the token lives.
type ClusterCredentials struct {
	Endpoint string    // host, without https://
	CA       []byte    // PEM; nil when the endpoint's certificate is signed by a public authority
	Token    string    // a secret
	Expiry   time.Time // of Token; zero when it is not known
}

// ClusterCredentials reads the cluster's endpoint, and gets a token with its
// whole life before it.
func (c *Client) ClusterCredentials(ctx context.Context, n ClusterName, kind EndpointKind) (ClusterCredentials, error) {
	cluster, err := c.GetCluster(ctx, n)
	if err != nil {
		return ClusterCredentials{}, err
	}
	var out ClusterCredentials
	if out.Endpoint, err = endpointOf(cluster, kind); err != nil {
		return ClusterCredentials{}, notReached(n, Other, err)
	}
	if kind != EndpointDNS { // its certificate is Google's own
		if out.CA, err = CA(cluster); err != nil {
			return ClusterCredentials{}, notReached(n, Other, err)
		}
	}
	var token *oauth2.Token
	if own, ok := c.tokens.(*Credentials); ok {
		token, err = own.Fresh()
	} else {
		token, err = c.tokens.Token()
	}
	if err != nil {
		return ClusterCredentials{}, wrap(ctx, "getting a token for cluster", n.String(), n.Location, err)
	}
	out.Token, out.Expiry = token.AccessToken, token.Expiry
	return out, nil
}

// Access finds how to reach a cluster's API server, with the same credentials
// as the Container API: by its public address; by its DNS name where there is no
// public address and the name answers everybody whom IAM lets through; else by
// its private address.
func (c *Client) Access(ctx context.Context, n ClusterName) (kube.Access, error) {
	cluster, err := c.GetCluster(ctx, n)
	if err != nil {
		return kube.Access{}, err
	}
	dns := cluster.GetControlPlaneEndpointsConfig().GetDnsEndpointConfig()
	if dns.GetEndpoint() != "" && dns.GetAllowExternalTraffic() && !publicAddress(cluster) {
		// The DNS endpoint has a certificate of Google's public authority.
		return kube.Access{Name: n.String(), Server: "https://" + dns.GetEndpoint(), Tokens: c.tokens}, nil
	}
	if cluster.GetEndpoint() == "" {
		why := fmt.Errorf("it has no endpoint; its status is %s", cluster.GetStatus())
		if dns.GetEndpoint() != "" && !dns.GetAllowExternalTraffic() {
			why = fmt.Errorf("%w. Its DNS endpoint refuses traffic from outside GKE's network; %s", why, opensDNS)
		}
		return kube.Access{}, notReached(n, Unavailable, why)
	}
	ca, err := CA(cluster)
	if err != nil {
		return kube.Access{}, notReached(n, Other, err)
	}
	return kube.Access{Name: n.String(), Server: "https://" + cluster.GetEndpoint(), CA: ca, Tokens: c.tokens}, nil
}

// publicAddress tells whether the API server has an IP address that answers
// from outside its VPC. Clusters of before the DNS endpoint say it in their
// private cluster configuration.
func publicAddress(cluster *containerpb.Cluster) bool {
	ip := cluster.GetControlPlaneEndpointsConfig().GetIpEndpointsConfig()
	switch {
	case ip != nil && ip.Enabled != nil && !ip.GetEnabled():
		return false
	case ip != nil && ip.EnablePublicEndpoint != nil:
		return ip.GetEnablePublicEndpoint()
	}
	return !cluster.GetPrivateClusterConfig().GetEnablePrivateEndpoint()
}

func notReached(n ClusterName, cause Cause, err error) error {
	return &Error{Verb: "reaching cluster", Object: n.String(), Zone: n.Location, Cause: cause, Message: err.Error(), Err: err}
}

// endpointOf is the host of a cluster's API server, or why there is none of
// this kind.
func endpointOf(cluster *containerpb.Cluster, kind EndpointKind) (string, error) {
	dns := cluster.GetControlPlaneEndpointsConfig().GetDnsEndpointConfig()
	var host, hint string
	switch kind {
	case EndpointIP:
		host = cluster.GetEndpoint()
		if dns.GetEndpoint() != "" {
			hint = `; it has a DNS endpoint: endpoint_type = "dns"`
		}
	case EndpointPrivateIP:
		host = cluster.GetControlPlaneEndpointsConfig().GetIpEndpointsConfig().GetPrivateEndpoint()
		if host == "" {
			host = cluster.GetPrivateClusterConfig().GetPrivateEndpoint()
		}
	case EndpointDNS:
		host = dns.GetEndpoint()
		hint = "; " + opensDNS
		if host != "" && dns.AllowExternalTraffic != nil && !dns.GetAllowExternalTraffic() {
			hint, host = "; it has a DNS endpoint that refuses traffic from outside GKE's network; "+opensDNS, ""
		}
	default:
		return "", fmt.Errorf("%q is no kind of endpoint: want one of %v", kind, EndpointKinds())
	}
	if host != "" {
		return host, nil
	}
	if status := cluster.GetStatus(); slices.Contains([]containerpb.Cluster_Status{containerpb.Cluster_PROVISIONING, containerpb.Cluster_ERROR, containerpb.Cluster_STOPPING}, status) {
		hint = fmt.Sprintf("; its status is %s", status)
	}
	return "", fmt.Errorf("it has no endpoint of type %s%s", kind, hint)
}
