package fakegke

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/grpc/codes"
)

// trainingNetwork has a subnetwork with ranges for pods and services.
func trainingNetwork() Option {
	return WithSubnetworks(Subnetwork{Project: "acme", Region: "us-west4", Network: "training", Name: "tpu", Range: "10.0.0.0/20",
		Secondary: map[string]string{"pods": "10.16.0.0/14", "more-pods": "10.20.0.0/16", "services": "10.32.0.0/20", "tiny": "10.33.0.0/24"}})
}

// create makes a cluster named other, which edit changed, and returns it as it
// then is.
func (s *service) create(t *testing.T, edit func(c *containerpb.Cluster)) (*containerpb.Cluster, error) {
	t.Helper()
	c := cluster("other")
	edit(c)
	if _, err := s.CreateCluster(context.Background(), &containerpb.CreateClusterRequest{Parent: testParent, Cluster: c}); err != nil {
		return nil, err
	}
	pass(6 * time.Minute)
	return s.GetCluster(context.Background(), &containerpb.GetClusterRequest{Name: testParent + "/clusters/" + c.Name})
}

func ranges(network, subnetwork string, ip *containerpb.IPAllocationPolicy) func(c *containerpb.Cluster) {
	return func(c *containerpb.Cluster) { c.Network, c.Subnetwork, c.IpAllocationPolicy = network, subnetwork, ip }
}

func TestRangesThatAClusterGets(t *testing.T) {
	for name, tc := range map[string]struct {
		edit                                        func(c *containerpb.Cluster)
		pods, services, podsName, servicesName, net string
	}{
		"GKE's own": {edit: func(*containerpb.Cluster) {},
			pods: "10.8.0.0/14", services: "34.118.224.0/20", podsName: "gke-other-pods-e6c95d15", net: "projects/acme/global/networks/default"},
		"of a size": {edit: ranges("", "", &containerpb.IPAllocationPolicy{ClusterIpv4CidrBlock: "/20", ServicesIpv4CidrBlock: "/24"}),
			pods: "10.8.0.0/20", services: "10.8.16.0/24", podsName: "gke-other-pods-e6c95d15", servicesName: "gke-other-services-e6c95d15", net: "projects/acme/global/networks/default"},
		"asked for": {edit: ranges("", "", &containerpb.IPAllocationPolicy{ClusterIpv4CidrBlock: "10.96.0.0/16", ServicesIpv4CidrBlock: "192.168.0.0/24"}),
			pods: "10.96.0.0/16", services: "192.168.0.0/24", podsName: "gke-other-pods-e6c95d15", servicesName: "gke-other-services-e6c95d15", net: "projects/acme/global/networks/default"},
		"by the older field": {edit: func(c *containerpb.Cluster) { c.ClusterIpv4Cidr = "10.96.0.0/16" },
			pods: "10.96.0.0/16", services: "34.118.224.0/20", podsName: "gke-other-pods-e6c95d15", net: "projects/acme/global/networks/default"},
		"by name": {edit: ranges("training", "tpu", &containerpb.IPAllocationPolicy{ClusterSecondaryRangeName: "pods", ServicesSecondaryRangeName: "services"}),
			pods: "10.16.0.0/14", services: "10.32.0.0/20", podsName: "pods", servicesName: "services", net: "projects/acme/global/networks/training"},
		"by path": {edit: ranges("projects/acme/global/networks/training", "projects/acme/regions/us-west4/subnetworks/tpu", &containerpb.IPAllocationPolicy{ClusterSecondaryRangeName: "pods"}),
			pods: "10.16.0.0/14", services: "34.118.224.0/20", podsName: "pods", net: "projects/acme/global/networks/training"},
		"in a shared network that is not registered": {edit: ranges("projects/host/global/networks/shared", "projects/host/regions/us-west4/subnetworks/s", &containerpb.IPAllocationPolicy{ClusterSecondaryRangeName: "p", ServicesSecondaryRangeName: "s"}),
			pods: "10.4.0.0/14", services: "10.8.0.0/20", podsName: "p", servicesName: "s", net: "projects/host/global/networks/shared"},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, api *service) {
				c := must[*containerpb.Cluster](t)(api.create(t, tc.edit))
				ip := c.IpAllocationPolicy
				got := fmt.Sprint(ip.ClusterIpv4CidrBlock, " ", ip.ServicesIpv4CidrBlock, " ", ip.ClusterSecondaryRangeName, " ", ip.ServicesSecondaryRangeName, " ", c.NetworkConfig.Network)
				want := fmt.Sprint(tc.pods, " ", tc.services, " ", tc.podsName, " ", tc.servicesName, " ", tc.net)
				if got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if c.ClusterIpv4Cidr != tc.pods || c.ServicesIpv4Cidr != tc.services || c.NodePools[0].NetworkConfig.PodRange != tc.podsName {
					t.Errorf("%s, %s, pool in %s", c.ClusterIpv4Cidr, c.ServicesIpv4Cidr, c.NodePools[0].NetworkConfig.PodRange)
				}
			}, trainingNetwork())
		})
	}
}

