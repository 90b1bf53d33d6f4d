package jobcontrollers

import (
	"context"
	"math"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
)

type jobSetModel struct {
	Enabled      types.Bool   `tfsdk:"enabled"`
	Version      types.String `tfsdk:"version"`
	Replicas     types.Int64  `tfsdk:"replicas"`
	Resources    types.Object `tfsdk:"resources"`
	ClientQPS    types.Int64  `tfsdk:"client_qps"`
	ClientBurst  types.Int64  `tfsdk:"client_burst"`
	FeatureGates types.Map    `tfsdk:"feature_gates"`
}

type kueueModel struct {
	Enabled                types.Bool   `tfsdk:"enabled"`
	Version                types.String `tfsdk:"version"`
	Replicas               types.Int64  `tfsdk:"replicas"`
	Resources              types.Object `tfsdk:"resources"`
	ClientQPS              types.Int64  `tfsdk:"client_qps"`
	ClientBurst            types.Int64  `tfsdk:"client_burst"`
	Frameworks             types.List   `tfsdk:"frameworks"`
	PodsReadyTimeout       types.String `tfsdk:"pods_ready_timeout"`
	RecoveryTimeout        types.String `tfsdk:"recovery_timeout"`
	RequeueLimit           types.Int64  `tfsdk:"requeue_limit"`
	RequeueBackoff         types.String `tfsdk:"requeue_backoff"`
	RequeueMaxBackoff      types.String `tfsdk:"requeue_max_backoff"`
	BlockAdmission         types.Bool   `tfsdk:"block_admission"`
	FairSharing            types.Bool   `tfsdk:"fair_sharing"`
	FairSharingPreemption  types.List   `tfsdk:"fair_sharing_preemption"`
	AdmissionFairSharing   types.Object `tfsdk:"admission_fair_sharing"`
	ManageJobsWithoutQueue types.Bool   `tfsdk:"manage_jobs_without_queue"`
	NamespaceSelector      types.Map    `tfsdk:"namespace_selector"`
	ExcludedResources      types.List   `tfsdk:"excluded_resources"`
	UndeclaredResources    types.String `tfsdk:"undeclared_resources"`
	Visibility             types.Bool   `tfsdk:"visibility"`
	QueueMetrics           types.Bool   `tfsdk:"queue_metrics"`
	WorkloadRetention      types.String `tfsdk:"workload_retention"`
	FeatureGates           types.Map    `tfsdk:"feature_gates"`
}

// What becomes of a job that requests a resource its queue does not declare.
const (
	undeclaredIgnored = "ignore"
	undeclaredBlocks  = "block"
)

var (
	gates         = types.MapType{ElemType: types.BoolType}
	names         = types.ListType{ElemType: types.StringType}
	resourceTypes = map[string]attr.Type{"cpu": types.StringType, "memory": types.StringType, "memory_limit": types.StringType}
	usageTypes    = map[string]attr.Type{"usage_half_life": types.StringType, "usage_sampling_interval": types.StringType}
	jobSetTypes   = map[string]attr.Type{
		"enabled": types.BoolType, "version": types.StringType, "replicas": types.Int64Type,
		"resources": types.ObjectType{AttrTypes: resourceTypes}, "client_qps": types.Int64Type, "client_burst": types.Int64Type,
		"feature_gates": gates,
	}
	kueueTypes = map[string]attr.Type{
		"enabled": types.BoolType, "version": types.StringType, "replicas": types.Int64Type,
		"resources": types.ObjectType{AttrTypes: resourceTypes}, "client_qps": types.Int64Type, "client_burst": types.Int64Type,
		"frameworks": names, "pods_ready_timeout": types.StringType, "recovery_timeout": types.StringType,
		"requeue_limit": types.Int64Type, "requeue_backoff": types.StringType, "requeue_max_backoff": types.StringType,
		"block_admission": types.BoolType, "fair_sharing": types.BoolType, "fair_sharing_preemption": names,
		"admission_fair_sharing":    types.ObjectType{AttrTypes: usageTypes},
		"manage_jobs_without_queue": types.BoolType, "namespace_selector": types.MapType{ElemType: types.StringType},
		"excluded_resources": names, "undeclared_resources": types.StringType, "visibility": types.BoolType,
		"queue_metrics": types.BoolType, "workload_retention": types.StringType, "feature_gates": gates,
	}
)

func (m *jobSetModel) config(ctx context.Context, diags *diag.Diagnostics) controllers.JobSetConfig {
	at := path.Root("jobset")
	return controllers.JobSetConfig{
		Disabled:     !boolOr(m.Enabled, true),
		Version:      m.Version.ValueString(),
		Replicas:     int(m.Replicas.ValueInt64()),
		Resources:    resources(ctx, m.Resources, at.AtName("resources"), diags),
		ClientQPS:    float32(m.ClientQPS.ValueInt64()),
		Burst:        int32(m.ClientBurst.ValueInt64()),
		FeatureGates: boolMap(ctx, m.FeatureGates, diags),
	}
}

