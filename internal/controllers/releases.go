package controllers

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// The newest releases that this build installs, and its defaults.
const (
	JobSetVersion = "v0.12.0"
	KueueVersion  = "v0.19.0"
)

// pair is a JobSet and a Kueue release that fit each other: an older Kueue
// would drop the JobSet fields it does not know, and no two others were tried.
type pair struct{ jobSet, kueue string }

// pairs are the releases whose manifests are embedded, the newest first. The
// older one stores Kueue's objects as v1beta1 and is where clusters come from
// that were set up in 2025.
var pairs = []pair{
	{JobSetVersion, KueueVersion},
	{"v0.10.1", "v0.15.2"},
}

// oldestKueue can be upgraded from: it was the first to serve v1beta2, which
// all newer ones store. Kueue's own instructions go through it too.
const oldestKueue = "v0.15.0"

// Versions lists the releases of JobSet and of Kueue that can be installed, the
// newest first.
func Versions() (jobSets, kueues []string) {
	for _, p := range pairs {
		jobSets, kueues = append(jobSets, p.jobSet), append(kueues, p.kueue)
	}
	return jobSets, kueues
}

// version is the release of p that c asks for.
func (c Config) version(p part) string {
	v, newest := c.Kueue.Version, KueueVersion
	if p == jobSet {
		v, newest = c.JobSet.Version, JobSetVersion
	}
	if v == "" {
		return newest
	}
	return v
}

// validateVersions reports releases that are not embedded, and pairs that do
// not fit. A release that somebody else installs is theirs to fit.
func (c Config) validateVersions() error {
	jobSets, kueues := Versions()
	for _, p := range c.parts() {
		known := kueues
		if p == jobSet {
			known = jobSets
		}
		if _, err := manifests.ReadFile("manifests/" + p.file(c.version(p))); err != nil {
			return fmt.Errorf("%s %s is not one that can be installed: want %s", p.title(), c.version(p), strings.Join(known, " or "))
		}
	}
	if c.JobSet.Disabled || c.Kueue.Disabled {
		return nil
	}
	var fit []string
	for _, p := range pairs {
		if p.jobSet == c.version(jobSet) && p.kueue == c.version(kueue) {
			return nil
		}
		fit = append(fit, fmt.Sprintf("JobSet %s with Kueue %s", p.jobSet, p.kueue))
	}
	return fmt.Errorf("JobSet %s and Kueue %s do not fit each other: want %s", c.version(jobSet), c.version(kueue), strings.Join(fit, ", or "))
}

// older tells whether release a comes before b. What is no version (a digest, a
// build of one's own) is not older than anything.
func older(a, b string) bool {
	x, err := version.ParseSemantic(a)
	if err != nil {
		return false
	}
	y, err := version.ParseSemantic(b)
	return err == nil && x.LessThan(y)
}

// CheckUpgrade reports whether an install with c would refuse to replace these
// releases; "" is none.
func (c Config) CheckUpgrade(jobSetVersion, kueueVersion string) error {
	for _, p := range c.parts() {
		from := kueueVersion
		if p == jobSet {
			from = jobSetVersion
		}
		if err := checkChange(p, from, c.version(p)); err != nil {
			return err
		}
	}
	return nil
}

// checkChange reports a change of release that would lose objects.
func checkChange(p part, from, to string) error {
	switch {
	case older(to, from):
		return fmt.Errorf("%s %s cannot be replaced by the older %s: it may not read what the newer one stored. Ask for %s, or remove the controllers first (with their queues and jobs)",
			p.title(), from, to, from)
	case p == kueue && older(from, oldestKueue):
		return fmt.Errorf("%s %s cannot be upgraded to %s in one step: its objects are in versions that the newer one does not know. Upgrade it to v0.15.2 by its own instructions first, or remove it", p.title(), from, to)
	}
	return nil
}
