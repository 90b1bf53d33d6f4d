package gke

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// LabelOverrides carries a hash of node_pool_overrides: GKE's answer does not
// tell which of its fields were written by them.
const LabelOverrides = LabelPrefix + "overrides"

// NodePool is the request for slice i. It fails only for overrides that are no
// part of a node pool.
func (p SlicePool) NodePool(i int, created time.Time) (*containerpb.NodePool, error) {
	labels := p.ownership(created).Labels(p.ResourceLabels)
	if h := p.overridesHash(); h != "" {
		labels[LabelOverrides] = h
	}
	np := &containerpb.NodePool{
		Name:             p.NodePoolName(i),
		InitialNodeCount: int32(p.Shape.Hosts),
		Locations:        []string{p.Zone},
		Version:          p.Version,
		Config: &containerpb.NodeConfig{
			MachineType:            p.Shape.MachineType,
			DiskType:               p.diskType(),
			DiskSizeGb:             int32(p.DiskSizeGB),
			ImageType:              p.ImageType,
			Labels:                 p.NodeLabels,
			ResourceLabels:         labels,
			ServiceAccount:         p.ServiceAccount,
			OauthScopes:            []string{scope},
			Tags:                   p.Tags,
			Taints:                 taintsOf(p.Taints),
			Spot:                   p.Provisioning.Model == Spot,
			ReservationAffinity:    p.Provisioning.affinity(),
			WorkloadMetadataConfig: &containerpb.WorkloadMetadataConfig{Mode: containerpb.WorkloadMetadataConfig_GKE_METADATA},
		},
		Management:        p.management(),
		UpgradeSettings:   p.Upgrade.settings(),
		MaxPodsConstraint: &containerpb.MaxPodsConstraint{MaxPodsPerNode: int64(cmp.Or(p.MaxPods, p.Shape.MaxPodsPerNode))},
	}
	cfg := np.Config
	switch p.Shape.Placement {
	case accelerator.PlacementCompact:
		np.PlacementPolicy = &containerpb.NodePool_PlacementPolicy{
			Type: containerpb.NodePool_PlacementPolicy_COMPACT, TpuTopology: p.Shape.Topology.String()}
	case accelerator.PlacementWorkloadPolicy:
		np.PlacementPolicy = &containerpb.NodePool_PlacementPolicy{PolicyName: p.PlacementPolicy}
		np.Config.ResourceLabels[LabelTopology] = p.Shape.Topology.String()
	}
	if s := p.Scaling(); s != nil { // comes up when a job asks for it
		np.Autoscaling, np.InitialNodeCount = s.settings(), int32(s.Min)
	}
	if p.Provisioning.Model == FlexStart {
		yes := true
		cfg.FlexStart = &yes
	}
	if p.Provisioning.Model == Queued {
		np.QueuedProvisioning = &containerpb.NodePool_QueuedProvisioning{Enabled: true}
	}
	if d := p.Provisioning.MaxRunDuration; d > 0 {
		cfg.MaxRunDuration = durationpb.New(d)
	}
	if p.ImageStreaming != nil {
		cfg.GcfsConfig = &containerpb.GcfsConfig{Enabled: *p.ImageStreaming}
	}
	for _, image := range p.SecondaryDisks {
		cfg.SecondaryBootDisks = append(cfg.SecondaryBootDisks, &containerpb.SecondaryBootDisk{
			Mode: containerpb.SecondaryBootDisk_CONTAINER_IMAGE_CACHE, DiskImage: image})
	}
	if p.Private != nil || p.NetworkProfile != "" {
		np.NetworkConfig = &containerpb.NodeNetworkConfig{EnablePrivateNodes: p.Private, AcceleratorNetworkProfile: p.NetworkProfile}
	}
	return p.override(np)
}

func (p SlicePool) overridesHash() string {
	if p.Overrides == "" {
		return ""
	}
	var v any
	if json.Unmarshal([]byte(p.Overrides), &v) != nil {
		v = p.Overrides
	}
	return SpecHash(v)
}

