package gke

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// Problem is what GKE would refuse, at an attribute.
type Problem struct {
	Attribute, Text string
	// New: only a cluster that is to be made has it; one that is there may say
	// both of two things that agree.
	New bool
}

// most is how many authorized networks a control plane takes.
const mostAuthorizedNetworks = 100

// Check tells what of a specification GKE would refuse. What is left out is
// not known or not managed, and no problem.
func (t TrainingCluster) Check() []Problem {
	var out []Problem
	say := func(attribute, format string, args ...any) {
		out = append(out, Problem{Attribute: attribute, Text: fmt.Sprintf(format, args...)})
	}
	out = append(out, t.checkPairsOfRanges()...)
	t.checkNetwork(say)
	t.checkRanges(say)
	t.checkEndpoints(say)
	t.checkZones(say)
	t.checkMaintenance(say)
	t.checkServices(say)
	for _, name := range slices.Sorted(maps.Keys(t.CPUPools)) {
		t.checkPool(name, say)
	}
	if err := t.CheckOverrides(); err != nil {
		say("cluster_overrides", "%v", err)
	}
	return out
}

type sayer = func(attribute, format string, args ...any)

func (v Settings) text(name string) string   { s, _ := v[name].(string); return s }
func (v Settings) is(name string) bool       { b, _ := v[name].(bool); return b }
func (v Settings) not(name string) bool      { b, ok := v[name].(bool); return ok && !b }
func (v Settings) list(name string) []string { l, _ := v[name].([]string); return l }

// prefixOf reads /14 or 10.0.0.0/14.
func prefixOf(s string) (bits int, p netip.Prefix, err error) {
	if size, ok := strings.CutPrefix(s, "/"); ok {
		bits, err = strconv.Atoi(size)
		if err != nil || bits < 0 || bits > 32 {
			return 0, p, fmt.Errorf("%q is not a size of a range: want one such as /14", s)
		}
		return bits, p, nil
	}
	p, err = netip.ParsePrefix(s)
	switch {
	case err != nil || !p.Addr().Is4():
		return 0, p, fmt.Errorf("%q is not a range of IPv4 addresses: want one such as 10.0.0.0/14, or /14 for GKE to find one of that size", s)
	case p != p.Masked():
		return 0, p, fmt.Errorf("%q does not begin where the range does: write %s", s, p.Masked())
	}
	return p.Bits(), p, nil
}

// The sizes that GKE takes, as prefix lengths.
const (
	largestPods, smallestPods         = 9, 24
	largestServices, smallestServices = 16, 28
)

// checkPairsOfRanges: of a new cluster, a range is named or made. One that is
// there has a name and addresses, and an import writes down both.
func (t TrainingCluster) checkPairsOfRanges() (out []Problem) {
	for _, kind := range []string{"pods", "services"} {
		cidr := t.Settings.text("ip_ranges." + kind + "_cidr")
		if t.Settings.text("ip_ranges."+kind+"_range") != "" && cidr != "" {
			out = append(out, Problem{Attribute: "ip_ranges." + kind + "_cidr", New: !strings.HasPrefix(cidr, "/"),
				Text: fmt.Sprintf("ip_ranges has both %[1]s_range, a range that the subnetwork has, and %[1]s_cidr, one that GKE makes: leave one out", kind)})
		}
	}
	return out
}

