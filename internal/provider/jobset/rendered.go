package jobset

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dsschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"sigs.k8s.io/yaml"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// NewRenderFunction is provider::tpu::render_jobset.
func NewRenderFunction() function.Function { return renderJobset{} }

type renderJobset struct{}

const aboutSpec = "An object with the arguments of a `tpu_training_jobset`; `cluster`, `namespace`, `wait_for`, `rerun_trigger` and `timeouts` may be left out."

func (renderJobset) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "render_jobset"
}

func (renderJobset) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Renders a training job as the JobSet that would be applied",
		MarkdownDescription: "Returns the YAML of exactly what a `tpu_training_jobset` with these arguments creates: the JobSet and, where the job has `files`, their ConfigMap. " +
			"What the resource refuses is an error here too. The data source `tpu_rendered_jobset` does the same where Terraform has no functions.",
		Parameters: []function.Parameter{function.DynamicParameter{Name: "spec", MarkdownDescription: aboutSpec}},
		Return:     function.StringReturn{},
	}
}

func (renderJobset) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var spec types.Dynamic
	if resp.Error = req.Arguments.Get(ctx, &spec); resp.Error != nil {
		return
	}
	text, err := render(ctx, spec, "")
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, text)
}

// NewRenderedDataSource is the data source tpu_rendered_jobset, the function's
// twin.
func NewRenderedDataSource() datasource.DataSource { return rendered{} }

type rendered struct{}

func (rendered) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_rendered_jobset"
}

func (rendered) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = dsschema.Schema{
		MarkdownDescription: "The YAML of exactly what a `tpu_training_jobset` with these arguments creates: the JobSet and, where the job has `files`, their ConfigMap. It asks no cluster. " +
			"What the resource refuses is an error here too. The function `render_jobset` does the same.",
		Attributes: map[string]dsschema.Attribute{
			"spec":  dsschema.DynamicAttribute{Required: true, MarkdownDescription: aboutSpec},
			"owner": dsschema.StringAttribute{Optional: true, MarkdownDescription: "The provider's `owner`, for whoever sets it there."},
			"yaml":  dsschema.StringAttribute{Computed: true, MarkdownDescription: "The objects."},
		},
	}
}

func (rendered) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m struct {
		Spec  types.Dynamic `tfsdk:"spec"`
		Owner types.String  `tfsdk:"owner"`
		YAML  types.String  `tfsdk:"yaml"`
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	text, err := render(ctx, m.Spec, m.Owner.ValueString())
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("spec"), "Invalid job", err.Error())
		return
	}
	m.YAML = types.StringValue(text)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// render makes the objects of a job out of an object with its arguments.
func render(ctx context.Context, arguments types.Dynamic, owner string) (string, error) {
	var about resource.SchemaResponse
	(&jobsetResource{}).Schema(ctx, resource.SchemaRequest{}, &about)
	typ, _ := about.Schema.Type().TerraformType(ctx).(tftypes.Object)
	raw, err := arguments.ToTerraformValue(ctx)
	if err != nil {
		return "", err
	}
	if !raw.IsFullyKnown() {
		return "", errors.New("the spec holds a value that is not known yet")
	}
	if err := onlyInputs(raw); err != nil {
		return "", err
	}
	whole, err := conform(raw, typ, "spec")
	if err != nil {
		return "", err
	}
	var m model
	config := tfsdk.Config{Schema: about.Schema, Raw: whole}
	var diags diag.Diagnostics
	if diags = config.Get(ctx, &m); !diags.HasError() {
		if m.Namespace.IsNull() {
			m.Namespace = types.StringValue("default")
		}
		spec, unknown := m.spec(ctx, owner, &diags)
		if unknown["accelerator"] {
			return "", fmt.Errorf("accelerator: %q is no TPU slice", m.Accelerator.ValueString())
		}
		if err := spec.Validate(); err != nil {
			return "", err
		}
		if !diags.HasError() {
			return documents(spec)
		}
	}
	return "", fmt.Errorf("%s: %s", diags[0].Summary(), diags[0].Detail())
}

// documents are the job's objects as YAML, in the order of their creation.
func documents(spec training.Spec) (string, error) {
	js := spec.JobSet()
	b, err := yaml.Marshal(map[string]any{"apiVersion": js.APIVersion, "kind": js.Kind, "metadata": js.ObjectMeta, "spec": js.Spec})
	if err != nil {
		return "", err
	}
	text := string(b)
	if cm := spec.FilesObject(nil); cm != nil {
		if b, err = yaml.Marshal(cm); err != nil {
			return "", err
		}
		text += "---\n" + string(b)
	}
	return text, nil
}