// elsewhere names the attribute for each field that overrides may not touch,
// because the pool's own bookkeeping depends on it.
var elsewhere = map[string]string{
	"name": "name", "initialNodeCount": "accelerator and autoscaling", "locations": "zone", "autoscaling": "autoscaling",
	"placementPolicy": "accelerator and placement_policy", "queuedProvisioning": "provisioning", "management": "management",
	"version": "version", "upgradeSettings": "upgrade",
	"config.machineType": "machine_type", "config.resourceLabels": "resource_labels", "config.labels": "node.labels",
	"config.taints": "node.taints", "config.tags": "node.tags", "config.spot": "provisioning", "config.flexStart": "provisioning",
	"config.reservationAffinity": "provisioning", "config.diskType": "node.boot_disk", "config.diskSizeGb": "node.boot_disk",
	"config.bootDisk": "node.boot_disk", "config.imageType": "node.image_type", "config.serviceAccount": "node.service_account",
}

// override merges the overrides into a request: objects field by field,
// anything else is replaced, null removes.
func (p SlicePool) override(np *containerpb.NodePool) (*containerpb.NodePool, error) {
	if p.Overrides == "" {
		return np, nil
	}
	var given any
	if err := json.Unmarshal([]byte(p.Overrides), &given); err != nil {
		return np, fmt.Errorf("node_pool_overrides is not a JSON object: %w", err)
	}
	over, ok := given.(map[string]any)
	if !ok {
		return np, fmt.Errorf("node_pool_overrides is JSON, but not a JSON object: want jsonencode({ ... })")
	}
	over = camelCase(over)
	for _, path := range slices.Sorted(maps.Keys(elsewhere)) {
		outer, inner, nested := strings.Cut(path, ".")
		v, ok := over[outer]
		if nested && ok {
			m, _ := v.(map[string]any)
			_, ok = m[inner]
		}
		if ok {
			return np, fmt.Errorf("node_pool_overrides sets %s, which follows from %s: set it there", path, elsewhere[path])
		}
	}
	if field := unknownField(np.ProtoReflect().Descriptor(), over); field != "" {
		return np, fmt.Errorf("node_pool_overrides sets %s, and node pools of the GKE API v1 have no such field: look for its name in the API's reference (config.linuxNodeConfig, for example)", field)
	}
	data, err := protojson.Marshal(np)
	if err != nil {
		return np, fmt.Errorf("merging node_pool_overrides: %w", err)
	}
	var base map[string]any
	if err := json.Unmarshal(data, &base); err != nil {
		return np, fmt.Errorf("merging node_pool_overrides: %w", err)
	}
	merge(base, over)
	if data, err = json.Marshal(base); err != nil {
		return np, fmt.Errorf("merging node_pool_overrides: %w", err)
	}
	out := &containerpb.NodePool{}
	if err := protojson.Unmarshal(data, out); err != nil {
		return np, fmt.Errorf("node_pool_overrides has a value that GKE's node pools cannot have: %s", inProto.ReplaceAllString(err.Error(), ""))
	}
	return out, nil
}

// inProto is where protojson saw a mistake: a place in JSON that nobody wrote.
var inProto = regexp.MustCompile(`^proto:[\s\x{a0}]*(\(line [0-9]+:[0-9]+\):[\s\x{a0}]*)?`)

// unknownField finds a field that a message does not have, or returns "".
func unknownField(of protoreflect.MessageDescriptor, values map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		f := of.Fields().ByJSONName(name)
		if f == nil {
			return name
		}
		inner, ok := values[name].(map[string]any)
		if !ok || f.IsMap() || f.IsList() || f.Message() == nil {
			continue
		}
		if deeper := unknownField(f.Message(), inner); deeper != "" {
			return name + "." + deeper
		}
	}
	return ""
}

func merge(base, over map[string]any) {
	for k, v := range over {
		sub, ok := v.(map[string]any)
		have, isMap := base[k].(map[string]any)
		switch {
		case v == nil:
			delete(base, k)
		case ok && isMap:
			merge(have, sub)
		default:
			base[k] = v
		}
	}
}

var underscore = regexp.MustCompile(`_([a-z0-9])`)

// camelCase spells field names as protojson writes them. Keys of maps that are
// the user's words stay.
func camelCase(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		name := underscore.ReplaceAllStringFunc(k, func(s string) string { return strings.ToUpper(s[1:]) })
		if sub, ok := v.(map[string]any); ok && !slices.Contains([]string{"metadata", "sysctls", "labels"}, name) {
			v = camelCase(sub)
		}
		out[name] = v
	}
	return out
}
