package fakegke

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

var (
	zonePattern   = regexp.MustCompile(`^[a-z]+-[a-z]+\d+-(ai\d)?[a-z]$`)
	regionPattern = regexp.MustCompile(`^[a-z]+-[a-z]+\d+$`)
	namePattern   = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
)

// maxNameLength is GKE's limit for the names of clusters and node pools.
const maxNameLength = 40

// place is a location of a project.
type place struct{ project, location string }

func (p place) String() string { return "projects/" + p.project + "/locations/" + p.location }

// zonal reports whether the location is a zone, not a region.
func (p place) zonal() bool { return zonePattern.MatchString(p.location) }

// region is the region of the location, or the location itself if it is one.
func (p place) region() string {
	if p.zonal() {
		return p.location[:strings.LastIndex(p.location, "-")]
	}
	return p.location
}

// parse reads a resource path: "projects/P/locations/L" and then kind/name
// pairs in the order of kinds. It returns the place and the names.
func parse(path string, kinds ...string) (place, []string, error) {
	parts := strings.Split(path, "/")
	want := append([]string{"projects", "locations"}, kinds...)
	bad := len(parts) != 2*len(want)
	var names []string
	for i := 0; !bad && i < len(want); i++ {
		bad = parts[2*i] != want[i] || parts[2*i+1] == ""
		names = append(names, parts[2*i+1])
	}
	if bad {
		return place{}, nil, invalid("Malformed name %q: want %s.", path, strings.Join(want, "/*/")+"/*")
	}
	p := place{names[0], names[1]}
	if p.location != "-" && !p.zonal() && !regionPattern.MatchString(p.location) {
		return place{}, nil, denied("Permission denied on 'locations/%s' (or it may not exist).", p.location)
	}
	return p, names[2:], nil
}

// orLegacy returns name, or the path made of the old fields that requests
// carried before there were names: project, zone, then kind/name pairs.
func orLegacy(name, project, zone string, pairs ...string) string {
	if name != "" || project == "" {
		return name
	}
	return strings.Join(append([]string{"projects", project, "locations", zone}, pairs...), "/")
}

// shown is how GKE spells a path in its messages and links: zonal resources
// say zones, not locations.
func shown(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 3 && zonePattern.MatchString(parts[3]) {
		parts[2] = "zones"
	}
	return strings.Join(parts, "/")
}

// clusterOf is the path of the cluster that a node pool's path begins with.
func clusterOf(poolPath string) string {
	cluster, _, _ := strings.Cut(poolPath, "/nodePools/")
	return cluster
}

func checkName(field, name string) error {
	if len(name) > maxNameLength || !namePattern.MatchString(name) {
		return invalid("Invalid value for field %q: %q. Name must start with a lowercase letter followed by up to %d lowercase letters, numbers, or hyphens, and cannot end with a hyphen.", field, name, maxNameLength-1)
	}
	return nil
}

// zonesOf lists the zones that GKE chooses for a location that names none.
func zonesOf(p place) []string {
	if p.zonal() {
		return []string{p.location}
	}
	letters := "abc"
	switch p.location {
	case "us-east1", "europe-west1": // these two have no zone a
		letters = "bcd"
	case "us-central1":
		letters = "acf"
	}
	var zones []string
	for _, l := range letters {
		zones = append(zones, fmt.Sprintf("%s-%c", p.location, l))
	}
	return zones
}

// digest is n hexadecimal digits that depend on parts and nothing else: what
// GKE draws at random is here the same after a restart.
func digest(n int, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])[:n]
}

// projectOf is the project of a resource path.
func projectOf(path string) string { return strings.Split(path, "/")[1] }
