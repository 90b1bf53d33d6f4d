package acctest

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"golang.org/x/oauth2"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// Protocol talks to the provider in this process as Terraform does, without
// Terraform: a create, refresh, update or plan takes milliseconds. Values are
// what JSON has: nil, bool, string, int, float64, []any and map[string]any.
type Protocol struct {
	t       testing.TB
	ctx     context.Context
	server  tfprotov6.ProviderServer
	schemas map[string]*tfprotov6.Schema
	all     *tfprotov6.GetProviderSchemaResponse
}

// Unknown is a value that only the apply will know.
var Unknown any = struct{ unknown bool }{true}

// Resource is one object in state.
type Resource struct {
	Type    string
	State   map[string]any
	raw     *tfprotov6.DynamicValue
	private []byte
}

// Plan is what Terraform would show for one object.
type Plan struct {
	Changed []string // attributes that differ from state, sorted
	Replace []string // those that make a new object of it
	Planned map[string]any
	Text    string // diagnostics
	raw     *tfprotov6.DynamicValue
	private []byte
}

// Protocol serves a provider with this owner ("" for none), configured for g.
func (g *GKE) Protocol(t testing.TB, owner string) *Protocol {
	t.Helper()
	server, err := g.Factories()["tpu"]()
	if err != nil {
		t.Fatal(err)
	}
	all, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	p := &Protocol{t: t, ctx: t.Context(), server: server, schemas: all.ResourceSchemas, all: all}
	settings := map[string]any{"project": g.Project, "location": g.Zone, "gke_endpoint": g.Endpoint, "compute_endpoint": g.Endpoint,
		"access_token": Token, "poll_interval": "10ms"}
	if owner != "" {
		settings["owner"] = owner
	}
	resp, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.14.0",
		Config: p.dynamic(all.Provider.ValueType(), settings)})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatalf("configuring the provider: %v: %s", err, said(resp.Diagnostics))
	}
	return p
}

// Under is the same provider, whose calls end with ctx: as Terraform's do by an
// interrupt.
func (p *Protocol) Under(ctx context.Context) *Protocol {
	under := *p
	under.ctx = ctx
	return &under
}

// MakeCluster makes a cluster beside the provider and returns its path.
func (g *GKE) MakeCluster(t testing.TB, name string) string {
	t.Helper()
	api, n := g.api(t, name)
	if err := api.CreateCluster(t.Context(), n, &containerpb.Cluster{Name: name, InitialNodeCount: 1,
		IpAllocationPolicy: &containerpb.IPAllocationPolicy{UseIpAliases: true}}, nil); err != nil {
		t.Fatal(err)
	}
	return n.String()
}

// RemoveCluster deletes a cluster beside the provider.
func (g *GKE) RemoveCluster(t testing.TB, name string) {
	t.Helper()
	api, n := g.api(t, name)
	if err := api.DeleteCluster(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

func (g *GKE) api(t testing.TB, cluster string) (*gke.Client, gke.ClusterName) {
	t.Helper()
	api, err := gke.New(gke.Config{Endpoint: g.Endpoint, PollInterval: 5 * time.Millisecond, Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: Token})})
	if err != nil {
		t.Fatal(err)
	}
	return api, gke.ClusterName{Project: g.Project, Location: g.Zone, Cluster: cluster}
}

// Validate is what `terraform validate` says of a configuration: "" is nothing.
func (p *Protocol) Validate(typ string, config map[string]any) string {
	p.t.Helper()
	resp, err := p.server.ValidateResourceConfig(p.ctx, &tfprotov6.ValidateResourceConfigRequest{TypeName: typ, Config: p.config(typ, config)})
	if err != nil {
		p.t.Fatal(err)
	}
	return said(resp.Diagnostics)
}

