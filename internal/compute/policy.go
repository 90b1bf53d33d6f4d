package compute

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// Owner is the slice pool that a policy is made for. Each pool has a policy of
// its own: one that is being removed then never takes away what another one is
// about to use.
type Owner struct {
	Config  string // name of the configuration, or ""
	Cluster gke.ClusterName
	Pool    string
}

// Policy is a workload policy: instances as close together as possible
// (HIGH_THROUGHPUT), as one slice of a topology.
type Policy struct {
	Project  string
	Region   string
	Name     string
	Topology string // "4x4x4"
	Owner    Owner
}

func (p Policy) path() string {
	return "projects/" + p.Project + "/regions/" + p.Region + "/resourcePolicies/" + p.Name
}

// PolicyFor is the policy of a slice pool, in its cluster's region. The name
// follows from cluster, pool and topology alone, so that a run which was killed
// leaves nothing that the next one does not find: POOL-TOPOLOGY-HASH. The
// configuration's name is no part of it: a pool keeps its policy when its
// configuration gets a name.
func PolicyFor(o Owner, topology string) Policy {
	sum := sha256.Sum256([]byte(strings.Join([]string{o.Cluster.String(), o.Pool, topology}, "\x00")))
	pool := o.Pool
	const room = 63 - 1 - len("16x16x36") - 1 - 8 // of Compute Engine's 63 characters
	if len(pool) > room {
		pool = strings.TrimRight(pool[:room], "-")
	}
	return Policy{
		Project: o.Cluster.Project, Region: o.Cluster.Region(), Topology: topology, Owner: o,
		Name: pool + "-" + topology + "-" + hex.EncodeToString(sum[:4]),
	}
}

// Resource policies have no labels: the description says who made one.
const (
	madeBy     = "Made and removed by terraform-provider-tpu for slice pool "
	ofCluster  = " of "
	ownerNamed = ", owner "
)

func (o Owner) description() string {
	text := madeBy + o.Pool + ofCluster + o.Cluster.String()
	if o.Config != "" {
		text += ownerNamed + o.Config
	}
	return text
}

// ownerOf reads a description; false when the policy is not the provider's.
func ownerOf(description string) (Owner, bool) {
	rest, ok := strings.CutPrefix(description, madeBy)
	if !ok {
		return Owner{}, false
	}
	pool, rest, _ := strings.Cut(rest, ofCluster)
	path, config, _ := strings.Cut(rest, ownerNamed)
	cluster, err := gke.ParseClusterName(path)
	return Owner{Config: config, Cluster: cluster, Pool: pool}, err == nil
}

// made tells whether a policy with this description was made for the same
// slice pool. As in the name, the configuration's name does not count.
func (o Owner) made(description string) bool {
	found, ok := ownerOf(description)
	return ok && found.Cluster == o.Cluster && found.Pool == o.Pool
}

// differs says why a policy that has the name does not fit, or "".
func (p Policy) differs(kind, topology string) string {
	if kind == highThroughput && topology == p.Topology {
		return ""
	}
	return fmt.Sprintf("there is a policy of this name for something else (type %q, accelerator topology %q; wanted %s and %s). Delete it, or name another policy in placement_policy",
		kind, topology, highThroughput, p.Topology)
}
