package provider

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Server speaks Terraform's protocol for a provider. It looks at the numbers of
// a configuration before the framework does: all of them are whole numbers
// here, and the framework calls any other one a bug of the provider, which it
// asks to report, before a validator has seen it. And it remembers Ctrl-C.
func Server(p provider.Provider) tfprotov6.ProviderServer {
	inner := providerserver.NewProtocol6(p)()
	s := &server{ProviderServer: inner}
	s.schemas = sync.OnceValues(func() (*tfprotov6.GetProviderSchemaResponse, error) {
		return inner.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	})
	s.ListResourceServer, _ = inner.(tfprotov6.ListResourceServer)
	s.ActionServer, _ = inner.(tfprotov6.ActionServer)
	s.StateStoreServer, _ = inner.(tfprotov6.StateStoreServer)
	return s
}

type server struct {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
	tfprotov6.ActionServer
	tfprotov6.StateStoreServer

	schemas func() (*tfprotov6.GetProviderSchemaResponse, error)
	stopped atomic.Bool
}

// ConfigureProvider implements tfprotov6.ProviderServer. It begins a run.
func (s *server) ConfigureProvider(ctx context.Context, req *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	s.stopped.Store(false)
	return s.ProviderServer.ConfigureProvider(ctx, req)
}

// StopProvider implements tfprotov6.ProviderServer: Ctrl-C. It ends what is
// under way, which whoever called us does, and what Terraform was about to ask
// for at that moment: see ApplyResourceChange.
func (s *server) StopProvider(ctx context.Context, req *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	s.stopped.Store(true)
	return s.ProviderServer.StopProvider(ctx, req)
}

// ApplyResourceChange implements tfprotov6.ResourceServer. A change that
// Terraform sends just after it has stopped the provider is interrupted as well:
// the protocol's own stop reaches only calls that have begun, and Ctrl-C would
// wait for the whole of this one.
func (s *server) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	if s.stopped.Load() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel()
	}
	return s.ProviderServer.ApplyResourceChange(ctx, req)
}

// fractions finds what is wrong with the numbers of a configuration. What cannot
// be read here is left to the framework to complain of.
func (s *server) fractions(config *tfprotov6.DynamicValue, of func(*tfprotov6.GetProviderSchemaResponse) *tfprotov6.Schema) []*tfprotov6.Diagnostic {
	all, err := s.schemas()
	if err != nil || config == nil {
		return nil
	}
	schema := of(all)
	if schema == nil {
		return nil
	}
	v, err := config.Unmarshal(schema.ValueType())
	if err != nil {
		return nil
	}
	return fractionsIn(v)
}

func fractionsIn(v tftypes.Value) (diags []*tfprotov6.Diagnostic) {
	_ = tftypes.Walk(v, func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
		var n big.Float
		if !v.Type().Is(tftypes.Number) || v.IsNull() || !v.IsKnown() || v.As(&n) != nil {
			return true, nil
		}
		if _, accuracy := n.Int64(); accuracy == big.Exact {
			return true, nil
		}
		why := "must be a whole number, not " + n.Text('g', -1)
		if n.IsInt() {
			why = n.Text('g', -1) + " is too large for any number here"
		}
		root := tftypes.NewAttributePathWithSteps(at.Steps()[:1]) // Terraform finds no line of what is deeper
		diags = append(diags, &tfprotov6.Diagnostic{Severity: tfprotov6.DiagnosticSeverityError, Summary: "Invalid number",
			Detail: fmt.Sprintf("%s %s.", spelled(at), why), Attribute: root})
		return true, nil
	})
	return diags
}

// spelled is a path as it is written in a configuration.
func spelled(at *tftypes.AttributePath) string {
	var b strings.Builder
	for _, step := range at.Steps() {
		switch step := step.(type) {
		case tftypes.AttributeName:
			if b.Len() > 0 {
				b.WriteString(".")
			}
			b.WriteString(string(step))
		case tftypes.ElementKeyString:
			fmt.Fprintf(&b, "[%q]", string(step))
		case tftypes.ElementKeyInt:
			fmt.Fprintf(&b, "[%d]", int64(step))
		case tftypes.ElementKeyValue: // of a set: it has no name
			b.WriteString("[...]")
		}
	}
	return b.String()
}

// ValidateProviderConfig implements tfprotov6.ProviderServer.
func (s *server) ValidateProviderConfig(ctx context.Context, req *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	if d := s.fractions(req.Config, func(all *tfprotov6.GetProviderSchemaResponse) *tfprotov6.Schema { return all.Provider }); len(d) > 0 {
		return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: req.Config, Diagnostics: d}, nil
	}
	return s.ProviderServer.ValidateProviderConfig(ctx, req)
}

// ValidateResourceConfig implements tfprotov6.ResourceServer.
func (s *server) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	if d := s.fractions(req.Config, func(all *tfprotov6.GetProviderSchemaResponse) *tfprotov6.Schema {
		return all.ResourceSchemas[req.TypeName]
	}); len(d) > 0 {
		return &tfprotov6.ValidateResourceConfigResponse{Diagnostics: d}, nil
	}
	return s.ProviderServer.ValidateResourceConfig(ctx, req)
}

// ValidateDataResourceConfig implements tfprotov6.DataSourceServer.
func (s *server) ValidateDataResourceConfig(ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	if d := s.fractions(req.Config, func(all *tfprotov6.GetProviderSchemaResponse) *tfprotov6.Schema {
		return all.DataSourceSchemas[req.TypeName]
	}); len(d) > 0 {
		return &tfprotov6.ValidateDataResourceConfigResponse{Diagnostics: d}, nil
	}
	return s.ProviderServer.ValidateDataResourceConfig(ctx, req)
}
