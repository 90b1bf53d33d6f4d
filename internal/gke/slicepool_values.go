package gke

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// Single values of a slice pool that GKE takes only in a certain form. Each
// check says what is wrong with the value and what to write.

// ImageTypes are the operating systems that GKE offers for Linux nodes.
var ImageTypes = []string{"COS_CONTAINERD", "UBUNTU_CONTAINERD"}

// NetworkProfiles of accelerators: "auto" is the only one that the API knows.
var NetworkProfiles = []string{"auto"}

// GKE allows so many hosts at a time to be surplus or down in an upgrade, both
// together (https://cloud.google.com/kubernetes-engine/docs/concepts/node-pool-upgrade-strategies).
const maxUpgradeHosts = 20

var (
	nodeVersion  = regexp.MustCompile(`^[0-9]+\.[0-9]+(\.[0-9]+(-gke\.[0-9]+)?)?$`)
	accountEmail = regexp.MustCompile(`^[^@\s/:]+@[a-z0-9]([-a-z0-9.]*[a-z0-9])?\.[a-z]+$`)
	networkTag   = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	imagePath    = regexp.MustCompile(`^(https://www\.googleapis\.com/compute/v1/)?(projects/[^/\s]+/)?global/images/(family/)?[a-z]([-a-z0-9]*[a-z0-9])?$`)
)

func matches(form *regexp.Regexp, s, what, want string) error {
	if form.MatchString(s) {
		return nil
	}
	return fmt.Errorf("%q is not %s: want %s", s, what, want)
}

// CheckNodeVersion wants a version, or the beginning of one. "latest" is none:
// it would mean another version at every apply.
func CheckNodeVersion(s string) error {
	return matches(nodeVersion, s, "a GKE version", "1.34, 1.34.1 or 1.34.1-gke.2201000, for example")
}

// CheckServiceAccount wants an email address, or default.
func CheckServiceAccount(s string) error {
	if s == DefaultServiceAccount {
		return nil
	}
	return matches(accountEmail, s, "a service account", "its email address, such as NAME@PROJECT.iam.gserviceaccount.com, or "+DefaultServiceAccount)
}

// CheckNetworkTags wants network tags, each once.
func CheckNetworkTags(tags []string) error {
	for i, tag := range tags {
		if err := matches(networkTag, tag, "a network tag", "up to 63 lowercase letters, digits and dashes, starting with a letter and not ending with a dash"); err != nil {
			return err
		}
		if slices.Contains(tags[:i], tag) {
			return fmt.Errorf("%q is there twice: leave one out", tag)
		}
	}
	return nil
}

// CheckDiskImages wants paths of disk images, each once.
func CheckDiskImages(images []string) error {
	for i, image := range images {
		if err := matches(imagePath, image, "a disk image", "projects/PROJECT/global/images/IMAGE"); err != nil {
			return err
		}
		if slices.Contains(images[:i], image) {
			return fmt.Errorf("%q is there twice: leave one out", image)
		}
	}
	return nil
}

// CheckImageType wants one of ImageTypes as GKE spells it.
func CheckImageType(s string) error {
	if slices.Contains(ImageTypes, s) {
		return nil
	}
	return fmt.Errorf("%q is not an image type of nodes: want %s", s, strings.Join(ImageTypes, " or "))
}

// check says what is wrong with how GKE shall upgrade nodes.
func (u *Upgrade) check() error {
	switch {
	case u == nil || u.Strategy != "surge":
		return nil
	case u.MaxSurge+u.MaxUnavailable > maxUpgradeHosts:
		return fmt.Errorf("upgrade.max_surge (%d) and upgrade.max_unavailable (%d) are %d together; GKE allows at most %d: lower one of them",
			u.MaxSurge, u.MaxUnavailable, u.MaxSurge+u.MaxUnavailable, maxUpgradeHosts)
	case u.MaxSurge+u.MaxUnavailable == 0:
		return fmt.Errorf("upgrade.max_surge and upgrade.max_unavailable are both 0, which lets no host be upgraded: set one of them, or leave both out for max_surge = 1")
	}
	return nil
}

// refuseValues holds the single values against their forms.
func refuseValues(p SlicePool) string {
	about := func(attribute string, err error) string {
		if err == nil {
			return ""
		}
		return attribute + ": " + err.Error()
	}
	said := []string{about("node.tags", CheckNetworkTags(p.Tags)), about("node.secondary_boot_disks", CheckDiskImages(p.SecondaryDisks))}
	for _, c := range []struct {
		attribute, value string
		check            func(string) error
	}{
		{"version", p.Version, CheckNodeVersion},
		{"node.service_account", p.ServiceAccount, CheckServiceAccount},
		{"node.image_type", p.ImageType, CheckImageType},
	} {
		if c.value != "" {
			said = append(said, about(c.attribute, c.check(c.value)))
		}
	}
	if p.NetworkProfile != "" && !slices.Contains(NetworkProfiles, p.NetworkProfile) {
		said = append(said, fmt.Sprintf("node.network_profile is %q; GKE knows only %s", p.NetworkProfile, strings.Join(NetworkProfiles, ", ")))
	}
	if a := p.Autoscaling; a != nil && (a.Min < 0 || a.Max < 0) {
		said = append(said, fmt.Sprintf("autoscaling.min_hosts and max_hosts are %d and %d; a slice of %s has 0 or %d hosts", a.Min, a.Max, p.Shape.Name, p.Shape.Hosts))
	}
	if err := p.Upgrade.check(); err != nil {
		said = append(said, err.Error())
	}
	for _, s := range said {
		if s != "" {
			return s
		}
	}
	return ""
}

// allowedBy tells what the cluster does not allow its nodes. A cluster that is
// not there yet allows everything.
func (p SlicePool) allowedBy(cluster *containerpb.Cluster) error {
	if ch := cluster.GetReleaseChannel().GetChannel(); ch != containerpb.ReleaseChannel_UNSPECIFIED && p.AutoUpgrade != nil && !*p.AutoUpgrade {
		return fmt.Errorf("management.auto_upgrade is false, and the cluster is on release channel %s, which upgrades its nodes: leave it out, or take the cluster off the channel", ch)
	}
	if master := cluster.GetCurrentMasterVersion(); master != "" && p.Version != "" && OlderVersion(master, p.Version) {
		return fmt.Errorf("version is %s, and the cluster's control plane has %s; nodes are never newer than it: set %s or an older one, or upgrade the cluster first", p.Version, master, master)
	}
	return nil
}