// onlyInputs refuses the resource's outputs, which are attributes of the same
// schema.
func onlyInputs(v tftypes.Value) error {
	var given map[string]tftypes.Value
	if err := v.As(&given); err != nil || v.IsNull() {
		return errors.New("the spec is no object with the arguments of a tpu_training_jobset")
	}
	for name := range given {
		if _, output := computed()[name]; output {
			return fmt.Errorf("%s is nothing that a job is given", name)
		}
	}
	return nil
}

// conform turns a value as it was written into one of a schema's type: objects
// without their optional attributes, lists and sets written as tuples, maps
// written as objects, numbers and booleans for strings.
func conform(v tftypes.Value, typ tftypes.Type, at string) (tftypes.Value, error) {
	if v.IsNull() {
		return tftypes.NewValue(typ, nil), nil
	}
	bad := func(want string) (tftypes.Value, error) {
		return tftypes.Value{}, fmt.Errorf("%s: %s is wanted", at, want)
	}
	var fields map[string]tftypes.Value
	var elements []tftypes.Value
	switch typ := typ.(type) {
	case tftypes.Object:
		if v.As(&fields) != nil {
			return bad("an object")
		}
		for name := range fields {
			if _, ok := typ.AttributeTypes[name]; !ok {
				return tftypes.Value{}, fmt.Errorf("%s has no argument %s; there are %s", at, name, strings.Join(keys(typ.AttributeTypes), ", "))
			}
		}
		out := map[string]tftypes.Value{}
		for name, t := range typ.AttributeTypes {
			out[name] = tftypes.NewValue(t, nil)
			if e, given := fields[name]; given {
				var err error
				if out[name], err = conform(e, t, at+"."+name); err != nil {
					return tftypes.Value{}, err
				}
			}
		}
		return tftypes.NewValue(typ, out), nil
	case tftypes.Map:
		if v.As(&fields) != nil {
			return bad("a map")
		}
		out := map[string]tftypes.Value{}
		for name, e := range fields {
			var err error
			if out[name], err = conform(e, typ.ElementType, at+"."+name); err != nil {
				return tftypes.Value{}, err
			}
		}
		return tftypes.NewValue(typ, out), nil
	case tftypes.List, tftypes.Set:
		if v.As(&elements) != nil {
			return bad("a list")
		}
		of, ok := typ.(tftypes.List)
		if !ok {
			of.ElementType = typ.(tftypes.Set).ElementType
		}
		out := []tftypes.Value{}
		for i, e := range elements {
			one, err := conform(e, of.ElementType, fmt.Sprintf("%s[%d]", at, i))
			if err != nil {
				return tftypes.Value{}, err
			}
			out = append(out, one)
		}
		return tftypes.NewValue(typ, out), nil
	}
	return primitive(v, typ, bad)
}

func primitive(v tftypes.Value, typ tftypes.Type, bad func(string) (tftypes.Value, error)) (tftypes.Value, error) {
	var text string
	var number *big.Float
	var yes bool
	isText, isNumber, isBool := v.As(&text) == nil, v.Type().Is(tftypes.Number) && v.As(&number) == nil, v.As(&yes) == nil
	switch {
	case typ.Is(tftypes.String) && isText, typ.Is(tftypes.Number) && isNumber, typ.Is(tftypes.Bool) && isBool:
		return v, nil
	case typ.Is(tftypes.String) && isNumber:
		return tftypes.NewValue(typ, number.Text('f', -1)), nil
	case typ.Is(tftypes.String) && isBool:
		return tftypes.NewValue(typ, fmt.Sprint(yes)), nil
	case typ.Is(tftypes.Number) && isText:
		if n, ok := new(big.Float).SetString(text); ok {
			return tftypes.NewValue(typ, n), nil
		}
		return bad("a number")
	case typ.Is(tftypes.Bool) && (text == "true" || text == "false"):
		return tftypes.NewValue(typ, text == "true"), nil
	}
	return bad("a " + strings.ToLower(strings.TrimPrefix(typ.String(), "tftypes.")))
}

func keys(m map[string]tftypes.Type) []string {
	var names []string
	for name := range m {
		if _, output := computed()[name]; !output {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
