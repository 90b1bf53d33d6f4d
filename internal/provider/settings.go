package provider

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	tpuattr "github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
)

// model is the provider's configuration as it is written.
type model struct {
	Project                 types.String `tfsdk:"project"`
	Location                types.String `tfsdk:"location"`
	Credentials             types.String `tfsdk:"credentials"`
	AccessToken             types.String `tfsdk:"access_token"`
	Impersonate             types.String `tfsdk:"impersonate_service_account"`
	Delegates               types.List   `tfsdk:"impersonate_service_account_delegates"`
	UserProjectOverride     types.Bool   `tfsdk:"user_project_override"`
	BillingProject          types.String `tfsdk:"billing_project"`
	GKEEndpoint             types.String `tfsdk:"gke_endpoint"`
	ComputeEndpoint         types.String `tfsdk:"compute_endpoint"`
	RequestTimeout          types.String `tfsdk:"request_timeout"`
	PollInterval            types.String `tfsdk:"poll_interval"`
	MaxConcurrentOperations types.Int64  `tfsdk:"max_concurrent_operations"`
	DefaultLabels           types.Map    `tfsdk:"default_labels"`
	Owner                   types.String `tfsdk:"owner"`
}

// Schema implements provider.Provider.
func (p *Provider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	endpoint := tpuattr.Check("Invalid endpoint", "https://HOST, or http:// with a loopback address", func(s string) error {
		_, err := gke.CheckEndpoint(s)
		return err
	})
	account := tpuattr.Check("Invalid service account", "the email address of a service account", checkAccount)
	resp.Schema = schema.Schema{
		MarkdownDescription: "Everything a team needs to train on Cloud TPUs in GKE: clusters, multi-host TPU slices, the JobSet and Kueue controllers, queues and training jobs. " +
			"Plans need no reachable cluster, so that one apply goes from an empty project to a running job.",
		Attributes: map[string]schema.Attribute{
			"project": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The default Google Cloud project. " +
					"Without it, the first of `GOOGLE_PROJECT`, `GOOGLE_CLOUD_PROJECT`, `GCLOUD_PROJECT` and `CLOUDSDK_CORE_PROJECT` that is set.",
				Validators: []validator.String{tpuattr.Project("the environment")},
			},
			"location": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The default location: a zone (`us-west4-a`) or a region (`us-west4`). " +
					"Without it, `GOOGLE_ZONE`, `GCLOUD_ZONE`, `CLOUDSDK_COMPUTE_ZONE`, then `GOOGLE_REGION`, `GCLOUD_REGION`, `CLOUDSDK_COMPUTE_REGION`.",
				Validators: []validator.String{tpuattr.Location("the environment")},
			},
			"credentials": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "Credentials JSON, or the path of a file with it: a service account key, a workload identity federation configuration, an impersonation, or a user's login. " +
					"Without it and `access_token`, the environment: see [Authentication](#authentication).",
				Validators: []validator.String{unlessBoth{other: "access_token", says: true, check: tpuattr.Check("Invalid credentials", "credentials JSON, or the path of a file with it", checkCredentials)}},
			},
			"access_token": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "An OAuth 2.0 access token. It is used as it is and cannot be renewed: a wait that is longer than its life (an hour, usually) fails.",
				Validators:          []validator.String{unlessBoth{other: "credentials", check: tpuattr.Check("Invalid access token", "an OAuth 2.0 access token", gke.CheckAccessToken)}},
			},
			"impersonate_service_account": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The email address of a service account to act as. The account in use needs `roles/iam.serviceAccountTokenCreator` on it. " +
					"Without it, `GOOGLE_IMPERSONATE_SERVICE_ACCOUNT`.",
				Validators: []validator.String{account},
			},
			"impersonate_service_account_delegates": schema.ListAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "The service accounts between the account in use and `impersonate_service_account`, in order. " +
					"Each needs `roles/iam.serviceAccountTokenCreator` on the next one.",
				Validators: []validator.List{listvalidator.ValueStringsAre(account)},
			},
			"user_project_override": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Count API requests against the quota of `billing_project`, or of `project` if that is not set, instead of the project that the credentials belong to. Without it, `USER_PROJECT_OVERRIDE`.",
			},
			"billing_project": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "The project that `user_project_override` counts requests against. Without it, `GOOGLE_BILLING_PROJECT`.",
			},
			"gke_endpoint": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Where the GKE API is, for private endpoints, proxies and the local sandbox: `https://HOST`, or `http://` with a loopback address. Without it, `TPU_GKE_ENDPOINT`, " +
					"then Google's public endpoint. Access tokens are never sent over plain http except to loopback addresses.",
				Validators: []validator.String{endpoint},
			},
			"compute_endpoint": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Where the Compute Engine API is, in the form of `gke_endpoint`. It is asked for the workload policies of multi-host tpu7x slices only. Without it, `TPU_COMPUTE_ENDPOINT`, " +
					"then Google's public endpoint.",
				Validators: []validator.String{endpoint},
			},
			"request_timeout": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "How long one request to the GKE API may take, as a duration such as `30s`, up to an hour. The default is `60s`. How long an operation may take is said by the `timeouts` of resources.",
				Validators:          []validator.String{duration(time.Hour)},
			},
			"poll_interval": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The shortest time between two looks at running operations, as a duration up to ten minutes; the default is `1s`. One request shows all operations of a location. " +
					"Looks come that often only while something waits for its turn or an operation should be over, and up to ten times as seldom otherwise.",
				Validators: []validator.String{duration(10 * time.Minute)},
			},
			"max_concurrent_operations": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "An upper bound on the operations in flight on one cluster at a time. Without it there is none but GKE's own quota, which the provider finds: it starts more operations as long as GKE takes them, and keeps to the number that GKE's refusal names. " +
					"Slice pools take turns. Set it to leave a part of the quota to others.",
				Validators: []validator.Int64{int64validator.AtLeast(1)},
			},
			"default_labels": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Google Cloud labels for everything this configuration makes. A resource's own `resource_labels` override them.",
				Validators:          []validator.Map{tpuattr.ResourceLabels()},
			},
			"owner": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "A name for this configuration, written as a label on what it makes. After a run that was killed, the next apply takes over what it had made if the owner and the specification agree. " +
					"Give each configuration (each state) its own: two with the same owner, or both without, take each other's objects of the same cluster, name and specification for their own, and the destroy of one deletes what the other uses. " +
					"Another owner is written on the slices that are there by the next apply, in place. Slices that were deleted and made again by another owner are not this configuration's any more: they count as missing, and are never changed or deleted. " +
					"Without an owner, only objects less than a day old are taken over. Without it, `TPU_OWNER`.",
				Validators: []validator.String{tpuattr.OwnerName()},
			},
		},
	}
}