// Plan plans a configuration; prior is nil for a new object.
func (p *Protocol) Plan(typ string, prior *Resource, config map[string]any) Plan {
	p.t.Helper()
	schema := p.schemas[typ]
	before, had := p.null(typ), map[string]any(nil)
	var private []byte
	if prior != nil {
		before, had, private = prior.raw, prior.State, prior.private
	}
	resp, err := p.server.PlanResourceChange(p.ctx, &tfprotov6.PlanResourceChangeRequest{TypeName: typ, PriorState: before, PriorPrivate: private,
		Config: p.config(typ, config), ProposedNewState: p.dynamic(schema.ValueType(), proposed(schema.Block.Attributes, config, had))})
	if err != nil {
		p.t.Fatal(err)
	}
	out := Plan{Text: said(resp.Diagnostics), raw: resp.PlannedState, private: resp.PlannedPrivate}
	if resp.PlannedState == nil {
		return out
	}
	out.Planned = p.plain(typ, resp.PlannedState)
	for name := range out.Planned {
		if prior != nil && fmt.Sprint(out.Planned[name]) != fmt.Sprint(had[name]) {
			out.Changed = append(out.Changed, name)
		}
	}
	for _, path := range resp.RequiresReplace {
		out.Replace = append(out.Replace, path.String())
	}
	slices.Sort(out.Changed)
	return out
}

// Apply validates, plans and applies a configuration. Text is all that was
// said; what is refused leaves prior in place.
func (p *Protocol) Apply(typ string, prior *Resource, config map[string]any) (r *Resource, text string) {
	p.t.Helper()
	if text := p.Validate(typ, config); strings.Contains(text, "ERROR") {
		return prior, text
	}
	plan := p.Plan(typ, prior, config)
	if strings.Contains(plan.Text, "ERROR") {
		return prior, plan.Text
	}
	before := p.null(typ)
	if prior != nil {
		before = prior.raw
	}
	resp, err := p.server.ApplyResourceChange(p.ctx, &tfprotov6.ApplyResourceChangeRequest{TypeName: typ, PriorState: before,
		PlannedState: plan.raw, Config: p.config(typ, config), PlannedPrivate: plan.private})
	if err != nil {
		p.t.Fatal(err)
	}
	return p.resource(typ, resp.NewState, resp.Private), plan.Text + said(resp.Diagnostics)
}

// Refresh reads an object; nil is gone.
func (p *Protocol) Refresh(r *Resource) (*Resource, string) {
	p.t.Helper()
	resp, err := p.server.ReadResource(p.ctx, &tfprotov6.ReadResourceRequest{TypeName: r.Type, CurrentState: r.raw, Private: r.private})
	if err != nil {
		p.t.Fatal(err)
	}
	return p.resource(r.Type, resp.NewState, resp.Private), said(resp.Diagnostics)
}

// Import imports an object by its id and reads it; nil does not exist.
func (p *Protocol) Import(typ, id string) (*Resource, string) {
	p.t.Helper()
	resp, err := p.server.ImportResourceState(p.ctx, &tfprotov6.ImportResourceStateRequest{TypeName: typ, ID: id})
	if err != nil {
		p.t.Fatal(err)
	}
	if len(resp.ImportedResources) == 0 {
		return nil, said(resp.Diagnostics)
	}
	one := resp.ImportedResources[0]
	return p.Refresh(p.resource(typ, one.State, one.Private))
}

// Destroy deletes an object. What is refused leaves it in place.
func (p *Protocol) Destroy(r *Resource) (*Resource, string) {
	p.t.Helper()
	resp, err := p.server.ApplyResourceChange(p.ctx, &tfprotov6.ApplyResourceChangeRequest{TypeName: r.Type, PriorState: r.raw,
		PlannedState: p.null(r.Type), Config: p.null(r.Type), PlannedPrivate: r.private})
	if err != nil {
		p.t.Fatal(err)
	}
	return p.resource(r.Type, resp.NewState, resp.Private), said(resp.Diagnostics)
}

func (p *Protocol) resource(typ string, raw *tfprotov6.DynamicValue, private []byte) *Resource {
	state := p.plain(typ, raw)
	if state == nil {
		return nil
	}
	return &Resource{Type: typ, State: state, raw: raw, private: private}
}

func (p *Protocol) plain(typ string, raw *tfprotov6.DynamicValue) map[string]any {
	p.t.Helper()
	if raw == nil {
		return nil
	}
	v, err := raw.Unmarshal(p.schemas[typ].ValueType())
	if err != nil {
		p.t.Fatal(err)
	}
	m, _ := fromValue(v).(map[string]any)
	return m
}

func (p *Protocol) null(typ string) *tfprotov6.DynamicValue {
	return p.dynamic(p.schemas[typ].ValueType(), nil)
}

func (p *Protocol) config(typ string, config map[string]any) *tfprotov6.DynamicValue {
	p.t.Helper()
	if _, ok := p.schemas[typ]; !ok {
		p.t.Fatalf("there is no %s", typ)
	}
	return p.dynamic(p.schemas[typ].ValueType(), config)
}