func TestRangesThatGKERefuses(t *testing.T) {
	small := func(pods int64, cidr string) func(c *containerpb.Cluster) {
		return func(c *containerpb.Cluster) {
			c.DefaultMaxPodsConstraint = &containerpb.MaxPodsConstraint{MaxPodsPerNode: pods}
			c.IpAllocationPolicy = &containerpb.IPAllocationPolicy{ClusterIpv4CidrBlock: cidr}
		}
	}
	for name, tc := range map[string]struct {
		edit func(c *containerpb.Cluster)
		want string
	}{
		"no such range": {ranges("training", "tpu", &containerpb.IPAllocationPolicy{ClusterSecondaryRangeName: "nope"}),
			`Pod secondary range "nope" not found in network "https://www.googleapis.com/compute/v1/projects/acme/global/networks/training", subnetwork "tpu".`},
		"no such range of default": {ranges("", "", &containerpb.IPAllocationPolicy{ClusterSecondaryRangeName: "pods"}),
			`Pod secondary range "pods" not found in network "https://www.googleapis.com/compute/v1/projects/acme/global/networks/default", subnetwork "default".`},
		"no such range for services": {ranges("training", "tpu", &containerpb.IPAllocationPolicy{ClusterSecondaryRangeName: "pods", ServicesSecondaryRangeName: "nope"}),
			`Services secondary range "nope" not found in network "https://www.googleapis.com/compute/v1/projects/acme/global/networks/training", subnetwork "tpu".`},
		"one range for both": {ranges("training", "tpu", &containerpb.IPAllocationPolicy{ClusterSecondaryRangeName: "pods", ServicesSecondaryRangeName: "pods"}),
			"Pod secondary range name (pods) should not be the same as service secondary range name."},
		"a name and a block": {ranges("training", "tpu", &containerpb.IPAllocationPolicy{ClusterSecondaryRangeName: "pods", ClusterIpv4CidrBlock: "/14"}),
			`Pod CIDR block cannot be specified together with secondary range "pods".`},
		"no such subnetwork": {ranges("training", "other", nil), "Google Compute Engine: The resource 'projects/acme/regions/us-west4/subnetworks/other' was not found."},
		"another network":    {ranges("default", "tpu", nil), `Subnetwork "tpu" is not in network "default", it is in "training".`},
		"overlap with a cluster": {ranges("", "", &containerpb.IPAllocationPolicy{ClusterIpv4CidrBlock: "10.4.0.0/16"}),
			`Requested CIDR 10.4.0.0/16 for pods is not available in network "default" for cluster.`},
		"overlap with nodes": {ranges("", "", &containerpb.IPAllocationPolicy{ClusterIpv4CidrBlock: "10.128.0.0/14"}),
			`Requested CIDR 10.128.0.0/14 for pods is not available in network "default" for cluster.`},
		"overlap of pods and services": {ranges("", "", &containerpb.IPAllocationPolicy{ClusterIpv4CidrBlock: "10.96.0.0/14", ServicesIpv4CidrBlock: "10.97.0.0/20"}),
			`Requested CIDR 10.97.0.0/20 for services is not available in network "default" for cluster.`},
		"too small for 110 pods":    {small(110, "10.96.0.0/22"), "Cluster CIDR range is greater than maximum (22 > 21)."},
		"too small for 32 pods":     {small(32, "/24"), "Cluster CIDR range is greater than maximum (24 > 23)."},
		"too few pods":              {small(4, "/14"), "Default max pods per node must be between 8 and 256, got 4."},
		"too many pods":             {small(300, "/14"), "Default max pods per node must be between 8 and 256, got 300."},
		"no CIDR":                   {small(110, "10.96.0.1/14"), `Invalid CIDR "10.96.0.1/14" for pods.`},
		"no size":                   {small(110, "/7"), `Invalid CIDR "/7" for pods.`},
		"no room":                   {small(110, "/9"), `The network "default" does not have available private IP space in 10.0.0.0/8 to reserve a /9 block for pods for cluster other.`},
		"a range that is too small": {ranges("training", "tpu", &containerpb.IPAllocationPolicy{ClusterSecondaryRangeName: "tiny"}), "Cluster CIDR range is greater than maximum (24 > 21)."},
		"services too small":        {ranges("", "", &containerpb.IPAllocationPolicy{ServicesIpv4CidrBlock: "/28"}), "Services CIDR range is greater than maximum (28 > 27)."},
		"further pods":              {ranges("training", "tpu", &containerpb.IPAllocationPolicy{ClusterSecondaryRangeName: "pods", AdditionalPodRangesConfig: &containerpb.AdditionalPodRangesConfig{PodRangeNames: []string{"nope"}}}), `Pod secondary range "nope" not found in network "https://www.googleapis.com/compute/v1/projects/acme/global/networks/training", subnetwork "tpu".`},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, api *service) {
				_, err := api.create(t, tc.edit)
				wantError(t, err, codes.InvalidArgument, tc.want)
				if n := len(api.Clusters()); n != 1 {
					t.Errorf("a refused cluster was kept: %d", n)
				}
			}, trainingNetwork())
		})
	}
}