// settings is the configuration with the environment filled in.
type settings struct {
	gke               gke.Config
	computeEndpoint   string
	project, location string
	owner             string
	labels            map[string]string
	partial           bool
}

func (m model) settings(ctx context.Context, getenv func(string) string, diags *diag.Diagnostics) settings {
	s := settings{
		project:  first(m.Project, getenv, "GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"),
		location: first(m.Location, getenv, "GOOGLE_ZONE", "GCLOUD_ZONE", "CLOUDSDK_COMPUTE_ZONE", "GOOGLE_REGION", "GCLOUD_REGION", "CLOUDSDK_COMPUTE_REGION"),
		owner:    first(m.Owner, getenv, "TPU_OWNER"),

		computeEndpoint: first(m.ComputeEndpoint, getenv, "TPU_COMPUTE_ENDPOINT"),
	}
	for _, v := range []attr.Value{m.Project, m.Location, m.Owner, m.DefaultLabels} {
		s.partial = s.partial || v.IsUnknown()
	}
	if !m.DefaultLabels.IsNull() && !m.DefaultLabels.IsUnknown() {
		var labels map[string]types.String // values may be unknown
		diags.Append(m.DefaultLabels.ElementsAs(ctx, &labels, false)...)
		s.labels = map[string]string{}
		for k, v := range labels {
			s.partial = s.partial || v.IsUnknown()
			s.labels[k] = v.ValueString()
		}
	}
	credentials := gke.CredentialsConfig{
		AccessToken: m.AccessToken.ValueString(),
		JSON:        m.Credentials.ValueString(),
		Impersonate: first(m.Impersonate, getenv, "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"),
		Getenv:      getenv,
	}
	credentials.Delegates, credentials.Unknown = m.delegates(), m.unknownCredentials()
	if v := credentials.JSON; v != "" { // a file may have come since the validation
		if err := gke.CheckCredentials(v); err != nil {
			diags.AddAttributeError(path.Root("credentials"), "Invalid credentials", err.Error())
		}
	}
	if len(credentials.Delegates) > 0 && credentials.Impersonate == "" && !m.Impersonate.IsUnknown() {
		diags.AddAttributeError(path.Root("impersonate_service_account_delegates"), "No service account to impersonate",
			"Delegates lead to the service account to act as, which is missing: set impersonate_service_account (or GOOGLE_IMPERSONATE_SERVICE_ACCOUNT).")
	}
	s.gke = gke.Config{
		Endpoint:      first(m.GKEEndpoint, getenv, "TPU_GKE_ENDPOINT"),
		Tokens:        gke.FindCredentials(credentials),
		MaxOperations: int(m.MaxConcurrentOperations.ValueInt64()),
	}
	s.gke.RequestTimeout, _ = parseDuration(m.RequestTimeout.ValueString()) // the schema has checked both;
	s.gke.PollInterval, _ = parseDuration(m.PollInterval.ValueString())     // "" becomes 0, the default
	s.gke.QuotaProject = m.quotaProject(s.project, getenv, diags)
	return s
}