func (t TrainingCluster) checkRanges(say sayer) {
	v := t.Settings
	podBits, pods := 0, netip.Prefix{}
	if s := v.text("ip_ranges.pods_cidr"); s != "" {
		var err error
		switch podBits, pods, err = prefixOf(s); {
		case err != nil:
			say("ip_ranges.pods_cidr", "%v", err)
		case podBits < largestPods || podBits > smallestPods:
			say("ip_ranges.pods_cidr", "a range of /%d is not one for pods: GKE takes /%d to /%d", podBits, largestPods, smallestPods)
			podBits = 0
		}
	}
	if s := v.text("ip_ranges.services_cidr"); s != "" {
		switch bits, services, err := prefixOf(s); {
		case err != nil:
			say("ip_ranges.services_cidr", "%v", err)
		case bits < largestServices || bits > smallestServices:
			say("ip_ranges.services_cidr", "a range of /%d is not one for services: GKE takes /%d to /%d", bits, largestServices, smallestServices)
		case pods.IsValid() && services.IsValid() && pods.Overlaps(services):
			say("ip_ranges.services_cidr", "the ranges of pods (%s) and services (%s) overlap", pods, services)
		}
	}
	if n, ok := v["max_pods_per_node"].(int); ok && (n < 8 || n > 256) {
		say("max_pods_per_node", "%d is not between 8 and 256", n)
	} else if podBits > 0 {
		t.checkCapacity(podBits, say)
	}
}

// nodeBits is the prefix length of one node's pod range: GKE gives a node twice
// the addresses of its pods, rounded up to a power of two.
func nodeBits(pods int) int {
	bits := 32
	for n := 1; n < 2*pods; n *= 2 {
		bits--
	}
	return bits
}

// defaultMaxPods is GKE's, and a CPU pool's unless it says otherwise.
const defaultMaxPods = 110

// checkCapacity holds the range of pods against the hosts that the cluster's own
// pools can have. Slices need room besides: a slice pool's hosts have small
// ranges, and are not known here.
func (t TrainingCluster) checkCapacity(podBits int, say sayer) {
	pods := defaultMaxPods
	if n, ok := t.Settings["max_pods_per_node"].(int); ok {
		pods = n
	}
	need, have, hosts := 0, 1<<(32-podBits), 0
	for _, p := range t.CPUPools {
		n := p.most(t.zoneCount())
		hosts += n
		need += n << (32 - nodeBits(either(p.MaxPods, pods)))
	}
	if need > have {
		several := ""
		if t.zoneCount() > 1 && len(t.Settings.list("zones")) == 0 {
			several = fmt.Sprintf(" in the %d zones that GKE chooses where zones says nothing", regionalZones)
		}
		say("ip_ranges.pods_cidr", "a range of /%d has %d addresses, and the %d nodes that cpu_pools can have%s take %d (each twice its pods, rounded up to a power of two), before any TPU host: choose a larger range, fewer nodes or a smaller max_pods_per_node",
			podBits, have, hosts, several, need)
	}
}

// regionalZones is in how many zones GKE puts the nodes of a regional cluster
// that names none: https://cloud.google.com/kubernetes-engine/docs/concepts/regional-clusters
const regionalZones = 3

func (t TrainingCluster) regional() bool { return t.Name.Location != "" && !t.Name.Zonal() }

// zoneCount is how many zones the cluster has, as far as that is known.
func (t TrainingCluster) zoneCount() int {
	switch n := len(t.Settings.list("zones")); {
	case n > 0:
		return n
	case t.regional() && !t.unknown("zones"):
		return regionalZones
	}
	return 1
}

// most is how many nodes a pool can have.
func (p CPUPool) most(zones int) int {
	if len(p.Zones) > 0 {
		zones = len(p.Zones)
	}
	switch {
	case p.Autoscaling != nil && p.Autoscaling.TotalMax > 0:
		return p.Autoscaling.TotalMax
	case p.Autoscaling != nil:
		return p.Autoscaling.Max * zones
	case p.NodeCount != nil:
		return *p.NodeCount * zones
	}
	return 0
}

