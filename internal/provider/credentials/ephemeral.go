// Package credentials is the ephemeral resource tpu_cluster_credentials: how to
// reach a cluster's API server, with a short-lived token, for other providers.
// Nothing of it is stored. It knows no resource.
package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// margin is how long before the end of a token Terraform is to come back.
const margin = 2 * time.Minute

// privateKey is under which Renew finds what Open knew; Terraform keeps it in
// memory only.
const privateKey = "token"

// New is the ephemeral resource tpu_cluster_credentials.
func New() ephemeral.EphemeralResource { return &credentials{} }

type credentials struct{ data *conn.Data }

var (
	_ ephemeral.EphemeralResourceWithConfigure = (*credentials)(nil)
	_ ephemeral.EphemeralResourceWithRenew     = (*credentials)(nil)
)

type model struct {
	Cluster       types.String `tfsdk:"cluster"`
	EndpointType  types.String `tfsdk:"endpoint_type"`
	Endpoint      types.String `tfsdk:"endpoint"`
	CACertificate types.String `tfsdk:"ca_certificate"`
	Token         types.String `tfsdk:"token"`
	ExpiresAt     types.String `tfsdk:"expires_at"`
}

// Metadata implements ephemeral.EphemeralResource.
func (*credentials) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_cluster_credentials"
}

// Configure implements ephemeral.EphemeralResourceWithConfigure.
func (c *credentials) Configure(_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse) {
	c.data = conn.From(req.ProviderData, &resp.Diagnostics)
}

// Schema implements ephemeral.EphemeralResource.
func (*credentials) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	kinds := make([]string, 0, len(gke.EndpointKinds()))
	for _, k := range gke.EndpointKinds() {
		kinds = append(kinds, string(k))
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "How to reach a cluster's API server, for the configuration of another provider (kubernetes, helm): endpoint, certificate and a short-lived token of the account that this provider uses. " +
			"Nothing of it is written to the plan or the state. Needs Terraform 1.10 or OpenTofu 1.11, or newer.",
		Attributes: map[string]schema.Attribute{
			"cluster": schema.StringAttribute{
				Required: true, Validators: []validator.String{attr.ClusterPath()},
				MarkdownDescription: "The GKE cluster, as `projects/PROJECT/locations/LOCATION/clusters/CLUSTER`: the `id` of a `tpu_training_cluster`. " +
					"Take it from the resource when this run makes it, and use the same provider configuration for both. " +
					"While that resource has changes to make, OpenTofu knows nothing of this before the apply: when the other provider has resources already, apply the cluster first (`-target`).",
			},
			"endpoint_type": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(kinds...)},
				MarkdownDescription: "Which endpoint: `ip` (the default: the public address, or the private one of a cluster without a public one), `private_ip` (from inside the VPC) or `dns` (a name that is reachable from wherever IAM lets the account through).",
			},
			"endpoint":       schema.StringAttribute{Computed: true, MarkdownDescription: "The host of the API server, without `https://`."},
			"ca_certificate": schema.StringAttribute{Computed: true, MarkdownDescription: "The certificate (PEM) that signs the API server's. Null for `dns`, whose certificate every system trusts."},
			"token":          schema.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: "An access token, made for this run: it has its whole life, an hour usually, before it. An `access_token` of the provider's configuration is passed on as it is."},
			"expires_at":     schema.StringAttribute{Computed: true, MarkdownDescription: "When the token ends (RFC 3339). Null when that is not known: of an `access_token`, nobody says."},
		},
	}
}

