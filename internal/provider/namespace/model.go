package namespace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

type model struct {
	kubeobject.Object
	Labels         types.Map    `tfsdk:"labels"`
	Annotations    types.Map    `tfsdk:"annotations"`
	ServiceAccount types.Object `tfsdk:"service_account"`
	Submitters     types.Set    `tfsdk:"submitters"`
	Viewers        types.Set    `tfsdk:"viewers"`
	Roles          types.String `tfsdk:"roles"`
	Force          types.Bool   `tfsdk:"force"`
}

var accountTypes = map[string]attr.Type{
	"name": types.StringType, "google_service_account": types.StringType, "image_pull_secrets": types.ListType{ElemType: types.StringType},
}

// spec translates. known is false while the plan holds values that only an
// apply will know; then the spec is not to be used.
func (m *model) spec(ctx context.Context, diags *diag.Diagnostics) (n queue.Namespace, known bool) {
	if !allKnown(m.Name, m.Labels, m.Annotations, m.ServiceAccount, m.Submitters, m.Viewers) {
		return n, false
	}
	n = queue.Namespace{
		Name:        m.Name.ValueString(),
		Labels:      conn.Strings(ctx, m.Labels, diags),
		Annotations: conn.Strings(ctx, m.Annotations, diags),
		Submitters:  parseSubjects(ctx, m.Submitters, diags),
		Viewers:     parseSubjects(ctx, m.Viewers, diags),
	}
	account := m.ServiceAccount.Attributes()
	name, _ := account["name"].(types.String)
	google, _ := account["google_service_account"].(types.String)
	n.ServiceAccount, n.GoogleServiceAccount = name.ValueString(), google.ValueString()
	if secrets, ok := account["image_pull_secrets"].(types.List); ok {
		diags.Append(secrets.ElementsAs(ctx, &n.PullSecrets, false)...)
	}
	return n, !diags.HasError()
}

// allKnown tells whether values are known, with all that is in them.
func allKnown(values ...attr.Value) bool {
	for _, v := range values {
		var inner []attr.Value
		switch v := v.(type) {
		case types.Map:
			inner = slices.Collect(maps.Values(v.Elements()))
		case types.Set:
			inner = v.Elements()
		case types.List:
			inner = v.Elements()
		case types.Object:
			inner = slices.Collect(maps.Values(v.Attributes()))
		}
		if v.IsUnknown() || !allKnown(inner...) {
			return false
		}
	}
	return true
}

func parseSubjects(ctx context.Context, set types.Set, diags *diag.Diagnostics) []queue.Subject {
	var texts []string
	if !set.IsNull() {
		diags.Append(set.ElementsAs(ctx, &texts, false)...)
	}
	var out []queue.Subject
	for _, text := range texts {
		s, err := parseSubject(text)
		if err != nil {
			conn.AddError(diags, "Invalid subject", err)
			continue
		}
		out = append(out, s)
	}
	return out
}

// parseSubject reads user:EMAIL, group:EMAIL and serviceAccount:NAMESPACE/NAME.
func parseSubject(text string) (queue.Subject, error) {
	kind, name, _ := strings.Cut(text, ":")
	namespace, account, pair := strings.Cut(name, "/")
	switch {
	case name == "":
	case kind == "user":
		return queue.Subject{Kind: rbacv1.UserKind, Name: name}, nil
	case kind == "group":
		return queue.Subject{Kind: rbacv1.GroupKind, Name: name}, nil
	case kind == "serviceAccount" && pair && namespace != "" && account != "":
		return queue.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}, nil
	}
	return queue.Subject{}, fmt.Errorf("%q does not name anybody: want user:EMAIL, group:EMAIL or serviceAccount:NAMESPACE/NAME", text)
}

func subjectText(s rbacv1.Subject) string {
	switch s.Kind {
	case rbacv1.UserKind:
		return "user:" + s.Name
	case rbacv1.GroupKind:
		return "group:" + s.Name
	}
	return "serviceAccount:" + s.Namespace + "/" + s.Name
}
