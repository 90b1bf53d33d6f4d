// Package namespace is the tpu_training_namespace resource: a namespace that
// jobs run in, the account they run as, and who may submit or look. It
// translates; what the objects look like is internal/queue's. It needs no
// Kueue and no JobSet to be installed.
package namespace

import (
	"context"
	"fmt"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

const typeName = "tpu_training_namespace"

// NewResource makes the resource.
func NewResource() resource.Resource { return &namespaceResource{} }

type namespaceResource struct {
	conn.Child
}

var (
	_ resource.ResourceWithConfigure   = (*namespaceResource)(nil)
	_ resource.ResourceWithImportState = (*namespaceResource)(nil)
)

func (*namespaceResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = typeName
}

func (*namespaceResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A namespace that training jobs run in, with the service account of their pods and the people who may submit or watch them.\n\n" +
			"It does not need the job controllers and can be created before or beside them.",
		Attributes: map[string]schema.Attribute{
			"id":      attr.ID("projects/P/locations/L/clusters/C/namespaces/NAME"),
			"cluster": attr.Cluster(),
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The namespace's name: up to 63 lowercase letters, digits and dashes. Changing it makes a new namespace.",
				Validators:          []validator.String{attr.Check("Invalid namespace", "a namespace name", queue.CheckNamespace)},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"labels": schema.MapAttribute{
				Optional:            true,
				ElementType:         types.StringType,
				MarkdownDescription: "Further labels of the namespace. Labels that others set are left alone.",
				Validators:          []validator.Map{attr.KubernetesLabels()},
			},
			"annotations": schema.MapAttribute{
				Optional:            true,
				ElementType:         types.StringType,
				MarkdownDescription: "Further annotations of the namespace. Annotations that others set are left alone.",
			},
			"service_account": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "A Kubernetes service account to make in the namespace, for jobs to run as (`service_account` of `tpu_training_jobset`).",
				Attributes: map[string]schema.Attribute{
					"name": schema.StringAttribute{
						Required:            true,
						MarkdownDescription: "Its name.",
						Validators:          []validator.String{attr.DNSLabel(63)},
					},
					"google_service_account": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: "The e-mail of the Google service account that it acts as through Workload Identity. " +
							"That account must grant it `roles/iam.workloadIdentityUser`; this resource does not.",
						Validators: []validator.String{attr.Check("Invalid service account", "the e-mail of a Google service account", checkEmail)},
					},
				},
			},
			"submitters": subjects("Who may submit, change, suspend and delete jobs here", queue.SubmitterRole),
			"viewers":    subjects("Who may look at jobs, their pods and logs", queue.ViewerRole),
			"timeouts":   attr.Timeouts(ctx, timeouts.Opts{Create: true, Update: true, Delete: true, DeleteDescription: "How long to wait until the namespace and everything in it is gone (default `10m`)."}),
		},
	}
}

func subjects(what, role string) schema.SetAttribute {
	return schema.SetAttribute{
		Optional:    true,
		ElementType: types.StringType,
		MarkdownDescription: what + ": `user:EMAIL`, `group:EMAIL` or `serviceAccount:NAMESPACE/NAME`. " +
			"They are bound to the role `" + role + "` in the namespace, which is made for them.",
		Validators: []validator.Set{setvalidator.ValueStringsAre(attr.Check("Invalid subject", "user:EMAIL, group:EMAIL or serviceAccount:NAMESPACE/NAME", func(s string) error {
			_, err := parseSubject(s)
			return err
		}))},
	}
}

var email = regexp.MustCompile(`^[^@\s]+@[^@\s]+\.[^@\s]+$`)

func checkEmail(s string) error {
	if !email.MatchString(s) {
		return fmt.Errorf("%q is not the e-mail of a Google service account (NAME@PROJECT.iam.gserviceaccount.com)", s)
	}
	return nil
}

// ImportState reads the cluster and name out of the id.
func (*namespaceResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	cluster, names, err := conn.ParseID(req.ID, "namespaces")
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Invalid import id", err)
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("cluster"), cluster)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), names[0])...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), req.ID)...)
}