func (t TrainingCluster) checkEndpoints(say sayer) {
	v := t.Settings
	networks, authorized := v["control_plane.authorized_networks"].(map[string]string)
	if v.not("control_plane.ip_endpoint") {
		// Left out, GKE makes a cluster whose name answers nobody.
		if !v.is("control_plane.dns_endpoint") && !t.unknown("control_plane.dns_endpoint") {
			say("control_plane.ip_endpoint", "with neither ip_endpoint nor dns_endpoint nothing reaches the control plane: set dns_endpoint = true beside it")
		}
		for _, name := range []string{"private_endpoint", "global_access", "google_cloud_access"} {
			if v.is("control_plane." + name) {
				say("control_plane."+name, "it is about the IP endpoint, which ip_endpoint = false turns off: leave it out")
			}
		}
		if authorized {
			say("control_plane.authorized_networks", "they guard the IP endpoint, which ip_endpoint = false turns off: leave them out")
		}
	}
	if v.is("control_plane.private_endpoint") && !authorized && !t.unknown("control_plane.authorized_networks") && !v.not("control_plane.ip_endpoint") {
		say("control_plane.private_endpoint", "a private endpoint needs authorized_networks: the ranges that may reach it, or {} for the cluster's own subnetwork only")
	}
	if len(networks) > mostAuthorizedNetworks {
		say("control_plane.authorized_networks", "%d networks; GKE takes %d", len(networks), mostAuthorizedNetworks)
	}
	for _, cidr := range slices.Sorted(maps.Keys(networks)) {
		if p, err := netip.ParsePrefix(cidr); err != nil || !p.Addr().Is4() {
			say("control_plane.authorized_networks", "%q is not a range of IPv4 addresses: the keys are ranges such as 203.0.113.0/24, the values their names", cidr)
		} else if p != p.Masked() {
			say("control_plane.authorized_networks", "%q does not begin where the range does: write %s", cidr, p.Masked())
		} else if v.is("control_plane.private_endpoint") && p.Bits() < 8 {
			say("control_plane.authorized_networks", "%q is not a range of internal addresses, which are all that reach a private endpoint", cidr)
		}
	}
}

// unknown tells whether a setting has a value that is known at apply only.
func (t TrainingCluster) unknown(name string) bool { return slices.Contains(t.Unknown, name) }

func (t TrainingCluster) checkZones(say sayer) {
	if t.Name.Location == "" {
		return
	}
	check := func(attribute string, zones []string) {
		for _, z := range zones {
			if n := (ClusterName{Location: z}); !n.Zonal() || n.Region() != t.Name.Region() {
				say(attribute, "%q is not a zone of the cluster's region, %s", z, t.Name.Region())
			}
		}
	}
	zones := t.Settings.list("zones")
	check("zones", zones)
	check("autoprovisioning.zones", t.Settings.list("autoprovisioning.zones"))
	for _, name := range slices.Sorted(maps.Keys(t.CPUPools)) {
		check("cpu_pools", t.CPUPools[name].Zones)
	}
	if t.Name.Zonal() && len(zones) > 0 && !slices.Contains(zones, t.Name.Location) {
		say("zones", "the cluster is in zone %s, which zones must name too", t.Name.Location)
	}
}

func (t TrainingCluster) checkServices(say sayer) {
	v := t.Settings
	switch provider := v.text("dns.provider"); {
	case v.text("dns.scope") != "" && provider != "CLOUD_DNS" && !t.unknown("dns.provider"):
		say("dns.scope", `a scope is of Cloud DNS: set provider = "CLOUD_DNS", or leave it out`)
	case v.text("dns.scope") == "VPC_SCOPE" && v.text("dns.domain") == "" && !t.unknown("dns.domain"):
		say("dns.scope", "records for the whole VPC need a domain of their own: set domain")
	case v.text("dns.domain") != "" && v.text("dns.scope") != "VPC_SCOPE" && !t.unknown("dns.scope"):
		say("dns.domain", `a domain needs scope = "VPC_SCOPE"; with any other the domain is cluster.local`)
	}
	checkComponents(say, "logging.components", v, containerpb.LoggingComponentConfig_Component_value)
	checkComponents(say, "monitoring.components", v, containerpb.MonitoringComponentConfig_Component_value)
	for _, addon := range []string{"gcs_fuse_csi_driver", "high_scale_checkpointing"} {
		if v.is("addons."+addon) && v.not("workload_identity") {
			say("addons."+addon, "it needs Workload Identity, which workload_identity = false turns off")
		}
	}
	if v.is("addons.high_scale_checkpointing") && !v.is("addons.gcs_fuse_csi_driver") && !t.unknown("addons.gcs_fuse_csi_driver") {
		say("addons.high_scale_checkpointing", "checkpoints reach Cloud Storage by another addon: set gcs_fuse_csi_driver = true too")
	}
	t.checkLimits(say)
}