// Open implements ephemeral.EphemeralResource.
func (c *credentials) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if c.data == nil {
		resp.Diagnostics.AddError("Cannot get credentials of a cluster", "the provider is not configured")
		return
	}
	if m.Cluster.IsUnknown() || m.EndpointType.IsUnknown() {
		m.unknown(ctx, resp)
		return
	}
	name, err := gke.ParseClusterName(m.Cluster.ValueString())
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("cluster"), "Invalid cluster", err.Error())
		return
	}
	kind := gke.EndpointIP
	if !m.EndpointType.IsNull() {
		kind = gke.EndpointKind(m.EndpointType.ValueString())
	}
	found, err := c.data.GKE.ClusterCredentials(ctx, name, kind)
	switch {
	case err != nil && c.data.Coming.Has(name.String()) && (errors.Is(err, gke.NotFound) || errors.Is(err, gke.Unavailable)):
		if req.ClientCapabilities.DeferralAllowed {
			resp.Deferred = &ephemeral.Deferred{Reason: ephemeral.DeferredReasonAbsentPrereq}
			return
		}
		m.unknown(ctx, resp)
		return
	case errors.Is(err, gke.NotFound):
		resp.Diagnostics.AddAttributeError(path.Root("cluster"), "Cluster "+name.Cluster+" does not exist", c.data.GKE.Absent(ctx, name).Error()+
			"\nIf this run makes it, take cluster from the resource, tpu_training_cluster.NAME.id, and use the same provider configuration for both: "+
			"then the credentials are asked for once it is there.")
		return
	case err != nil:
		resp.Diagnostics.AddError("Cannot get credentials of cluster "+name.Cluster, err.Error())
		return
	}
	m.Endpoint, m.Token = types.StringValue(found.Endpoint), types.StringValue(found.Token)
	m.CACertificate, m.ExpiresAt = types.StringNull(), types.StringNull()
	if found.CA != nil {
		m.CACertificate = types.StringValue(string(found.CA))
	}
	if !found.Expiry.IsZero() {
		m.ExpiresAt = types.StringValue(found.Expiry.UTC().Format(time.RFC3339))
		resp.RenewAt = found.Expiry.Add(-margin)
		kept, err := json.Marshal(lease{Cluster: name.String(), Expiry: found.Expiry})
		if err != nil {
			resp.Diagnostics.AddError("Internal error", err.Error()+"; please report this")
			return
		}
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, privateKey, kept)...)
	}
	resp.Diagnostics.Append(resp.Result.Set(ctx, m)...)
}

// unknown is the answer while nobody can know a better one: the plan has the id
// of a cluster that the apply is going to make, and Terraform opens what it can
// name.
func (m model) unknown(ctx context.Context, resp *ephemeral.OpenResponse) {
	unknown := types.StringUnknown()
	m.Endpoint, m.Token, m.CACertificate, m.ExpiresAt = unknown, unknown, unknown, unknown
	resp.Diagnostics.Append(resp.Result.Set(ctx, m)...)
}

// lease is what Renew has to know.
type lease struct {
	Cluster string    `json:"cluster"`
	Expiry  time.Time `json:"expiry"`
}

// Renew implements ephemeral.EphemeralResourceWithRenew. Google's access tokens
// cannot be prolonged, and Terraform lets nobody replace a value that it has
// handed out: so a run that outlives the token is told before requests fail.
func (*credentials) Renew(ctx context.Context, req ephemeral.RenewRequest, resp *ephemeral.RenewResponse) {
	kept, d := req.Private.GetKey(ctx, privateKey)
	resp.Diagnostics.Append(d...)
	var l lease
	if err := json.Unmarshal(kept, &l); err != nil {
		resp.Diagnostics.AddError("Internal error", "the token's end was not kept: "+err.Error()+"; please report this")
		return
	}
	resp.Diagnostics.AddWarning("The token for "+l.Cluster+" ends at "+l.Expiry.UTC().Format(time.RFC3339),
		"It cannot be prolonged, and this run goes on. Whatever uses it (the kubernetes provider, say) may be refused from then on; apply again to go on with a new token. "+
			"For runs that take longer than a token lives, let the provider fetch tokens by itself: an exec block with gke-gcloud-auth-plugin.")
}
