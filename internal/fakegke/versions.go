package fakegke

import (
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"k8s.io/apimachinery/pkg/util/version"
)

// versions of the release channels, newest first; the first is the default.
var versions = []struct {
	channel containerpb.ReleaseChannel_Channel
	valid   []string
}{
	{containerpb.ReleaseChannel_RAPID, []string{"1.36.2-gke.1098000", "1.36.1-gke.1412000", "1.35.5-gke.1241000"}},
	{containerpb.ReleaseChannel_REGULAR, []string{"1.35.5-gke.1241000", "1.35.3-gke.1389000", "1.34.6-gke.1154000"}},
	{containerpb.ReleaseChannel_STABLE, []string{"1.34.6-gke.1154000", "1.33.9-gke.1072000"}},
	{containerpb.ReleaseChannel_EXTENDED, []string{"1.35.5-gke.1241000", "1.34.6-gke.1154000", "1.33.9-gke.1072000"}},
}

// maxNodeSkew is how many minor versions nodes may be behind their control plane.
const maxNodeSkew = 2

// allVersions of all channels, newest first.
func allVersions() []string {
	var out []string
	for _, v := range versions {
		out = append(out, v.valid...)
	}
	slices.SortFunc(out, func(a, b string) int { return -compareVersions(a, b) })
	return slices.Compact(out)
}

// compareVersions orders GKE's versions, such as 1.36.2-gke.1098000.
func compareVersions(a, b string) int {
	v, err := version.ParseSemantic(a)
	w, err2 := version.ParseSemantic(b)
	if err != nil || err2 != nil { // not a version of ours: only the same is equal
		return strings.Compare(a, b)
	}
	if v.LessThan(w) {
		return -1
	}
	if w.LessThan(v) {
		return 1
	}
	return 0
}

// minorsBetween is how many minor versions b is ahead of a.
func minorsBetween(a, b string) int {
	v, err := version.ParseSemantic(a)
	w, err2 := version.ParseSemantic(b)
	if err != nil || err2 != nil {
		return 0
	}
	return int(w.Minor()) - int(v.Minor())
}

// validVersions of a channel, newest first; outside of channels all are valid.
// The default is the first, or REGULAR's outside of channels.
func validVersions(channel containerpb.ReleaseChannel_Channel) (valid []string, def string) {
	for _, v := range versions {
		if v.channel == channel {
			return v.valid, v.valid[0]
		}
	}
	return allVersions(), versions[1].valid[0]
}

// resolveVersion turns what a request asks for ("", "-", "latest", "1.35",
// "1.35.5", or a whole version) into a version of the channel.
func resolveVersion(want string, channel containerpb.ReleaseChannel_Channel) (string, error) {
	valid, def := validVersions(channel)
	switch want {
	case "", "-":
		return def, nil
	case "latest":
		return valid[0], nil
	}
	for _, v := range valid {
		if aliases(want, v) {
			return v, nil
		}
	}
	if slices.ContainsFunc(allVersions(), func(v string) bool { return aliases(want, v) }) {
		// terraform-google-modules/terraform-google-kubernetes-engine issue 2177
		return "", invalid("Master version must be one of %q channel supported versions [%s].", channel, strings.Join(valid, ", "))
	}
	return "", invalid("Master version %q is unsupported.", want)
}

// aliases reports whether want is v or a beginning of it, such as 1.35 or 1.35.5.
func aliases(want, v string) bool {
	return v == want || strings.HasPrefix(v, want+".") || strings.HasPrefix(v, want+"-")
}

// upgradeMaster moves a control plane to the version that a request asks for.
func upgradeMaster(c *containerpb.Cluster, want string) error {
	have := c.CurrentMasterVersion
	if want == have { // also one that the channel no longer offers
		return nil
	}
	v, err := resolveVersion(want, c.ReleaseChannel.GetChannel())
	if err != nil {
		return err
	}
	switch minors := minorsBetween(have, v); {
	case minors < 0: // an older patch of the same minor is a valid way back
		return invalid("Master cannot be downgraded from %s to %s.", have, v)
	case minors > 1:
		return invalid("Master cannot be upgraded to %q: cannot upgrade the master more than a minor version at a time.", v)
	}
	c.CurrentMasterVersion = v
	return nil
}

// checkSkew refuses an upgrade of the control plane that would leave nodes too
// far behind.
func checkSkew(st state, path string, c *containerpb.Cluster, want string) error {
	v, err := resolveVersion(want, c.ReleaseChannel.GetChannel())
	if err != nil {
		return nil //nolint:nilerr // upgradeMaster says so
	}
	for _, pool := range st.poolsOf(path) {
		p := st.pools[pool]
		if minorsBetween(p.Version, v) > maxNodeSkew {
			return invalid("Master cannot be upgraded to %q: node pool %q runs %s, and nodes can be at most %d minor versions older than the master.", v, p.Name, p.Version, maxNodeSkew)
		}
	}
	return nil
}

// versionOfNodes resolves the version that a node pool asks for. "-" and ""
// are the control plane's.
func versionOfNodes(c *containerpb.Cluster, want string) (string, error) {
	master := c.CurrentMasterVersion
	if want == "" || want == "-" || want == master {
		return master, nil
	}
	for _, v := range allVersions() {
		if !aliases(want, v) {
			continue
		}
		if minorsBetween(master, v) > 0 { // hashicorp/terraform-provider-google issue 6405
			return "", invalid("Node version %q must not have a greater minor version than master version %q.", v, master)
		}
		if minorsBetween(v, master) > maxNodeSkew {
			return "", invalid("Node version %q is too old for master version %q: nodes can be at most %d minor versions older.", v, master, maxNodeSkew)
		}
		return v, nil
	}
	return "", invalid("Node version %q is unsupported.", want)
}

// nodeVersion is the version of a cluster's nodes as the deprecated field has
// it: the oldest, with an asterisk when there are others.
func nodeVersion(pools []*containerpb.NodePool, def string) string {
	if len(pools) == 0 {
		return def
	}
	oldest, mixed := pools[0].Version, false
	for _, p := range pools[1:] {
		mixed = mixed || p.Version != pools[0].Version
		if compareVersions(p.Version, oldest) < 0 {
			oldest = p.Version
		}
	}
	if mixed {
		return oldest + " *"
	}
	return oldest
}

func serverConfig() *containerpb.ServerConfig {
	c := &containerpb.ServerConfig{
		DefaultClusterVersion: versions[1].valid[0],
		ValidMasterVersions:   allVersions(),
		ValidNodeVersions:     allVersions(),
		DefaultImageType:      "COS_CONTAINERD",
		ValidImageTypes:       []string{"COS_CONTAINERD", "UBUNTU_CONTAINERD", "WINDOWS_LTSC_CONTAINERD"},
	}
	for _, v := range versions {
		c.Channels = append(c.Channels, &containerpb.ServerConfig_ReleaseChannelConfig{
			Channel: v.channel, DefaultVersion: v.valid[0], ValidVersions: v.valid, UpgradeTargetVersion: v.valid[0],
		})
	}
	return c
}
