package accelerators

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// NewDescribeSlice is provider::tpu::describe_slice.
func NewDescribeSlice() function.Function { return describeSlice{} }

type describeSlice struct{}

func (describeSlice) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "describe_slice"
}

func (describeSlice) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Describes a TPU slice by its type name",
		MarkdownDescription: "Returns chips, TensorCores, hosts, machine type, labels, placement and the other shapes of the same size, for a type name such as `v5p-128` or `v6e-4x4`. " +
			"The attributes are those of the data source `tpu_accelerator`. A name that no slice has is an error with the nearest ones.",
		Parameters: []function.Parameter{function.StringParameter{Name: "name", MarkdownDescription: "A type name: generation and size, or generation and topology."}},
		Return:     function.ObjectReturn{AttributeTypes: attrTypes(description{})},
	}
}

func (describeSlice) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var name string
	if resp.Error = req.Arguments.Get(ctx, &name); resp.Error != nil {
		return
	}
	s, err := accelerator.Resolve(name)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, newDescription(s))
}

// NewListTopologies is provider::tpu::list_topologies.
func NewListTopologies() function.Function { return listTopologies{} }

type listTopologies struct{}

func (listTopologies) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "list_topologies"
}

func (listTopologies) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Lists the slices of a TPU generation",
		MarkdownDescription: "Returns every slice of a generation, by size: each topology on each machine type it can be made of. " +
			"The attributes of each are those of `topologies` of the data source `tpu_accelerator_topologies`.",
		Parameters: []function.Parameter{function.StringParameter{Name: "generation", MarkdownDescription: "A TPU generation, such as `v6e`."}},
		Return:     function.ListReturn{ElementType: types.ObjectType{AttrTypes: attrTypes(slice{})}},
	}
}

func (listTopologies) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var generation string
	if resp.Error = req.Arguments.Get(ctx, &generation); resp.Error != nil {
		return
	}
	g, err := accelerator.ParseGeneration(generation)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, listed(accelerator.Filter{Generations: []accelerator.Generation{g}}))
}
