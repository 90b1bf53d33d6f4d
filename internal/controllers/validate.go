package controllers

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// usedPorts are those that the pods of the two releases already use.
var usedPorts = map[int]string{8081: "health checks", 8082: "Kueue's visibility API", 8443: "metrics"}

// Validate reports what no cluster could accept, and releases that do not fit
// each other.
func (c Config) Validate() error {
	if err := c.validateVersions(); err != nil {
		return err
	}
	c = c.WithDefaults()
	if len(c.parts()) == 0 {
		return fmt.Errorf("neither JobSet nor Kueue is to be installed: enable one of them, or leave the job controllers out")
	}
	if err := validatePort(c.WebhookPort); err != nil {
		return err
	}
	if err := c.validatePlacement(); err != nil {
		return err
	}
	for _, p := range c.parts() {
		if n := c.replicas(p); n < 1 {
			return fmt.Errorf("%s replicas %d: want at least 1", p.title(), n)
		}
		if err := c.resources(p).validate(); err != nil {
			return fmt.Errorf("resources of %s: %w", p.title(), err)
		}
		if err := validateGates(c.gates(p)); err != nil {
			return fmt.Errorf("feature gates of %s: %w", p.title(), err)
		}
	}
	if c.MaxHosts < 0 {
		return fmt.Errorf("max hosts %d: want the number of TPU hosts, or nothing", c.MaxHosts)
	}
	if len(c.JobSet.FeatureGates) > 0 && older(c.version(jobSet), JobSetVersion) {
		return fmt.Errorf("feature gates of JobSet: %s has none", c.version(jobSet))
	}
	if c.Kueue.Disabled {
		return nil
	}
	return c.Kueue.validate(c.version(kueue))
}

func validatePort(port int) error {
	if port < 1024 || port > 65535 {
		return fmt.Errorf("webhook port %d: want 1024 to 65535, because the controllers run without privileges; private GKE clusters need %d", port, DefaultWebhookPort)
	}
	if use, ok := usedPorts[port]; ok {
		ports := slices.Sorted(maps.Keys(usedPorts))
		return fmt.Errorf("webhook port %d is taken by %s in the same pods (so are %v); private GKE clusters need %d", port, use, ports, DefaultWebhookPort)
	}
	return nil
}

// gateName is how Kubernetes components name their feature gates.
var gateName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

func validateGates(gates map[string]bool) error {
	for _, g := range slices.Sorted(maps.Keys(gates)) {
		if !gateName.MatchString(g) {
			return fmt.Errorf("%q is not the name of one, such as TopologyAwareScheduling", g)
		}
	}
	return nil
}

func (c Config) gates(p part) map[string]bool {
	if p == jobSet {
		return c.JobSet.FeatureGates
	}
	return c.Kueue.FeatureGates
}

// fairPreemptions are the combinations that Kueue knows, in its order.
var fairPreemptions = [][]string{
	{"LessThanOrEqualToFinalShare"}, {"LessThanInitialShare"}, {"LessThanOrEqualToFinalShare", "LessThanInitialShare"},
}

func (k KueueConfig) validate(version string) error {
	if err := validateFrameworks(k.frameworks(), version); err != nil {
		return err
	}
	for name, d := range map[string]time.Duration{"pods ready": k.PodsReadyTimeout.Duration, "recovery": k.RecoveryTimeout.Duration} {
		if d < 0 {
			return fmt.Errorf("%s timeout %s: timeouts of Kueue must not be negative", name, d)
		}
		if d < time.Second {
			return fmt.Errorf("%s timeout %s: want a second at least, or no pod is ever ready in time", name, d)
		}
	}
	if err := k.Requeue.validate(); err != nil {
		return err
	}
	if p := k.FairSharingPreemption; len(p) > 0 {
		if !k.FairSharing {
			return fmt.Errorf("preemption strategies of fair sharing do nothing while fair sharing is off")
		}
		if !slices.ContainsFunc(fairPreemptions, func(known []string) bool { return slices.Equal(known, p) }) {
			return fmt.Errorf("preemption strategies %v of fair sharing: want %v, in this order, or one of them", p, fairPreemptions[2])
		}
	}
	if a := k.AdmissionFairSharing; a != nil && (a.HalfLife.Duration < 0 || a.Sampling.Duration <= 0) {
		return fmt.Errorf("admission fair sharing: want a half-life of 0 or more and a positive sampling interval, not %s and %s", a.HalfLife.Duration, a.Sampling.Duration)
	}
	if k.ClientQPS < 0 || k.Burst < 0 {
		return fmt.Errorf("requests a second of Kueue must not be negative")
	}
	if k.KeepFinished != nil && k.KeepFinished.Duration < 0 {
		return fmt.Errorf("finished workloads cannot be kept for %s", k.KeepFinished.Duration)
	}
	for i, r := range k.ExcludedResources {
		if !resourcePrefix.MatchString(r) {
			return fmt.Errorf("excluded resource %q: want the beginning of a resource's name, such as networking.gke.io/", r)
		}
		if slices.Contains(k.ExcludedResources[:i], r) {
			return fmt.Errorf("excluded resource %q is listed twice", r)
		}
		if strings.HasPrefix("google.com/tpu", r) {
			return fmt.Errorf("excluded resource %q: chips are what queues count, they cannot be left out", r)
		}
	}
	return validateLabels("namespace selector", k.NamespaceSelector)
}

// resourcePrefix is what resources' names are made of.
var resourcePrefix = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./_-]*$`)

func (r Requeue) validate() error {
	switch {
	case r.Limit != nil && *r.Limit < 0:
		return fmt.Errorf("requeue limit %d: want 0 or more, or none for ever", *r.Limit)
	case r.Backoff.Duration < 0 || r.MaxBackoff.Duration < 0,
		r.Backoff.Duration%time.Second != 0 || r.MaxBackoff.Duration%time.Second != 0:
		return fmt.Errorf("requeue backoff %s up to %s: want whole seconds", r.Backoff.Duration, r.MaxBackoff.Duration)
	}
	backoff, most := cmp.Or(r.Backoff.Duration, kueueBackoff), cmp.Or(r.MaxBackoff.Duration, kueueMaxBackoff)
	if most < backoff {
		return fmt.Errorf("requeue backoff %s is above its maximum %s (without them, Kueue takes %s and %s)", backoff, most, kueueBackoff, kueueMaxBackoff)
	}
	return nil
}

// What Kueue takes where Requeue says nothing.
const (
	kueueBackoff    = time.Minute
	kueueMaxBackoff = time.Hour
)