func jobSetOf(ctx context.Context, c controllers.JobSetConfig, diags *diag.Diagnostics) jobSetModel {
	return jobSetModel{
		Enabled:      types.BoolValue(!c.Disabled),
		Version:      types.StringValue(c.Version),
		Replicas:     types.Int64Value(int64(c.Replicas)),
		Resources:    resourcesOf(ctx, c.Resources, diags),
		ClientQPS:    whole(c.ClientQPS),
		ClientBurst:  whole(c.Burst),
		FeatureGates: boolMapValue(ctx, c.FeatureGates, diags),
	}
}

func (m *kueueModel) config(ctx context.Context, diags *diag.Diagnostics) controllers.KueueConfig {
	at := path.Root("kueue")
	duration := func(s types.String, name string) (d metav1.Duration) {
		d.Duration = duration(s, at.AtName(name), diags)
		return d
	}
	c := controllers.KueueConfig{
		Disabled:         !boolOr(m.Enabled, true),
		Version:          m.Version.ValueString(),
		Replicas:         int(m.Replicas.ValueInt64()),
		Resources:        resources(ctx, m.Resources, at.AtName("resources"), diags),
		ClientQPS:        float32(m.ClientQPS.ValueInt64()),
		Burst:            int32(m.ClientBurst.ValueInt64()),
		Frameworks:       stringList(ctx, m.Frameworks, diags),
		PodsReadyTimeout: duration(m.PodsReadyTimeout, "pods_ready_timeout"),
		RecoveryTimeout:  duration(m.RecoveryTimeout, "recovery_timeout"),
		Requeue: controllers.Requeue{
			Backoff:    duration(m.RequeueBackoff, "requeue_backoff"),
			MaxBackoff: duration(m.RequeueMaxBackoff, "requeue_max_backoff"),
		},
		BlockAdmission:         m.BlockAdmission.ValueBool(),
		FairSharing:            m.FairSharing.ValueBool(),
		FairSharingPreemption:  stringList(ctx, m.FairSharingPreemption, diags),
		AdmissionFairSharing:   usage(ctx, m.AdmissionFairSharing, at.AtName("admission_fair_sharing"), diags),
		ManageJobsWithoutQueue: m.ManageJobsWithoutQueue.ValueBool(),
		NamespaceSelector:      stringMap(ctx, m.NamespaceSelector, diags),
		ExcludedResources:      stringList(ctx, m.ExcludedResources, diags),
		BlockUndeclared:        m.UndeclaredResources.ValueString() == undeclaredBlocks,
		NoVisibility:           !boolOr(m.Visibility, true),
		QueueMetrics:           m.QueueMetrics.ValueBool(),
		FeatureGates:           boolMap(ctx, m.FeatureGates, diags),
	}
	if !m.RequeueLimit.IsNull() && !m.RequeueLimit.IsUnknown() {
		c.Requeue.Limit = new(int32(min(m.RequeueLimit.ValueInt64(), math.MaxInt32)))
	}
	if keep := m.WorkloadRetention; !keep.IsNull() && !keep.IsUnknown() {
		c.KeepFinished = new(duration(keep, "workload_retention"))
	}
	return c
}

func kueueOf(ctx context.Context, c controllers.KueueConfig, diags *diag.Diagnostics) kueueModel {
	m := kueueModel{
		Enabled:                types.BoolValue(!c.Disabled),
		Version:                types.StringValue(c.Version),
		Replicas:               types.Int64Value(int64(c.Replicas)),
		Resources:              resourcesOf(ctx, c.Resources, diags),
		ClientQPS:              whole(c.ClientQPS),
		ClientBurst:            whole(c.Burst),
		Frameworks:             listValue(ctx, c.Frameworks, diags),
		PodsReadyTimeout:       types.StringValue(short(c.PodsReadyTimeout.Duration)),
		RecoveryTimeout:        types.StringValue(short(c.RecoveryTimeout.Duration)),
		RequeueLimit:           types.Int64Null(),
		RequeueBackoff:         durationOf(c.Requeue.Backoff),
		RequeueMaxBackoff:      durationOf(c.Requeue.MaxBackoff),
		BlockAdmission:         types.BoolValue(c.BlockAdmission),
		FairSharing:            types.BoolValue(c.FairSharing),
		FairSharingPreemption:  listValue(ctx, c.FairSharingPreemption, diags),
		AdmissionFairSharing:   usageOf(ctx, c.AdmissionFairSharing, diags),
		ManageJobsWithoutQueue: types.BoolValue(c.ManageJobsWithoutQueue),
		NamespaceSelector:      mapValue(ctx, c.NamespaceSelector, diags),
		ExcludedResources:      listValue(ctx, c.ExcludedResources, diags),
		UndeclaredResources:    types.StringValue(undeclaredIgnored),
		Visibility:             types.BoolValue(!c.NoVisibility),
		QueueMetrics:           types.BoolValue(c.QueueMetrics),
		WorkloadRetention:      types.StringNull(),
		FeatureGates:           boolMapValue(ctx, c.FeatureGates, diags),
	}
	if c.BlockUndeclared {
		m.UndeclaredResources = types.StringValue(undeclaredBlocks)
	}
	if c.Requeue.Limit != nil {
		m.RequeueLimit = types.Int64Value(int64(*c.Requeue.Limit))
	}
	if c.KeepFinished != nil {
		m.WorkloadRetention = types.StringValue(short(c.KeepFinished.Duration))
	}
	return m
}
