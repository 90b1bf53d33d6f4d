package gke

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// managedElsewhere names the attribute for each field of a cluster that
// overrides may not touch, because an attribute or the bookkeeping has it.
var managedElsewhere = map[string]string{
	"name": "name", "location": "location", "zone": "location", "nodePools": "cpu_pools", "nodeConfig": "cpu_pools",
	"initialNodeCount": "cpu_pools", "nodePoolDefaults": "cpu_pools", "resourceLabels": "resource_labels", "network": "network", "subnetwork": "subnetwork",
	"locations": "zones", "releaseChannel": "release_channel", "initialClusterVersion": "min_master_version",
	"currentMasterVersion": "min_master_version", "maintenancePolicy": "maintenance", "workloadIdentityConfig": "workload_identity",
	"shieldedNodes": "shielded_nodes", "securityPostureConfig": "security_posture", "loggingConfig": "logging", "loggingService": "logging",
	"monitoringConfig": "monitoring", "monitoringService": "monitoring", "autoscaling": "autoprovisioning",
	"controlPlaneEndpointsConfig": "control_plane", "masterAuthorizedNetworksConfig": "control_plane.authorized_networks",
	"defaultMaxPodsConstraint": "max_pods_per_node", "autopilot": "cpu_pools (an Autopilot cluster has no node pools)",
}

// overrides parses cluster_overrides: the fields of a cluster, spelled as
// protojson does.
func (t TrainingCluster) overrides() (map[string]any, error) {
	if t.Overrides == "" {
		return nil, nil
	}
	var over map[string]any
	if err := json.Unmarshal([]byte(t.Overrides), &over); err != nil {
		return nil, fmt.Errorf("cluster_overrides is not a JSON object: %w", err)
	}
	over = camelCase(over)
	fields := (&containerpb.Cluster{}).ProtoReflect().Descriptor().Fields()
	for _, name := range slices.Sorted(maps.Keys(over)) {
		if at, ok := managedElsewhere[name]; ok {
			return nil, fmt.Errorf("cluster_overrides sets %s, which follows from %s: set it there", name, at)
		}
		if name == "masterAuth" {
			return nil, fmt.Errorf("cluster_overrides sets masterAuth, whose passwords and client certificates are secrets that do not belong into a state: leave it out. People and programs reach the cluster with their Google accounts (tpu_cluster_credentials)")
		}
		if fields.ByJSONName(name) == nil {
			return nil, fmt.Errorf("cluster_overrides sets %s, which no cluster of the GKE API v1 has (field names as in its reference, such as costManagementConfig)", name)
		}
	}
	return over, nil
}

// withOverrides is a cluster with the overrides merged into it: objects field by
// field, anything else is replaced, null removes.
func (t TrainingCluster) withOverrides(c *containerpb.Cluster) (*containerpb.Cluster, error) {
	over, err := t.overrides()
	if err != nil || over == nil {
		return c, err
	}
	// Only the fields named are taken through JSON: the others may be large.
	part, err := asJSON(only(c, over))
	if err != nil {
		return c, err
	}
	merge(part, over)
	data, err := json.Marshal(part)
	if err != nil {
		return c, fmt.Errorf("merging cluster_overrides: %w", err)
	}
	merged := &containerpb.Cluster{}
	if err := protojson.Unmarshal(data, merged); err != nil {
		return c, fmt.Errorf("cluster_overrides is not part of a cluster of the GKE API v1 (field names as in its reference, such as costManagementConfig.enabled): %w", err)
	}
	out := proto.CloneOf(c)
	fields := out.ProtoReflect().Descriptor().Fields()
	for name := range over {
		f := fields.ByJSONName(name)
		out.ProtoReflect().Clear(f)
		if merged.ProtoReflect().Has(f) {
			out.ProtoReflect().Set(f, merged.ProtoReflect().Get(f))
		}
	}
	return out, nil
}

// CheckOverrides tells what is wrong with the overrides by themselves.
func (t TrainingCluster) CheckOverrides() error {
	_, err := t.withOverrides(&containerpb.Cluster{})
	return err
}

// only keeps the fields of a cluster that over names.
func only(c *containerpb.Cluster, over map[string]any) *containerpb.Cluster {
	out := &containerpb.Cluster{}
	c.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if _, ok := over[f.JSONName()]; ok {
			out.ProtoReflect().Set(f, v)
		}
		return true
	})
	return out
}

func asJSON(m proto.Message) (map[string]any, error) {
	data, err := protojson.MarshalOptions{EmitUnpopulated: false}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("merging cluster_overrides: %w", err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("merging cluster_overrides: %w", err)
	}
	return out, nil
}

