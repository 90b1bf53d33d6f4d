package fakegke

import (
	"maps"
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	corev1 "k8s.io/api/core/v1"
)

// userOf names an instance group that is placed by a policy, or "".
func (s state) userOf(policy string) string {
	for _, path := range slices.Sorted(maps.Keys(s.pools)) {
		if name := s.pools[path].PlacementPolicy.GetPolicyName(); name != "" && policyOf(path, name) == policy {
			zone := s.pools[path].Locations[0]
			return "projects/" + projectOf(path) + "/zones/" + zone + "/instanceGroupManagers/" + groupName(path, zone)
		}
	}
	return ""
}

// policyOf is the path of the policy that a node pool names: one of its own
// project and region.
func policyOf(pool, name string) string {
	at, _ := parseCluster(clusterOf(pool))
	return policyPath(at.project, at.region(), name)
}

// checkPolicy refuses a new pool whose workload policy is not there, or is for
// slices of another size.
func (s *Server) checkPolicy(st state, path string, p *containerpb.NodePool) error {
	name := p.PlacementPolicy.GetPolicyName()
	if name == "" {
		return nil
	}
	at := policyOf(path, name)
	found := s.policyNow(st, at)
	if found == nil || found.Status != "READY" {
		return invalid("The resource policy %q was not found or is not ready: %s.", name, at)
	}
	m, ok := machineOf(p.Config.GetMachineType())
	word := found.WorkloadPolicy.AcceleratorTopology
	if !ok || m.tpu == nil || word == "" {
		return nil
	}
	t, err := accelerator.ParseTopology(word)
	if err != nil {
		return invalid("Resource policy %q has the accelerator topology %q, which is not valid.", name, word)
	}
	if size := int(poolSize(p)); t.Chips() != size*m.chips {
		return invalid("Requested invalid target size '%d' for a Managed Instance Group in the gang mode of size '%d'", size, t.Chips()/m.chips)
	}
	return nil
}

// nodesOf are the nodes of a pool that is up. Where a policy places the pool,
// the policy has its topology.
func (s state) nodesOf(cluster string, p *containerpb.NodePool) []*corev1.Node {
	nodes := buildNodes(cluster, p)
	name := p.PlacementPolicy.GetPolicyName()
	found := s.policies[policyOf(cluster+"/nodePools/"+p.Name, name)]
	if name == "" || found == nil {
		return nodes
	}
	if t, err := accelerator.ParseTopology(found.WorkloadPolicy.AcceleratorTopology); err == nil {
		for _, n := range nodes {
			n.Labels[accelerator.LabelTopology] = t.String()
		}
	}
	return nodes
}