func TestFurtherRangesForPodsComeAndGo(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		c := must[*containerpb.Cluster](t)(api.create(t, ranges("training", "tpu", &containerpb.IPAllocationPolicy{ClusterSecondaryRangeName: "pods"})))
		update := func(u *containerpb.ClusterUpdate) error {
			_, err := api.UpdateCluster(context.Background(), &containerpb.UpdateClusterRequest{Name: testParent + "/clusters/other", Update: u})
			pass(10 * time.Minute)
			c, _ = api.GetCluster(context.Background(), &containerpb.GetClusterRequest{Name: testParent + "/clusters/other"})
			return err
		}
		more := func(name string) *containerpb.AdditionalPodRangesConfig {
			return &containerpb.AdditionalPodRangesConfig{PodRangeNames: []string{name}}
		}
		wantError(t, update(&containerpb.ClusterUpdate{AdditionalPodRangesConfig: more("pods")}), codes.InvalidArgument, `Pod range "pods" is used by the cluster already.`)
		wantError(t, update(&containerpb.ClusterUpdate{AdditionalPodRangesConfig: more("nope")}), codes.InvalidArgument,
			`Pod secondary range "nope" not found in network "https://www.googleapis.com/compute/v1/projects/acme/global/networks/training", subnetwork "tpu".`)
		if err := update(&containerpb.ClusterUpdate{AdditionalPodRangesConfig: more("more-pods")}); err != nil || len(c.IpAllocationPolicy.AdditionalPodRangesConfig.GetPodRangeNames()) != 1 {
			t.Errorf("a further range: %v, %v", err, c.IpAllocationPolicy)
		}
		wantError(t, update(&containerpb.ClusterUpdate{RemovedAdditionalPodRangesConfig: more("pods")}), codes.InvalidArgument, `Pod range "pods" is no additional pod range of the cluster.`)
		if err := update(&containerpb.ClusterUpdate{RemovedAdditionalPodRangesConfig: more("more-pods")}); err != nil || len(c.IpAllocationPolicy.AdditionalPodRangesConfig.GetPodRangeNames()) != 0 {
			t.Errorf("without it: %v, %v", err, c.IpAllocationPolicy)
		}
	}, trainingNetwork())
}
