package gke

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The facets of a cluster: what one operation changes.
const (
	facetMaintenance  = "maintenance"
	facetLabels       = "resource_labels"
	facetChannel      = "release_channel"
	facetVersion      = "version"
	facetIdentity     = "workload_identity"
	facetShielded     = "shielded_nodes"
	facetPosture      = "security_posture"
	facetEndpoints    = "control_plane"
	facetPrivateNodes = "private_nodes"
	facetZones        = "zones"
	facetDNS          = "dns"
	facetLogging      = "logging"
	facetMonitoring   = "monitoring"
	facetAddons       = "addons"
	facetAutoscaling  = "autoscaling"
	facetOverrides    = "cluster_overrides"
)

// clusterFacet is one operation on a cluster. update makes its request out of
// the cluster as it should be and as it is; where GKE has a method of its own
// for it, apply calls that.
type clusterFacet struct {
	name      string
	operation string // GKE's, for the documentation
	update    func(want, have *containerpb.Cluster) *containerpb.ClusterUpdate
	apply     func(ctx context.Context, c *Client, n ClusterName, want, have *containerpb.Cluster) error
}

// clusterFacets in the order in which they are changed. When GKE may work on
// the cluster and its labels come first: what fails later is found by them.
// Then the control plane, which everything else depends on; identity before the
// addons that need it; a new way to the control plane before anything that a
// user may want to look at through it; and the settings of future nodes last,
// just before the CPU pools.
var clusterFacets = []clusterFacet{
	{name: facetMaintenance, operation: "SetMaintenancePolicy",
		apply: func(ctx context.Context, c *Client, n ClusterName, want, _ *containerpb.Cluster) error {
			return c.SetMaintenancePolicy(ctx, n, want.GetMaintenancePolicy())
		}},
	{name: facetLabels, operation: "SetLabels",
		apply: func(ctx context.Context, c *Client, n ClusterName, want, have *containerpb.Cluster) error {
			return c.SetClusterLabels(ctx, n, want.GetResourceLabels(), have.GetLabelFingerprint())
		}},
	{name: facetChannel, operation: "UpdateCluster: desired_release_channel",
		update: func(want, _ *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredReleaseChannel: want.GetReleaseChannel()}
		}},
	{name: facetVersion, operation: "UpdateCluster: desired_master_version",
		update: func(want, _ *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredMasterVersion: want.GetCurrentMasterVersion()}
		}},
	{name: facetIdentity, operation: "UpdateCluster: desired_workload_identity_config",
		update: func(want, _ *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredWorkloadIdentityConfig: want.GetWorkloadIdentityConfig()}
		}},
	{name: facetShielded, operation: "UpdateCluster: desired_shielded_nodes",
		update: func(want, _ *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredShieldedNodes: want.GetShieldedNodes()}
		}},
	{name: facetPosture, operation: "UpdateCluster: desired_security_posture_config",
		update: func(want, _ *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredSecurityPostureConfig: want.GetSecurityPostureConfig()}
		}},
	{name: facetEndpoints, operation: "UpdateCluster: desired_control_plane_endpoints_config",
		update: func(want, _ *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredControlPlaneEndpointsConfig: want.GetControlPlaneEndpointsConfig()}
		}},
	{name: facetLogging, operation: "UpdateCluster: desired_logging_config",
		update: func(want, _ *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredLoggingConfig: want.GetLoggingConfig()}
		}},
	{name: facetMonitoring, operation: "UpdateCluster: desired_monitoring_config",
		update: func(want, _ *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredMonitoringConfig: want.GetMonitoringConfig()}
		}},
	{name: facetDNS, operation: "UpdateCluster: desired_dns_config",
		update: func(want, _ *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredDnsConfig: want.GetNetworkConfig().GetDnsConfig()}
		}},
	{name: facetAddons, operation: "UpdateCluster: desired_addons_config",
		update: func(want, have *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredAddonsConfig: changed(want.GetAddonsConfig(), have.GetAddonsConfig())}
		}},
	{name: facetPrivateNodes, operation: "UpdateCluster: desired_default_enable_private_nodes",
		update: func(want, _ *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredDefaultEnablePrivateNodes: want.GetNetworkConfig().DefaultEnablePrivateNodes}
		}},
	{name: facetZones, operation: "UpdateCluster: desired_locations",
		update: func(want, _ *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredLocations: want.GetLocations()}
		}},
	{name: facetAutoscaling, operation: "UpdateCluster: desired_cluster_autoscaling",
		update: func(want, _ *containerpb.Cluster) *containerpb.ClusterUpdate {
			return &containerpb.ClusterUpdate{DesiredClusterAutoscaling: want.GetAutoscaling()}
		}},
}

// changed keeps of a message only the fields that differ from another's: what
// an update leaves out stays as it is.
func changed[M proto.Message](want, have M) M {
	out := want.ProtoReflect().New()
	want.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !have.ProtoReflect().IsValid() || !have.ProtoReflect().Has(f) || !v.Equal(have.ProtoReflect().Get(f)) {
			out.Set(f, v)
		}
		return true
	})
	return out.Interface().(M)
}

