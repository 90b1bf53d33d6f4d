package namespace

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

type model struct {
	ID             types.String   `tfsdk:"id"`
	Cluster        types.String   `tfsdk:"cluster"`
	Name           types.String   `tfsdk:"name"`
	Labels         types.Map      `tfsdk:"labels"`
	Annotations    types.Map      `tfsdk:"annotations"`
	ServiceAccount *account       `tfsdk:"service_account"`
	Submitters     types.Set      `tfsdk:"submitters"`
	Viewers        types.Set      `tfsdk:"viewers"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`
}

type account struct {
	Name   types.String `tfsdk:"name"`
	Google types.String `tfsdk:"google_service_account"`
}

func (m model) id() string { return m.Cluster.ValueString() + "/namespaces/" + m.Name.ValueString() }

// spec translates the plan, whose values are all known by the time of apply.
func (m model) spec(ctx context.Context, diags *diag.Diagnostics) queue.Namespace {
	n := queue.Namespace{
		Name:        m.Name.ValueString(),
		Labels:      conn.Strings(ctx, m.Labels, diags),
		Annotations: conn.Strings(ctx, m.Annotations, diags),
		Submitters:  parseSubjects(ctx, m.Submitters, diags),
		Viewers:     parseSubjects(ctx, m.Viewers, diags),
	}
	if a := m.ServiceAccount; a != nil {
		n.ServiceAccount, n.GoogleServiceAccount = a.Name.ValueString(), a.Google.ValueString()
	}
	return n
}

func parseSubjects(ctx context.Context, set types.Set, diags *diag.Diagnostics) []queue.Subject {
	if set.IsNull() || set.IsUnknown() {
		return nil
	}
	var texts []string
	diags.Append(set.ElementsAs(ctx, &texts, false)...)
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

// read takes over what the cluster has. Of labels and annotations only ours
// are looked at: those in state, or on import those our field manager owns.
func (m *model) read(live *corev1.Namespace) {
	m.ID = types.StringValue(m.id())
	m.Labels = conn.OwnedStrings(m.Labels, live.Labels, live, "labels")
	m.Annotations = conn.OwnedStrings(m.Annotations, live.Annotations, live, "annotations")
}
