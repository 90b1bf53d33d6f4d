package gke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// SliceNodePool finds the node pool of a slice as it is now; names that are not
// there, or are not of TPU hosts, are errors that say what is.
func (c *Client) SliceNodePool(ctx context.Context, cluster ClusterName, name string) (*containerpb.NodePool, error) {
	all, err := c.listNodePools(ctx, cluster, listNow)
	if err != nil {
		return nil, err
	}
	var there []string
	for _, np := range all {
		if !tpuMachine(np) {
			continue
		}
		if np.GetName() == name {
			return np, nil
		}
		there = append(there, np.GetName())
	}
	t := poolTarget("finding slice", cluster, name, nil)
	message := "the cluster has no TPU slice"
	if len(there) > 0 {
		slices.Sort(there)
		message = "the cluster's slices are " + strings.Join(there, ", ")
	}
	return nil, &Error{Verb: t.verb, Object: t.object, Zone: t.zone, Cause: NotFound, Message: message}
}

// RecreateSlice deletes the node pool of a slice and makes it again as np says,
// with the same labels of ownership, so that whoever manages it finds nothing
// changed. deleted, if not nil, is called between the two.
//
// Nothing is lost when it ends in between: the slice is one of a tpu_slice_pool,
// whose next apply makes it. Others are refused.
func (c *Client) RecreateSlice(ctx context.Context, cluster ClusterName, np *containerpb.NodePool, deleted func()) error {
	again, err := recreationOf(cluster, np)
	if err != nil {
		return err
	}
	if err := c.DeleteNodePool(ctx, cluster, np.GetName()); err != nil {
		return err
	}
	if deleted != nil {
		deleted()
	}
	err = c.CreateNodePool(ctx, cluster, again, nil)
	if errors.Is(err, AlreadyExists) { // a reply was lost, or an apply that runs beside was quicker
		return c.alreadyRecreated(ctx, cluster, again, err)
	}
	return err
}

// alreadyRecreated waits for a node pool that was there when it was to be made,
// if it is like the wanted one.
func (c *Client) alreadyRecreated(ctx context.Context, cluster ClusterName, want *containerpb.NodePool, exists error) error {
	one := &slicePoolApply{c: c, p: SlicePool{Cluster: cluster}}
	found, err := one.settle(ctx, want.GetName())
	if err != nil {
		return err
	}
	ours, theirs := OwnershipOf(want.GetConfig().GetResourceLabels()), OwnershipOf(found.GetConfig().GetResourceLabels())
	ours.Created, theirs.Created = time.Time{}, time.Time{}
	if found == nil || ours != theirs {
		return exists
	}
	if sliceOf(found).Status != SliceRunning {
		return troubleOf("creating node pool", cluster.NodePool(want.GetName()), found)
	}
	return nil
}

// MayRecreateSlice tells why a slice cannot be made again by RecreateSlice; nil if
// it can.
func MayRecreateSlice(cluster ClusterName, np *containerpb.NodePool) error {
	_, err := recreationOf(cluster, np)
	return err
}

func recreationOf(cluster ClusterName, np *containerpb.NodePool) (*containerpb.NodePool, error) {
	again, err := recreation(np, time.Now())
	if err != nil {
		t := poolTarget("recreating slice", cluster, np.GetName(), np.GetLocations())
		return nil, &Error{Verb: t.verb, Object: t.object, Zone: t.zone, Cause: Invalid, Message: err.Error()}
	}
	return again, nil
}

// recreation is the request for a node pool like np. It asks for what a
// request may hold, and for the version that the nodes have.
func recreation(np *containerpb.NodePool, now time.Time) (*containerpb.NodePool, error) {
	switch np.GetStatus() {
	case containerpb.NodePool_PROVISIONING, containerpb.NodePool_STOPPING:
		return nil, fmt.Errorf("GKE is at work on it (%s): wait for its end", np.GetStatus())
	}
	if np.GetConfig() == nil {
		return nil, errors.New("GKE does not say what its nodes are")
	}
	if OwnershipOf(np.GetConfig().GetResourceLabels()).Kind != KindSlice {
		return nil, errors.New("no tpu_slice_pool made it. If this ended after it is deleted, nothing would make it again: import it into Terraform, or recreate it by hand")
	}
	np = proto.CloneOf(np)
	out := &containerpb.NodePool{
		Name: np.Name, InitialNodeCount: np.InitialNodeCount, Locations: np.Locations, Version: np.Version, Config: np.Config,
		NetworkConfig: np.NetworkConfig, Autoscaling: np.Autoscaling, Management: np.Management, MaxPodsConstraint: np.MaxPodsConstraint,
		UpgradeSettings: np.UpgradeSettings, PlacementPolicy: np.PlacementPolicy,
		QueuedProvisioning: np.QueuedProvisioning, BestEffortProvisioning: np.BestEffortProvisioning,
		NodeDrainConfig: np.NodeDrainConfig, MaintenancePolicy: np.MaintenancePolicy,
	}
	out.Config.EffectiveCgroupMode = containerpb.NodeConfig_EFFECTIVE_CGROUP_MODE_UNSPECIFIED
	if n := out.NetworkConfig; n != nil {
		n.PodIpv4CidrBlock, n.PodIpv4RangeUtilization = "", 0 // follow from the range
	}
	if a := out.GetAutoscaling(); a.GetEnabled() {
		out.InitialNodeCount = max(a.GetMinNodeCount(), a.GetTotalMinNodeCount())
	} else {
		out.Autoscaling = nil
	}
	labels := out.Config.ResourceLabels
	for k := range labels {
		if strings.HasPrefix(k, "goog-") { // Google's own, refused in requests
			delete(labels, k)
		}
	}
	if _, ours := labels[LabelCreated]; ours {
		labels[LabelCreated] = strconv.FormatInt(now.Unix(), 10)
	}
	out.Config.Labels = UserNodeLabels(out.Config.GetLabels())
	out.Config.Taints = slices.DeleteFunc(out.Config.Taints, func(t *containerpb.NodeTaint) bool { return t.GetKey() == accelerator.TaintKey })
	return out, nil
}
