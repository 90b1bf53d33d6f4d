package gke

import (
	"context"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"
)

// PolicyTopology finds the topology of a workload policy's slices.
type PolicyTopology func(ctx context.Context, policy string) (string, error)

// policies are the workload policies of a cluster's node pools, each asked for
// once. A node pool that was not made here may not say which slice it is; its
// policy does.
type policies struct {
	ask   PolicyTopology // nil asks nobody
	known map[string]policyAnswer
}

type policyAnswer struct {
	topology string
	err      error
}

func newPolicies(ask PolicyTopology) *policies {
	return &policies{ask: ask, known: map[string]policyAnswer{}}
}

// complete adds what its workload policy says to a copy of a node pool that
// does not say it itself. With an error it returns the node pool as it is.
func (p *policies) complete(ctx context.Context, np *containerpb.NodePool) (*containerpb.NodePool, error) {
	name := np.GetPlacementPolicy().GetPolicyName()
	if name == "" || p.ask == nil || topologyOf(np) != "" {
		return np, nil
	}
	a, asked := p.known[name]
	if !asked {
		a.topology, a.err = p.ask(ctx, name)
		p.known[name] = a
	}
	if a.err != nil {
		return np, a.err
	}
	np = proto.CloneOf(np)
	if np.Config == nil {
		np.Config = &containerpb.NodeConfig{}
	}
	if np.Config.ResourceLabels == nil {
		np.Config.ResourceLabels = map[string]string{}
	}
	np.Config.ResourceLabels[LabelTopology] = a.topology
	return np, nil
}
