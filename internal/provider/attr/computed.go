package attr

import "github.com/hashicorp/terraform-plugin-framework/datasource/schema"

// ComputedText is a string that a data source reads.
func ComputedText(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// ComputedNumber is a whole number that a data source reads.
func ComputedNumber(description string) schema.Int64Attribute {
	return schema.Int64Attribute{Computed: true, MarkdownDescription: description}
}

// ComputedList is a list of objects that a data source reads.
func ComputedList(description string, of map[string]schema.Attribute) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{Computed: true, MarkdownDescription: description, NestedObject: schema.NestedAttributeObject{Attributes: of}}
}
