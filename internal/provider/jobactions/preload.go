package jobactions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// NewPreload is the action tpu_preload_image.
func NewPreload() action.Action { return &preload{} }

type preload struct{ configured }

var _ action.ActionWithConfigure = (*preload)(nil)

type preloadModel struct {
	Cluster        types.String `tfsdk:"cluster"`
	Image          types.String `tfsdk:"image"`
	Accelerator    types.String `tfsdk:"accelerator"`
	Namespace      types.String `tfsdk:"namespace"`
	ServiceAccount types.String `tfsdk:"service_account"`
	Timeout        types.String `tfsdk:"timeout"`
}

const preloadTimeout = 30 * time.Minute

// Metadata implements action.Action.
func (*preload) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_preload_image"
}

// Schema implements action.Action.
func (*preload) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Pulls an image to every host of one kind of slice, so that the next job starts without waiting for it. A DaemonSet does it, which is removed when all hosts have the image, " +
			"or the time is up. Hosts that come later do not have it: for large images that every new host is to have, give the slice pool a secondary boot disk.",
		Attributes: map[string]schema.Attribute{
			"cluster": schema.StringAttribute{Required: true, MarkdownDescription: "The cluster: the `id` of a `tpu_training_cluster`.", Validators: []validator.String{attr.ClusterPath()}},
			"image":   schema.StringAttribute{Required: true, MarkdownDescription: "The container image.", Validators: []validator.String{stringvalidator.LengthAtLeast(1)}},
			"accelerator": schema.StringAttribute{Required: true, MarkdownDescription: "The kind of slice, such as `v5litepod-16`.",
				Validators: []validator.String{attr.AcceleratorName()}},
			"namespace":       schema.StringAttribute{Optional: true, MarkdownDescription: "The namespace to do it in (default `default`).", Validators: []validator.String{attr.DNSLabel(63)}},
			"service_account": schema.StringAttribute{Optional: true, MarkdownDescription: "The Kubernetes service account whose pull secrets are used. The namespace's `default` by default."},
			"timeout":         schema.StringAttribute{Optional: true, MarkdownDescription: "How long it may take (default `30m`).", Validators: []validator.String{attr.PositiveDuration()}},
		},
	}
}

// Invoke implements action.Action.
func (a *preload) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m preloadModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, err := time.ParseDuration(cmp.Or(m.Timeout.ValueString(), preloadTimeout.String()))
	if err == nil && a.data == nil {
		err = errors.New("the provider is not configured")
	}
	if err == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s have passed", limit))
		defer cancel()
		err = a.run(ctx, m, func(s training.PreloadStatus) {
			text := fmt.Sprintf("%d of %d hosts have %s", s.Done, s.Hosts, m.Image.ValueString())
			if s.Trouble != "" {
				text += " (" + s.Trouble + ")"
			}
			resp.SendProgress(action.InvokeProgressEvent{Message: text})
		})
	}
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Cannot preload image "+m.Image.ValueString(), err)
	}
}

func (a *preload) run(ctx context.Context, m preloadModel, progress func(training.PreloadStatus)) error {
	slice, err := accelerator.Resolve(m.Accelerator.ValueString())
	if err != nil {
		return err
	}
	k, err := a.data.Cluster(ctx, m.Cluster.ValueString())
	if err != nil {
		return err
	}
	_, err = training.Preload{
		Namespace: cmp.Or(m.Namespace.ValueString(), "default"), ServiceAccount: m.ServiceAccount.ValueString(), Image: m.Image.ValueString(), Slice: slice,
	}.Run(ctx, k, progress)
	return err
}