func (p *Protocol) dynamic(typ tftypes.Type, v any) *tfprotov6.DynamicValue {
	p.t.Helper()
	if m, ok := v.(map[string]any); ok && m == nil {
		v = nil
	}
	out, err := tfprotov6.NewDynamicValue(typ, toValue(p.t, typ, v))
	if err != nil {
		p.t.Fatal(err)
	}
	return &out
}

// proposed is what Terraform proposes: the configuration, with what it leaves
// to the provider as it was.
func proposed(attrs []*tfprotov6.SchemaAttribute, config, prior map[string]any) map[string]any {
	out := maps.Clone(config)
	for _, a := range attrs {
		given, had := config[a.Name], prior[a.Name]
		switch {
		case given == nil && a.Computed:
			out[a.Name] = had
		case a.NestedType == nil:
		case a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeList:
			list, _ := given.([]any)
			before, _ := had.([]any)
			var all []any
			for i, e := range list {
				inner, ok := e.(map[string]any)
				if !ok {
					all = append(all, e)
					continue
				}
				var was map[string]any
				if i < len(before) {
					was, _ = before[i].(map[string]any)
				}
				all = append(all, proposed(a.NestedType.Attributes, inner, was))
			}
			if list != nil {
				out[a.Name] = all
			}
		case a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle:
			if inner, ok := given.(map[string]any); ok {
				was, _ := had.(map[string]any)
				out[a.Name] = proposed(a.NestedType.Attributes, inner, was)
			}
		}
	}
	return out
}

func toValue(t testing.TB, typ tftypes.Type, v any) tftypes.Value {
	t.Helper()
	if v == Unknown {
		return tftypes.NewValue(typ, tftypes.UnknownValue)
	}
	if v == nil {
		return tftypes.NewValue(typ, nil)
	}
	if typ.Is(tftypes.DynamicPseudoType) {
		return guess(t, v)
	}
	elements := func(of tftypes.Type) []tftypes.Value {
		list, ok := v.([]any)
		if !ok {
			t.Fatalf("%#v is not a list", v)
		}
		out := []tftypes.Value{}
		for _, e := range list {
			out = append(out, toValue(t, of, e))
		}
		return out
	}
	switch typ := typ.(type) {
	case tftypes.Object:
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("%#v is not an object", v)
		}
		out := map[string]tftypes.Value{}
		for name, at := range typ.AttributeTypes {
			out[name] = toValue(t, at, m[name])
		}
		for name := range m {
			if _, ok := typ.AttributeTypes[name]; !ok {
				t.Fatalf("there is no attribute %s", name)
			}
		}
		return tftypes.NewValue(typ, out)
	case tftypes.Map:
		out := map[string]tftypes.Value{}
		for k, e := range v.(map[string]any) {
			out[k] = toValue(t, typ.ElementType, e)
		}
		return tftypes.NewValue(typ, out)
	case tftypes.List:
		return tftypes.NewValue(typ, elements(typ.ElementType))
	case tftypes.Set:
		return tftypes.NewValue(typ, elements(typ.ElementType))
	}
	if n, ok := v.(int); ok {
		return tftypes.NewValue(typ, int64(n))
	}
	return tftypes.NewValue(typ, v)
}

func fromValue(v tftypes.Value) any {
	if !v.IsKnown() {
		return Unknown
	}
	if v.IsNull() {
		return nil
	}
	var text string
	var yes bool
	var number big.Float
	var list []tftypes.Value
	var object map[string]tftypes.Value
	switch {
	case v.As(&text) == nil:
		return text
	case v.As(&yes) == nil:
		return yes
	case v.As(&number) == nil:
		if n, exact := number.Int64(); exact == big.Exact {
			return int(n)
		}
		f, _ := number.Float64()
		return f
	case v.As(&list) == nil:
		out := []any{}
		for _, e := range list {
			out = append(out, fromValue(e))
		}
		return out
	case v.As(&object) == nil:
		out := map[string]any{}
		for k, e := range object {
			out[k] = fromValue(e)
		}
		return out
	}
	return nil
}

func said(diags []*tfprotov6.Diagnostic) string {
	var all strings.Builder
	for _, d := range diags {
		fmt.Fprintf(&all, "%s: %s: %s\n", d.Severity, d.Summary, d.Detail)
	}
	return all.String()
}
