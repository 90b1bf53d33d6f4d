package admissioncheck

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

type model struct {
	kubeobject.Object
	Controller types.String `tfsdk:"controller"`
	Parameters types.Object `tfsdk:"parameters"`
	Request    types.Object `tfsdk:"provisioning_request"`
	Status     types.String `tfsdk:"status"`
}

type parameters struct {
	APIGroup types.String `tfsdk:"api_group"`
	Kind     types.String `tfsdk:"kind"`
	Name     types.String `tfsdk:"name"`
}

type request struct {
	Class            types.String `tfsdk:"class"`
	Parameters       types.Map    `tfsdk:"parameters"`
	ManagedResources types.Set    `tfsdk:"managed_resources"`
	NodeSelector     types.Map    `tfsdk:"node_selector"`
	MergePolicy      types.String `tfsdk:"pod_set_merge_policy"`
	RetryLimit       types.Int64  `tfsdk:"retry_limit"`
	RetryBase        types.Int64  `tfsdk:"retry_base_seconds"`
	RetryMax         types.Int64  `tfsdk:"retry_max_seconds"`
}

var (
	texts          = types.MapType{ElemType: types.StringType}
	parametersType = map[string]attr.Type{"api_group": types.StringType, "kind": types.StringType, "name": types.StringType}
	requestType    = map[string]attr.Type{
		"class": types.StringType, "parameters": texts, "managed_resources": types.SetType{ElemType: types.StringType},
		"node_selector": texts, "pod_set_merge_policy": types.StringType,
		"retry_limit": types.Int64Type, "retry_base_seconds": types.Int64Type, "retry_max_seconds": types.Int64Type,
	}
)

// spec translates. known is false while a value is not known yet.
func (m *model) spec(ctx context.Context, diags *diag.Diagnostics) (c queue.AdmissionCheck, known bool) {
	for _, v := range []attr.Value{m.Name, m.Controller, m.Parameters, m.Request} {
		if tf, err := v.ToTerraformValue(ctx); err != nil || !tf.IsFullyKnown() {
			return c, false
		}
	}
	c = queue.AdmissionCheck{Name: m.Name.ValueString(), Controller: m.Controller.ValueString()}
	if m.Controller.IsNull() { // in a configuration, before defaults
		c.Controller = queue.ProvisioningController
	}
	if !m.Parameters.IsNull() {
		var p parameters
		diags.Append(m.Parameters.As(ctx, &p, basetypes.ObjectAsOptions{})...)
		c.Parameters = &queue.CheckParameters{APIGroup: p.APIGroup.ValueString(), Kind: p.Kind.ValueString(), Name: p.Name.ValueString()}
	}
	if !m.Request.IsNull() {
		r := m.request(ctx, diags)
		c.Request = &queue.Request{Class: r.Class.ValueString(), Parameters: conn.Strings(ctx, r.Parameters, diags),
			NodeSelector: conn.Strings(ctx, r.NodeSelector, diags), MergePolicy: r.MergePolicy.ValueString(),
			Retry: queue.Retry{Limit: number(r.RetryLimit, queue.DefaultRetry.Limit), BaseSeconds: number(r.RetryBase, queue.DefaultRetry.BaseSeconds),
				MaxSeconds: number(r.RetryMax, queue.DefaultRetry.MaxSeconds)}}
		diags.Append(r.ManagedResources.ElementsAs(ctx, &c.Request.ManagedResources, false)...)
	}
	return c, true
}

func (m *model) request(ctx context.Context, diags *diag.Diagnostics) (r request) {
	diags.Append(m.Request.As(ctx, &r, basetypes.ObjectAsOptions{})...)
	return r
}

func number(v types.Int64, otherwise int32) int32 {
	if v.IsNull() {
		return otherwise
	}
	return int32(v.ValueInt64())
}

// Check refuses what Kueue would.
func (m *model) Check(ctx context.Context, diags *diag.Diagnostics) {
	c, known := m.spec(ctx, diags)
	if !known || diags.HasError() {
		return
	}
	if err := c.Validate(); err != nil {
		diags.AddError("Invalid admission check", err.Error())
	}
}

// Write applies the check, after the configuration that it names.
func (m *model) Write(ctx context.Context, w *kubeobject.Writer[model]) error {
	c, _ := m.spec(ctx, w.Diags)
	config := c.ConfigObject()
	if config != nil {
		if w.Before == nil {
			if err := w.Claim(ctx, config); err != nil {
				return err
			}
		}
		if err := w.Part(ctx, config); err != nil {
			return err
		}
	}
	m.Status = types.StringValue("Unknown")
	if err := w.Apply(ctx, c.Object()); err != nil {
		return err
	}
	if w.Before != nil && config == nil {
		if before, _ := w.Before.spec(ctx, w.Diags); before.Request != nil {
			if err := w.Remove(ctx, before.ConfigObject(), false); err != nil {
				return err
			}
		}
	}
	m.settle(ctx, w.Client, w.Diags)
	return nil
}

// answeredWithin is how long a check's controller gets to look at it before the
// apply goes on with a warning.
const answeredWithin = 3 * time.Second