// delegates are the known ones; while some are not, there is no token anyway.
func (m model) delegates() (accounts []string) {
	for _, v := range m.Delegates.Elements() {
		if s, ok := v.(types.String); ok && !s.IsUnknown() {
			accounts = append(accounts, s.ValueString())
		}
	}
	return accounts
}

// unknownCredentials names what of the credentials is not known yet, or is "".
func (m model) unknownCredentials() string {
	for name, v := range map[string]attr.Value{"credentials": m.Credentials, "access_token": m.AccessToken, "impersonate_service_account": m.Impersonate} {
		if v.IsUnknown() {
			return name
		}
	}
	delegates := m.Delegates.IsUnknown()
	for _, v := range m.Delegates.Elements() {
		delegates = delegates || v.IsUnknown()
	}
	if delegates {
		return "impersonate_service_account_delegates"
	}
	return ""
}

// quotaProject is what requests are counted against, "" for the project of the
// credentials.
func (m model) quotaProject(project string, getenv func(string) string, diags *diag.Diagnostics) string {
	const attribute, variable = "user_project_override", "USER_PROJECT_OVERRIDE"
	override, from := m.UserProjectOverride.ValueBool(), attribute
	if text := getenv(variable); m.UserProjectOverride.IsNull() && text != "" {
		var err error
		if override, err = strconv.ParseBool(text); err != nil {
			diags.AddError("Invalid "+variable, fmt.Sprintf("The environment variable %s is %q: want true or false.", variable, text))
			return ""
		}
		from = variable
	}
	billing := first(m.BillingProject, getenv, "GOOGLE_BILLING_PROJECT")
	switch {
	case !override && !m.UserProjectOverride.IsUnknown() && billing != "" && !m.BillingProject.IsNull():
		diags.AddAttributeWarning(path.Root("billing_project"), "billing_project has no effect",
			"Requests are counted against the project of the credentials unless user_project_override is true.")
	case override && billing == "" && project == "" && !m.BillingProject.IsUnknown() && !m.Project.IsUnknown():
		diags.AddAttributeError(path.Root(attribute), "No project to count requests against",
			from+" is true, but neither billing_project (GOOGLE_BILLING_PROJECT) nor project (GOOGLE_PROJECT) is set.")
	}
	if !override {
		return ""
	}
	return cmp.Or(billing, project)
}

// first is the configured value, or the first variable that is set. An unknown
// value is empty for now, and not to be replaced from the environment.
func first(configured types.String, getenv func(string) string, names ...string) string {
	if !configured.IsNull() {
		return configured.ValueString()
	}
	for _, n := range names {
		if v := getenv(n); v != "" {
			return v
		}
	}
	return ""
}