// DriftedOverrides is cluster_overrides as GKE has it: the same text while the
// cluster is as it says, else JSON of the same fields with GKE's values.
func (t TrainingCluster) DriftedOverrides(c *containerpb.Cluster) string {
	want, err := t.withOverrides(c)
	if err != nil || proto.Equal(want, c) {
		return t.Overrides
	}
	over, _ := t.overrides()
	live, err := asJSON(only(c, over))
	wanted, err2 := asJSON(only(want, over))
	if err != nil || err2 != nil {
		return t.Overrides
	}
	takeLive(over, live, wanted)
	data, err := json.Marshal(over)
	if err != nil {
		return t.Overrides
	}
	return string(data)
}

// takeLive puts GKE's values where they are not the wanted ones.
func takeLive(over, live, wanted map[string]any) {
	for k, v := range over {
		sub, isMap := v.(map[string]any)
		l, _ := live[k].(map[string]any)
		w, _ := wanted[k].(map[string]any)
		switch {
		case isMap && w != nil:
			takeLive(sub, l, w)
		case !reflect.DeepEqual(live[k], wanted[k]):
			over[k] = live[k]
		}
	}
}

// overridden is one field that cluster_overrides sets: a field of its own, or of its networkConfig,
// whose parts GKE updates apart.
type overridden struct {
	name   string // costManagementConfig, networkConfig.gatewayApiConfig
	value  any
	parent protoreflect.FieldDescriptor // nil for a field of the cluster itself
	from   protoreflect.FieldDescriptor
	to     protoreflect.FieldDescriptor // of the ClusterUpdate; nil where only another cluster can have it
}

func overriddenFields(over map[string]any) []overridden {
	var out []overridden
	top := (&containerpb.Cluster{}).ProtoReflect().Descriptor().Fields()
	for _, name := range slices.Sorted(maps.Keys(over)) {
		f := top.ByJSONName(name)
		inner, ok := over[name].(map[string]any)
		if name != "networkConfig" || !ok {
			out = append(out, overridden{name: name, value: over[name], from: f, to: desiredField(f)})
			continue
		}
		for _, part := range slices.Sorted(maps.Keys(inner)) {
			if sub := f.Message().Fields().ByJSONName(part); sub != nil {
				out = append(out, overridden{name: name + "." + part, value: inner[part], parent: f, from: sub, to: desiredField(sub)})
			}
		}
	}
	return out
}

// desiredField is the field of an update that replaces a cluster's field.
func desiredField(from protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	to := (&containerpb.ClusterUpdate{}).ProtoReflect().Descriptor().Fields().ByName("desired_" + from.Name())
	if to == nil || to.Kind() != from.Kind() || to.Cardinality() != from.Cardinality() || to.Message() != from.Message() || to.Enum() != from.Enum() {
		return nil
	}
	return to
}

// of is the message that has the field.
func (o overridden) of(c *containerpb.Cluster) protoreflect.Message {
	if o.parent == nil {
		return c.ProtoReflect()
	}
	return c.ProtoReflect().Get(o.parent).Message()
}

// FixedOverrides names the fields of cluster_overrides that differ from those of
// before and that only another cluster can have.
func (t TrainingCluster) FixedOverrides(before TrainingCluster) []string {
	now, err := t.overrides()
	was, err2 := before.overrides()
	if err != nil || err2 != nil {
		return nil
	}
	values := map[string]any{}
	for _, o := range overriddenFields(was) {
		values[o.name] = o.value
	}
	var out []string
	for _, o := range overriddenFields(now) {
		if o.to == nil && !reflect.DeepEqual(o.value, values[o.name]) {
			out = append(out, o.name)
		}
	}
	return out
}

// DroppedOverrides names the fields of before's cluster_overrides that t's do
// not set: GKE keeps what it has of them.
func (t TrainingCluster) DroppedOverrides(before TrainingCluster) []string {
	now, err := t.overrides()
	was, err2 := before.overrides()
	if err != nil || err2 != nil {
		return nil
	}
	return dropped("", was, now)
}

func dropped(in string, was, now map[string]any) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		value, kept := now[name]
		before, nested := was[name].(map[string]any)
		after, still := value.(map[string]any)
		switch {
		case !kept:
			names = append(names, in+name)
		case nested && still:
			names = append(names, dropped(in+name+".", before, after)...)
		}
	}
	return names
}

// applyOverrides changes the fields of cluster_overrides that differ, one
// operation each.
func (c *Client) applyOverrides(ctx context.Context, t TrainingCluster, have *containerpb.Cluster) error {
	over, err := t.overrides()
	if err != nil || over == nil {
		return err
	}
	want, err := t.withOverrides(have)
	if err != nil {
		return err
	}
	for _, o := range overriddenFields(over) {
		is, was := o.of(want), o.of(have)
		if o.to == nil || !is.Has(o.from) || is.Get(o.from).Equal(was.Get(o.from)) {
			continue // what GKE can clear has a value that says so
		}
		update := &containerpb.ClusterUpdate{}
		update.ProtoReflect().Set(o.to, is.Get(o.from))
		if err := c.UpdateCluster(ctx, t.Name, update); err != nil {
			return amend(err, func(e *Error) { e.Verb = "updating " + o.name + " (cluster_overrides) of cluster" })
		}
	}
	return nil
}