// settle waits a moment for the check's controller, where it can answer at all,
// and warns when it does not.
func (m *model) settle(ctx context.Context, k *kube.Client, diags *diag.Diagnostics) {
	short, cancel := context.WithTimeout(ctx, answeredWithin)
	defer cancel()
	live := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}
	var s queue.CheckStanding
	err := k.Until(short, live, func(found bool) (done bool, err error) {
		if found {
			s, err = queue.StandingOfCheck(short, k, live)
		}
		return s.Final, err
	})
	m.Status = status(s)
	if err == nil && s.Active {
		return
	}
	if s.Message == "" && err != nil {
		s.Message = err.Error()
	}
	diags.AddWarning("Admission check is not active", s.Message+"\nQueues that name it admit no jobs until it is.")
}

// status is "Active", or the reason why the check is not.
func status(s queue.CheckStanding) types.String {
	switch {
	case s.Active:
		return types.StringValue(kueue.AdmissionCheckActive)
	case s.Reason == "":
		return types.StringValue("Unknown")
	}
	return types.StringValue(s.Reason)
}

// Read takes over what the cluster has.
func (m *model) Read(ctx context.Context, k *kube.Client, diags *diag.Diagnostics) (bool, error) {
	live := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}
	if found, err := k.Fetch(ctx, live); err != nil || !found || live.DeletionTimestamp != nil {
		return false, err
	}
	config := &kueue.ProvisioningRequestConfig{ObjectMeta: metav1.ObjectMeta{Name: live.Name}}
	found, err := k.Fetch(ctx, config)
	if err != nil {
		return false, err
	}
	if !found || config.DeletionTimestamp != nil {
		config = nil
	}
	m.take(ctx, queue.AdmissionCheckOf(live, config), diags)
	s, err := queue.StandingOfCheck(ctx, k, live)
	m.Status = status(s)
	return err == nil, err
}

func (m *model) take(ctx context.Context, c queue.AdmissionCheck, diags *diag.Diagnostics) {
	m.Controller = types.StringValue(c.Controller)
	m.Parameters = types.ObjectNull(parametersType)
	if p := c.Parameters; p != nil {
		object, d := types.ObjectValueFrom(ctx, parametersType, parameters{types.StringValue(p.APIGroup), types.StringValue(p.Kind), types.StringValue(p.Name)})
		diags.Append(d...)
		m.Parameters = object
	}
	if c.Request == nil {
		m.Request = types.ObjectNull(requestType)
		return
	}
	had := request{Parameters: types.MapNull(types.StringType), NodeSelector: types.MapNull(types.StringType), ManagedResources: types.SetNull(types.StringType)}
	if !m.Request.IsNull() {
		had = m.request(ctx, diags)
	}
	r := request{
		Class: types.StringValue(c.Request.Class), Parameters: emptyOrNull(had.Parameters, c.Request.Parameters),
		NodeSelector: emptyOrNull(had.NodeSelector, c.Request.NodeSelector), ManagedResources: had.ManagedResources, MergePolicy: types.StringNull(),
		RetryLimit: types.Int64Value(int64(c.Request.Retry.Limit)), RetryBase: types.Int64Value(int64(c.Request.Retry.BaseSeconds)),
		RetryMax: types.Int64Value(int64(c.Request.Retry.MaxSeconds)),
	}
	if c.Request.MergePolicy != "" {
		r.MergePolicy = types.StringValue(c.Request.MergePolicy)
	}
	var resources []string
	diags.Append(had.ManagedResources.ElementsAs(ctx, &resources, false)...)
	if live := slices.Sorted(slices.Values(c.Request.ManagedResources)); !slices.Equal(live, slices.Sorted(slices.Values(resources))) {
		r.ManagedResources = types.SetNull(types.StringType)
		if len(live) > 0 {
			set, d := types.SetValueFrom(ctx, types.StringType, live)
			diags.Append(d...)
			r.ManagedResources = set
		}
	}
	object, d := types.ObjectValueFrom(ctx, requestType, r)
	diags.Append(d...)
	m.Request = object
}

// emptyOrNull keeps {} where it was written and there is nothing.
func emptyOrNull(had types.Map, live map[string]string) types.Map {
	if len(live) == 0 && !had.IsNull() && len(had.Elements()) == 0 {
		return had
	}
	return conn.StringMap(live)
}

// Remove deletes the check, and then its configuration. One that only a queue
// holds back is left to Kueue.
func (m *model) Remove(ctx context.Context, k *kube.Client, diags *diag.Diagnostics) error {
	c, _ := m.spec(ctx, diags)
	holders, err := queue.Release(ctx, k, &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}, "admission check "+c.Name, queue.UsesCheck(c.Name))
	if err != nil {
		return err
	}
	if config := c.ConfigObject(); config != nil {
		if err := k.Remove(ctx, config, false); err != nil {
			return err
		}
	}
	if len(holders) > 0 {
		diags.AddWarning("Admission check goes when its queues let it go", fmt.Sprintf(
			"Admission check %s is marked for deletion, and Kueue removes it as soon as no queue names it. Named by: %s.", c.Name, strings.Join(holders, ", ")))
	}
	return nil
}
