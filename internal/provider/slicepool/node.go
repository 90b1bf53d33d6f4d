package slicepool

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// attributes of a node as the framework has them.
func (n node) attributes() map[string]attr.Value {
	return map[string]attr.Value{
		"service_account": n.ServiceAccount, "labels": n.Labels, "boot_disk": n.BootDisk, "tags": n.Tags, "taints": n.Taints,
		"image_type": n.ImageType, "image_streaming": n.ImageStreaming, "private": n.Private, "network_profile": n.NetworkProfile,
		"max_pods": n.MaxPods, "secondary_boot_disks": n.SecondaryBootDisks,
	}
}

func (n node) object() types.Object { return types.ObjectValueMust(nodeType, n.attributes()) }

// empty tells whether nothing is set.
func (n node) empty() bool {
	for _, v := range n.attributes() {
		if !v.IsNull() {
			return false
		}
	}
	return true
}

// refresh takes over the live values of what is managed.
func (n *node) refresh(ctx context.Context, info gke.SlicePoolInfo, diags *diag.Diagnostics) {
	for to, v := range map[*types.String]string{&n.ServiceAccount: info.ServiceAccount, &n.ImageType: info.ImageType, &n.NetworkProfile: info.NetworkProfile} {
		if !to.IsNull() {
			*to = orNull(v)
		}
	}
	n.ImageStreaming, n.Private = taken(n.ImageStreaming, info.ImageStreaming), taken(n.Private, info.Private)
	if !n.Labels.IsNull() {
		n.Labels = stringMap(info.NodeLabels)
	}
	if !n.Tags.IsNull() {
		n.Tags = stringList(info.Tags)
	}
	if !n.Taints.IsNull() {
		n.Taints = taintList(info.Taints)
	}
	if !n.SecondaryBootDisks.IsNull() {
		n.SecondaryBootDisks = stringList(info.SecondaryDisks)
	}
	if !n.MaxPods.IsNull() {
		n.MaxPods = types.Int64Value(int64(info.MaxPods))
	}
	if n.BootDisk.IsNull() {
		return
	}
	d := n.disk(ctx, diags)
	if !d.Type.IsNull() {
		d.Type = orNull(info.DiskType)
	}
	if !d.SizeGB.IsNull() {
		d.SizeGB = types.Int64Value(int64(info.DiskSizeGB))
	}
	n.BootDisk = types.ObjectValueMust(bootDiskType, map[string]attr.Value{"type": d.Type, "size_gb": d.SizeGB})
}

func stringList(list []string) types.List {
	elems := []attr.Value{}
	for _, s := range list {
		elems = append(elems, types.StringValue(s))
	}
	return types.ListValueMust(types.StringType, elems)
}

func taintList(taints []gke.Taint) types.List {
	elems := []attr.Value{}
	for _, t := range taints {
		elems = append(elems, types.ObjectValueMust(taintType.AttrTypes, map[string]attr.Value{
			"key": types.StringValue(t.Key), "value": types.StringValue(t.Value), "effect": types.StringValue(t.Effect)}))
	}
	return types.ListValueMust(taintType, elems)
}