// checkComponents leaves out what is no component at all: that is refused by itself.
func checkComponents(say sayer, attribute string, v Settings, known map[string]int32) {
	l := slices.DeleteFunc(slices.Clone(v.list(attribute)), func(name string) bool { return known[name] == 0 })
	if len(l) > 0 && !slices.Contains(l, "SYSTEM_COMPONENTS") {
		say(attribute, "GKE takes %s only together with SYSTEM_COMPONENTS", strings.Join(l, ", "))
	}
}

func (t TrainingCluster) checkLimits(say sayer) {
	limits, ok := t.Settings["autoprovisioning.limits"].(map[string]map[string]any)
	if t.Settings.is("autoprovisioning.enabled") && !t.unknown("autoprovisioning.limits") {
		for _, need := range []string{"cpu", "memory"} {
			if limits[need] == nil {
				say("autoprovisioning.limits", "node auto-provisioning needs a limit of %s (cpu in cores, memory in GB)", need)
			}
		}
	}
	if !ok {
		return
	}
	if len(limits) > 0 && !t.Settings.is("autoprovisioning.enabled") && !t.unknown("autoprovisioning.enabled") {
		say("autoprovisioning.limits", "limits are of node auto-provisioning: set enabled = true, or leave them out")
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if name != "cpu" && name != "memory" && !strings.HasPrefix(name, "nvidia-") && !slices.Contains(tpuResources(), name) {
			say("autoprovisioning.limits", "%q is nothing that GKE limits: want cpu, memory or a TPU (%s)", name, strings.Join(tpuResources(), ", "))
		}
		low, _ := limits[name]["minimum"].(int)
		if high, ok := limits[name]["maximum"].(int); ok && high < low {
			say("autoprovisioning.limits", "%s: the maximum, %d, is below the minimum, %d", name, high, low)
		}
	}
}

// tpuResources are the names under which node auto-provisioning limits chips:
// the values of the accelerator label of nodes.
func tpuResources() []string {
	var out []string
	for _, g := range accelerator.Generations() {
		facts, _ := g.Facts()
		if !slices.Contains(out, facts.AcceleratorLabel) {
			out = append(out, facts.AcceleratorLabel)
		}
	}
	return out
}

func (t TrainingCluster) checkPool(name string, say sayer) {
	p := t.CPUPools[name]
	at := fmt.Sprintf("cpu_pools[%q]", name)
	if a := p.Autoscaling; a != nil {
		least, most := a.Min+a.TotalMin, a.Max+a.TotalMax
		switch {
		case p.NodeCount != nil:
			say("cpu_pools", "%s has both node_count and autoscaling: the autoscaler decides how many nodes there are; leave node_count out", at)
		case most < 1:
			say("cpu_pools", "%s: an autoscaled pool needs max_nodes of at least 1", at)
		case least > most:
			say("cpu_pools", "%s: min_nodes, %d, is above max_nodes, %d", at, least, most)
		}
	}
	if p.MaxPods != 0 && (p.MaxPods < 8 || p.MaxPods > 256) {
		say("cpu_pools", "%s: max_pods_per_node %d is not between 8 and 256", at, p.MaxPods)
	}
	if p.Version != "" && t.MinVersion != "" && OlderVersion(t.MinVersion, p.Version) && strings.Count(t.MinVersion, ".") >= strings.Count(p.Version, ".") {
		say("cpu_pools", "%s: version %s is newer than the control plane's min_master_version, %s: nodes may not be newer than the control plane", at, p.Version, t.MinVersion)
	}
}
