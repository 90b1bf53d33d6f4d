package provider

import (
	"context"
	"errors"
	"math/big"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// A number that is not whole is the user's mistake and is said in one plain
// message; the framework would call it the provider's.
func TestNumbersAreWhole(t *testing.T) {
	s := Server(New("test")())
	if _, ok := s.(tfprotov6.ProviderServerWithListResource); !ok {
		t.Error("list resources are lost")
	}
	if _, ok := s.(tfprotov6.ProviderServerWithActions); !ok {
		t.Error("actions are lost")
	}
	all, err := s.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	typ, ok := all.ResourceSchemas["tpu_slice_pool"].ValueType().(tftypes.Object)
	if !ok {
		t.Fatal("the schema is no object")
	}
	for name, c := range map[string]struct {
		count *big.Float
		disk  *big.Float
		want  string // "" where nothing is said of numbers
	}{
		"whole":           {big.NewFloat(2), big.NewFloat(100), ""},
		"a fraction":      {big.NewFloat(1.5), big.NewFloat(100), "slice_count must be a whole number, not 1.5."},
		"a nested one":    {big.NewFloat(2), big.NewFloat(99.9), "node.boot_disk.size_gb must be a whole number, not 99.9."},
		"beyond all size": {big.NewFloat(1e30), big.NewFloat(100), "slice_count 1e+30 is too large for any number here."},
	} {
		t.Run(name, func(t *testing.T) {
			node, _ := typ.AttributeTypes["node"].(tftypes.Object)
			disk, _ := node.AttributeTypes["boot_disk"].(tftypes.Object)
			values := map[string]tftypes.Value{"size_gb": tftypes.NewValue(tftypes.Number, c.disk)}
			nodeValues := nulls(node)
			nodeValues["boot_disk"] = tftypes.NewValue(disk, with(nulls(disk), values))
			config := with(nulls(typ), map[string]tftypes.Value{
				"cluster":     tftypes.NewValue(tftypes.String, "projects/p/locations/us-west4-a/clusters/c"),
				"name":        tftypes.NewValue(tftypes.String, "a"),
				"accelerator": tftypes.NewValue(tftypes.String, "v5e-16"),
				"slice_count": tftypes.NewValue(tftypes.Number, c.count),
				"node":        tftypes.NewValue(node, nodeValues),
			})
			dynamic, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, config))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{TypeName: "tpu_slice_pool", Config: &dynamic})
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, d := range resp.Diagnostics {
				said = append(said, d.Detail)
			}
			if c.want == "" && len(said) > 0 || c.want != "" && (len(said) != 1 || said[0] != c.want) {
				t.Errorf("said %q, want %q", said, c.want)
			}
		})
	}
}

func nulls(o tftypes.Object) map[string]tftypes.Value {
	out := map[string]tftypes.Value{}
	for name, t := range o.AttributeTypes {
		out[name] = tftypes.NewValue(t, nil)
	}
	return out
}

func with(values, more map[string]tftypes.Value) map[string]tftypes.Value {
	for k, v := range more {
		values[k] = v
	}
	return values
}

// asked is a server that notes whether a change reached it with time to run.
type asked struct {
	tfprotov6.ProviderServer
	ended error
}

func (a *asked) ConfigureProvider(context.Context, *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return nil, nil
}

func (a *asked) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return nil, nil
}

func (a *asked) ApplyResourceChange(ctx context.Context, _ *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	a.ended = ctx.Err()
	return nil, nil
}

// Ctrl-C also ends the change that Terraform sends a moment later, until the
// next run begins.
func TestAChangeAfterCtrlCIsInterrupted(t *testing.T) {
	inner := &asked{}
	s := &server{ProviderServer: inner}
	for _, step := range []struct {
		do   func() error
		want error
	}{
		{func() error { _, err := s.ConfigureProvider(t.Context(), nil); return err }, nil},
		{func() error { _, err := s.StopProvider(t.Context(), nil); return err }, context.Canceled},
		{func() error { _, err := s.ConfigureProvider(t.Context(), nil); return err }, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ApplyResourceChange(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(inner.ended, step.want) {
			t.Errorf("the change began with %v, want %v", inner.ended, step.want)
		}
	}
}
