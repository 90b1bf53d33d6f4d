// Package namespace is the tpu_training_namespace resource: a namespace that
// jobs run in, the account they run as, and who may submit or look. It
// translates; what the objects look like is internal/queue's. It needs no
// Kueue and no JobSet to be installed.
package namespace

import (
	"fmt"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// NewResource makes the resource.
func NewResource() resource.Resource {
	return kubeobject.New[model](kubeobject.Kind{
		Type: "tpu_training_namespace", Noun: "namespace", Collection: "namespaces", Shared: true,
		Description: "A namespace that training jobs run in, with the service account of their pods and the people who may submit or watch them.\n\n" +
			"It does not need the job controllers and can be created before or beside them.",
		Name:       kubeobject.Name("The namespace's name: up to 63 lowercase letters, digits and dashes.", queue.CheckNamespace),
		Attributes: attributes(),
		Listing: kubeobject.Listing{
			Description: "Lists the namespaces of a cluster, whatever made them, without `default` and those of Kubernetes, GKE and the job controllers.",
			Objects:     func() client.ObjectList { return &corev1.NamespaceList{} },
			Hidden:      func(o client.Object) bool { return queue.SystemNamespace(o.GetName()) },
		},
		DeleteDescription: "How long to wait until the namespace and everything in it is gone (default `10m`).",
	})
}

func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
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
				"image_pull_secrets": schema.ListAttribute{
					Optional: true, ElementType: types.StringType,
					MarkdownDescription: "The names of secrets in the namespace (type `kubernetes.io/dockerconfigjson`) that its pods pull images with. This resource does not make them. Without it, those that the account has are left alone.",
					Validators:          []validator.List{listvalidator.SizeAtLeast(1)},
				},
			},
		},
		"submitters": subjects("Who may submit, change, suspend and delete jobs here", queue.SubmitterRole),
		"viewers":    subjects("Who may look at jobs, their pods and logs", queue.ViewerRole),
		"force": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Delete the namespace also while jobs that are not finished are in it, and them with it. The default is false: the deletion stops and names them.",
		},
		"roles": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "`as documented`, or which role somebody changed; the next apply puts it right.",
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
