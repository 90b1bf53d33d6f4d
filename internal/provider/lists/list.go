// Package lists is what `terraform query` finds: the list resources. A list
// names the objects there are; what one object looks like is asked of its own
// resource, by import and refresh, so that a listed object is exactly an
// imported one. It knows no resource's package.
package lists

import (
	"context"
	"fmt"
	"iter"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// Object is one thing that was found.
type Object struct {
	ID   string // its import id in full
	Name string // how people tell it from others
}

// source finds the objects of one type. Its filters are the attributes of the
// list block.
type source interface {
	filters() schema.Schema
	// find yields what there is, or an error as the last. Warnings come without
	// an object.
	find(ctx context.Context, config tfsdk.Config, data *conn.Data) iter.Seq2[Object, diag.Diagnostics]
}

// of is the list resource of a resource with identity.
type of struct {
	resource.ResourceWithConfigure
	source source
	data   *conn.Data
}

var _ list.ListResourceWithConfigure = (*of)(nil)

func newList(makes func() resource.Resource, s source) func() list.ListResource {
	return func() list.ListResource {
		r, ok := makes().(resource.ResourceWithConfigure)
		if !ok {
			panic(fmt.Sprintf("a %T cannot be listed: it is not configured", makes()))
		}
		return &of{ResourceWithConfigure: r, source: s}
	}
}

// Configure implements list.ListResourceWithConfigure.
func (l *of) Configure(ctx context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	l.data = conn.From(req.ProviderData, &resp.Diagnostics)
	l.ResourceWithConfigure.Configure(ctx, req, resp)
}

// ListResourceConfigSchema implements list.ListResource.
func (l *of) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = l.source.filters()
}

// List implements list.ListResource.
func (l *of) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	if l.data == nil {
		stream.Results = list.ListResultsStreamDiagnostics(diag.Diagnostics{diag.NewErrorDiagnostic("Cannot list", "the provider is not configured")})
		return
	}
	stream.Results = func(push func(list.ListResult) bool) {
		given := int64(0)
		for object, diags := range l.source.find(ctx, req.Config, l.data) {
			if diags.HasError() {
				push(list.ListResult{Diagnostics: diags})
				return
			}
			if len(diags) > 0 {
				if !push(list.ListResult{Diagnostics: diags}) {
					return
				}
				continue
			}
			result, there := l.result(ctx, req, object)
			if !there {
				continue
			}
			if given++; !push(result) || given == req.Limit {
				return
			}
		}
	}
}

// result is the object as an import has it; there is false when it has gone
// since it was found.
func (l *of) result(ctx context.Context, req list.ListRequest, o Object) (result list.ListResult, there bool) {
	result = req.NewListResult(ctx)
	result.DisplayName = o.Name
	importer, ok := l.ResourceWithConfigure.(resource.ResourceWithImportState)
	if !ok {
		result.Diagnostics.AddError("Internal error", "what is listed cannot be imported; please report this")
		return result, true
	}
	nothing := tfsdk.State{Schema: req.ResourceSchema, Raw: tftypes.NewValue(req.ResourceSchema.Type().TerraformType(ctx), nil)}
	imported := resource.ImportStateResponse{State: nothing, Identity: result.Identity}
	importer.ImportState(ctx, resource.ImportStateRequest{ID: o.ID, Identity: result.Identity}, &imported)
	result.Diagnostics.Append(imported.Diagnostics...)
	if !req.IncludeResource || result.Diagnostics.HasError() {
		return result, true
	}
	read := resource.ReadResponse{State: imported.State, Identity: result.Identity}
	l.Read(ctx, resource.ReadRequest{State: imported.State, Identity: result.Identity}, &read)
	result.Diagnostics.Append(read.Diagnostics...)
	result.Resource.Raw = read.State.Raw
	return result, !read.State.Raw.IsNull()
}