// wanted is the cluster as it should be, and the names of the facets in which
// it is not that yet. What t does not manage is as GKE has it.
func (t TrainingCluster) wanted(have *containerpb.Cluster) (want *containerpb.Cluster, facets map[string]bool) {
	want, facets = proto.CloneOf(have), map[string]bool{}
	coupled := map[string]bool{}
	for _, s := range t.Settings.differing(have) {
		facets[s.facet] = true
		coupled[s.facet] = coupled[s.facet] || s.coupled()
	}
	for _, s := range clusterSettings {
		v, managed := t.Settings[s.Name]
		// Of a coupled facet everything is written: one setting may undo another.
		if managed && s.facet != "" && (facets[s.facet] && (s.always || coupled[s.facet]) || !s.Same(v, s.get(have))) {
			s.set(want, v)
		}
	}
	if t.MinVersion != "" && OlderVersion(have.GetCurrentMasterVersion(), t.MinVersion) {
		want.CurrentMasterVersion, facets[facetVersion] = t.MinVersion, true
	}
	taken := t.Object != "" && OwnershipOf(have.GetResourceLabels()).Object != t.Object
	if taken || !maps.Equal(UserLabels(have.GetResourceLabels()), t.ResourceLabels) {
		facets[facetLabels] = true
		want.ResourceLabels = map[string]string{}
		for k, v := range have.GetResourceLabels() {
			if strings.HasPrefix(k, LabelPrefix) || strings.HasPrefix(k, "goog-") {
				want.ResourceLabels[k] = v
			}
		}
		maps.Copy(want.ResourceLabels, t.ResourceLabels)
		if t.Object != "" {
			want.ResourceLabels[LabelObject] = t.Object
		}
	}
	return want, facets
}

// change makes a running cluster what t wants, one operation per facet. Before
// each of them the cluster is read again: what an operation makes of the
// cluster, the next one must not undo.
func (c *Client) change(ctx context.Context, t TrainingCluster, have *containerpb.Cluster) error {
	for _, f := range clusterFacets {
		var err error
		if have, err = c.changeFacet(ctx, t, f, have); err != nil {
			return err
		}
	}
	return c.applyOverrides(ctx, t, have)
}

// staleTries is how often a facet is written by what GKE had just before: an
// operation of an earlier run, which this one waited for, makes what was read
// before it stale once; more often only somebody who keeps writing does.
const staleTries = 3

// changeFacet brings one facet to what t wants, if it is not that, and returns
// the cluster as it is then.
func (c *Client) changeFacet(ctx context.Context, t TrainingCluster, f clusterFacet, have *containerpb.Cluster) (*containerpb.Cluster, error) {
	for try := 1; ; try++ {
		want, facets := t.wanted(have)
		if !facets[f.name] {
			return have, nil
		}
		var err error
		if f.apply != nil {
			err = f.apply(ctx, c, t.Name, want, have)
		} else {
			err = c.UpdateCluster(ctx, t.Name, f.update(want, have))
		}
		stale := errors.Is(err, Stale) && try < staleTries
		if err != nil && !stale {
			return nil, amend(err, func(e *Error) { e.Verb = "updating " + f.name + " of cluster" })
		}
		if have, err = c.GetCluster(ctx, t.Name); err != nil || !stale {
			return have, err
		}
	}
}

// SetMaintenancePolicy sets when GKE may work on the cluster by itself. The
// policy carries the version that was read; another one meanwhile is a refusal.
func (c *Client) SetMaintenancePolicy(ctx context.Context, n ClusterName, p *containerpb.MaintenancePolicy) error {
	return c.operate(ctx, n, clusterTarget("updating", n), nil, func(ctx context.Context) (*containerpb.Operation, error) {
		// GKE's older fields beside the name must say the same.
		return c.api.SetMaintenancePolicy(ctx, &containerpb.SetMaintenancePolicyRequest{
			Name: n.String(), ProjectId: n.Project, Zone: n.Location, ClusterId: n.Cluster, MaintenancePolicy: p})
	})
}

// Change is one line of the table of what changes how.
type Change struct{ Attribute, How, Operation string }

// ClusterChanges is what a change of each attribute of a cluster does.
func ClusterChanges() []Change {
	operations := map[string]string{}
	for _, f := range clusterFacets {
		operations[f.name] = f.operation
	}
	var out []Change
	for _, name := range []string{"name", "project", "location"} {
		out = append(out, Change{name, "replace: it is part of the cluster's path", ""})
	}
	for _, s := range clusterSettings {
		if why, yes := s.Replaces(); yes {
			out = append(out, Change{s.Name, "replace: " + why, ""})
			continue
		}
		out = append(out, Change{s.Name, "in place", operations[s.facet]})
	}
	out = append(out,
		Change{"min_master_version", "in place", operations[facetVersion]},
		Change{"resource_labels", "in place", operations[facetLabels]},
		Change{"cluster_overrides", "in place where UpdateCluster has the field, else replace", "UpdateCluster: desired_FIELD, one operation per field"},
		Change{"cpu_pools", "in place, pool by pool", "CreateNodePool, DeleteNodePool"})
	for _, f := range cpuFacets {
		out = append(out, Change{fmt.Sprintf("cpu_pools[%q].%s", "NAME", f.name), f.how(), f.operation})
	}
	return append(out, Change{"deletion_protection, force, timeouts", "in place", "none"})
}
