package gke

import "regexp"

// A network and a subnetwork are given by name or by path, also as a whole URL.
var (
	networkPath    = regexp.MustCompile(`^(?:(?:https://(?:www|compute)\.googleapis\.com/compute/[a-z0-9]+/)?(?:projects/[^/\s]+/)?global/networks/)?[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$`)
	subnetworkPath = regexp.MustCompile(`^(?:(?:https://(?:www|compute)\.googleapis\.com/compute/[a-z0-9]+/)?(?:projects/[^/\s]+/)?regions/([^/\s]+)/subnetworks/)?[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$`)
)

func (t TrainingCluster) checkNetwork(say sayer) {
	if s := t.Settings.text("network"); s != "" && !networkPath.MatchString(s) {
		say("network", "%q is not a network: want its name, or projects/PROJECT/global/networks/NAME where another project shares it", s)
	}
	s := t.Settings.text("subnetwork")
	if s == "" {
		return
	}
	switch m := subnetworkPath.FindStringSubmatch(s); {
	case m == nil:
		say("subnetwork", "%q is not a subnetwork: want its name, or projects/PROJECT/regions/REGION/subnetworks/NAME where another project shares it", s)
	case m[1] != "" && t.Name.Location != "" && m[1] != t.Name.Region():
		say("subnetwork", "it is in region %s, and the cluster in %s: a cluster's nodes are in its own region", m[1], t.Name.Region())
	}
}
