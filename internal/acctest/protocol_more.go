package acctest

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Data reads a data source; what is refused is nil.
func (p *Protocol) Data(typ string, config map[string]any) (state map[string]any, text string) {
	p.t.Helper()
	schema, ok := p.all.DataSourceSchemas[typ]
	if !ok {
		p.t.Fatalf("there is no data source %s", typ)
	}
	raw := p.dynamic(schema.ValueType(), config)
	valid, err := p.server.ValidateDataResourceConfig(p.ctx, &tfprotov6.ValidateDataResourceConfigRequest{TypeName: typ, Config: raw})
	if err != nil {
		p.t.Fatal(err)
	}
	if text := said(valid.Diagnostics); strings.Contains(text, "ERROR") {
		return nil, text
	}
	resp, err := p.server.ReadDataSource(p.ctx, &tfprotov6.ReadDataSourceRequest{TypeName: typ, Config: raw})
	if err != nil {
		p.t.Fatal(err)
	}
	if text = said(resp.Diagnostics); strings.Contains(text, "ERROR") {
		return nil, text
	}
	v, err := resp.State.Unmarshal(schema.ValueType())
	if err != nil {
		p.t.Fatal(err)
	}
	state, _ = fromValue(v).(map[string]any)
	return state, text
}

// Call calls a function with one dynamic argument.
func (p *Protocol) Call(name string, arg any) (result any, text string) {
	p.t.Helper()
	v, err := tfprotov6.NewDynamicValue(tftypes.DynamicPseudoType, guess(p.t, arg))
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := p.server.CallFunction(p.ctx, &tfprotov6.CallFunctionRequest{Name: name, Arguments: []*tfprotov6.DynamicValue{&v}})
	if err != nil {
		p.t.Fatal(err)
	}
	if resp.Error != nil {
		return nil, resp.Error.Text
	}
	out, err := resp.Result.Unmarshal(tftypes.String)
	if err != nil {
		p.t.Fatal(err)
	}
	return fromValue(out), ""
}

// guess gives a value the type that Terraform gives to what is written so.
func guess(t testing.TB, v any) tftypes.Value {
	t.Helper()
	switch v := v.(type) {
	case nil:
		return tftypes.NewValue(tftypes.DynamicPseudoType, nil)
	case string:
		return tftypes.NewValue(tftypes.String, v)
	case bool:
		return tftypes.NewValue(tftypes.Bool, v)
	case int:
		return tftypes.NewValue(tftypes.Number, int64(v))
	case float64:
		return tftypes.NewValue(tftypes.Number, v)
	case []any:
		types, values := []tftypes.Type{}, []tftypes.Value{}
		for _, e := range v {
			one := guess(t, e)
			types, values = append(types, one.Type()), append(values, one)
		}
		return tftypes.NewValue(tftypes.Tuple{ElementTypes: types}, values)
	case map[string]any:
		types, values := map[string]tftypes.Type{}, map[string]tftypes.Value{}
		for k, e := range v {
			one := guess(t, e)
			types[k], values[k] = one.Type(), one
		}
		return tftypes.NewValue(tftypes.Object{AttributeTypes: types}, values)
	}
	if v == Unknown {
		return tftypes.NewValue(tftypes.DynamicPseudoType, tftypes.UnknownValue)
	}
	t.Fatalf("a %T has no type", v)
	return tftypes.Value{}
}

// Invoke validates, plans and invokes an action: all that was said, progress
// included.
func (p *Protocol) Invoke(typ string, config map[string]any) string {
	p.t.Helper()
	schema, ok := p.all.ActionSchemas[typ]
	if !ok {
		p.t.Fatalf("there is no action %s", typ)
	}
	raw := p.dynamic(schema.Schema.ValueType(), config)
	server, ok := p.server.(tfprotov6.ActionServer)
	if !ok {
		p.t.Fatal("the provider serves no actions")
	}
	valid, err := server.ValidateActionConfig(p.ctx, &tfprotov6.ValidateActionConfigRequest{ActionType: typ, Config: raw})
	if err != nil {
		p.t.Fatal(err)
	}
	if text := said(valid.Diagnostics); strings.Contains(text, "ERROR") {
		return text
	}
	plan, err := server.PlanAction(p.ctx, &tfprotov6.PlanActionRequest{ActionType: typ, Config: raw})
	if err != nil {
		p.t.Fatal(err)
	}
	if text := said(plan.Diagnostics); strings.Contains(text, "ERROR") {
		return text
	}
	stream, err := server.InvokeAction(p.ctx, &tfprotov6.InvokeActionRequest{ActionType: typ, Config: raw})
	if err != nil {
		p.t.Fatal(err)
	}
	var all strings.Builder
	for event := range stream.Events {
		switch e := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			all.WriteString(e.Message + "\n")
		case tfprotov6.CompletedInvokeActionEventType:
			all.WriteString(said(e.Diagnostics))
		}
	}
	return all.String()
}
