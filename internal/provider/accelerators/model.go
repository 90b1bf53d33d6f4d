// Package accelerators is Terraform's face of the TPU catalogue: data sources,
// and the functions that say the same. It calls no API and needs no
// credentials.
package accelerators

import (
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// slice is one row of the catalogue.
type slice struct {
	Name              string `tfsdk:"name"`
	Generation        string `tfsdk:"generation"`
	Topology          string `tfsdk:"topology"`
	Chips             int64  `tfsdk:"chips"`
	TensorCores       int64  `tfsdk:"tensorcores"`
	Hosts             int64  `tfsdk:"hosts"`
	ChipsPerHost      int64  `tfsdk:"chips_per_host"`
	MachineType       string `tfsdk:"machine_type"`
	AcceleratorLabel  string `tfsdk:"accelerator_label"`
	MultiHost         bool   `tfsdk:"multi_host"`
	Multislice        bool   `tfsdk:"multislice"`
	Placement         string `tfsdk:"placement"`
	BootDisk          string `tfsdk:"boot_disk"`
	MaxPodsPerNode    int64  `tfsdk:"max_pods_per_node"`
	ContainersPerHost int64  `tfsdk:"containers_per_host"`
	FlexStart         bool   `tfsdk:"flex_start"`
	Spot              bool   `tfsdk:"spot"`
	Reservations      bool   `tfsdk:"reservations"`
}

// description is all there is to say about one slice.
type description struct {
	slice
	NameCounts     string            `tfsdk:"name_counts"`
	NodeLabels     map[string]string `tfsdk:"node_labels"`
	Taint          taint             `tfsdk:"taint"`
	ResourceName   string            `tfsdk:"resource_name"`
	BootDisks      []string          `tfsdk:"boot_disks"`
	MinGKEVersion  *string           `tfsdk:"min_gke_version"`
	Zones          []string          `tfsdk:"zones"`
	FlexStartZones []string          `tfsdk:"flex_start_zones"`
	ZonesAsOf      string            `tfsdk:"zones_as_of"`
	SubSlices      []string          `tfsdk:"sub_slices"`
	Cubes          int64             `tfsdk:"cubes"`
	TopologyLevels []string          `tfsdk:"topology_levels"`
	Alternatives   []alternative     `tfsdk:"alternatives"`
	Notes          []string          `tfsdk:"notes"`
	Warnings       []string          `tfsdk:"warnings"`
	Source         string            `tfsdk:"source"`
}

type taint struct {
	Key    string `tfsdk:"key"`
	Value  string `tfsdk:"value"`
	Effect string `tfsdk:"effect"`
}

type alternative struct {
	Name         string `tfsdk:"name"`
	Topology     string `tfsdk:"topology"`
	Hosts        int64  `tfsdk:"hosts"`
	ChipsPerHost int64  `tfsdk:"chips_per_host"`
	MachineType  string `tfsdk:"machine_type"`
}

func newSlice(s accelerator.Slice) slice {
	return slice{
		Name: s.Name, Generation: string(s.Generation), Topology: s.Topology.String(),
		Chips: int64(s.Chips), TensorCores: int64(s.TensorCores), Hosts: int64(s.Hosts), ChipsPerHost: int64(s.ChipsPerHost),
		MachineType: s.MachineType, AcceleratorLabel: s.AcceleratorLabel, MultiHost: s.MultiHost, Multislice: s.Multislice,
		Placement: string(s.Placement), BootDisk: s.BootDisk,
		MaxPodsPerNode: int64(s.MaxPodsPerNode), ContainersPerHost: int64(s.ContainersPerHost),
		FlexStart: s.FlexStart, Spot: s.Spot, Reservations: s.Reservations,
	}
}

func newDescription(s accelerator.Slice) description {
	d := s.Describe()
	out := description{
		slice: newSlice(s), NameCounts: string(d.NameCounts), NodeLabels: d.NodeLabels, Taint: taint(d.Taint), ResourceName: d.ResourceName,
		BootDisks: d.BootDisks, Zones: notNil(d.Capacity.Zones), FlexStartZones: notNil(d.Capacity.FlexStartZones), ZonesAsOf: d.Capacity.AsOf,
		SubSlices: d.SubSlices, TopologyLevels: d.TopologyLevels, Cubes: int64(d.Cubes), Alternatives: []alternative{}, Notes: d.Notes, Warnings: d.Warnings, Source: d.Source,
	}
	if d.MinGKE != "" {
		out.MinGKEVersion = &d.MinGKE
	}
	for _, a := range d.Alternatives {
		out.Alternatives = append(out.Alternatives, alternative{a.Name, a.Topology.String(), int64(a.Hosts), int64(a.ChipsPerHost), a.MachineType})
	}
	return out
}

func notNil(s []string) []string { return append([]string{}, s...) }

// texts says what each field means, for the data sources' schemas and so for
// their pages.
var texts = map[string]string{
	"name":                "The canonical type name, such as `v5p-128`; with the topology (`v5p-4x4x64`) where the size alone means another shape, and with the machine's size (`v5litepod-8-8t`) where the shape alone means another machine.",
	"generation":          "The TPU generation: `v4`, `v5e`, `v5p`, `v6e`, `tpu7x` or `tpu7`.",
	"topology":            "How the chips are arranged, such as `4x4` or `4x4x8`.",
	"chips":               "Chips in the slice.",
	"tensorcores":         "TensorCores in the slice.",
	"hosts":               "Hosts (nodes) in the slice.",
	"chips_per_host":      "Chips on each host.",
	"machine_type":        "The Compute Engine machine type of a host.",
	"accelerator_label":   "The value of the node label `cloud.google.com/gke-tpu-accelerator`.",
	"multi_host":          "Whether the slice has more than one host. Such a slice is atomic: all hosts or none.",
	"multislice":          "Whether several such slices can train together.",
	"placement":           "How hosts are put close together: `none`, `compact`, or `workload_policy` (a Compute resource policy).",
	"boot_disk":           "The default boot disk type.",
	"max_pods_per_node":   "The maximum number of pods per node that slice pools use.",
	"containers_per_host": "How many containers share a host's chips by default.",
	"flex_start":          "Whether flex-start provisioning is offered.",
	"spot":                "Whether spot provisioning is offered.",
	"reservations":        "Whether reservations can be used.",
	"name_counts":         "What the number in the type name counts: chips or TensorCores.",
	"node_labels":         "The labels by which a pod selects such nodes.",
	"taint":               "The taint that TPU nodes carry.",
	"key":                 "The taint's key.",
	"value":               "The taint's value.",
	"effect":              "The taint's effect.",
	"resource_name":       "The extended resource that pods request.",
	"boot_disks":          "The boot disk types that work, the default first.",
	"min_gke_version":     "The oldest GKE version that offers it, if there is such a limit.",
	"zones":               "Zones where the generation is offered, as of `zones_as_of`; empty where that is not published.",
	"flex_start_zones":    "Zones where flex-start is offered, as of `zones_as_of`.",
	"zones_as_of":         "The month the zones were read.",
	"sub_slices":          "Topologies that jobs can be given inside one slice.",
	"topology_levels":     "The node labels by which Kueue divides a slice into parts (v6e), or joins cubes to a slice (tpu7x): the levels of a Kueue Topology, outermost first. Empty where neither is possible.",
	"cubes":               "The number of 4x4x4 cubes, where slices are formed of cubes; otherwise 0.",
	"alternatives":        "Other slices of the same generation and number of chips.",
	"notes":               "How the name was read, where names mislead.",
	"warnings":            "Reasons to doubt that such a slice can be had.",
	"source":              "Where these facts come from.",
}

// computed derives the schema of a model's fields, all of them computed.
func computed(model any) map[string]schema.Attribute {
	attrs := map[string]schema.Attribute{}
	for name, f := range fields(reflect.TypeOf(model)) {
		text := texts[name]
		switch {
		case f.Kind() == reflect.Struct:
			attrs[name] = schema.SingleNestedAttribute{Computed: true, MarkdownDescription: text, Attributes: computed(reflect.Zero(f).Interface())}
		case f.Kind() == reflect.Slice && f.Elem().Kind() == reflect.Struct:
			attrs[name] = schema.ListNestedAttribute{Computed: true, MarkdownDescription: text,
				NestedObject: schema.NestedAttributeObject{Attributes: computed(reflect.Zero(f.Elem()).Interface())}}
		case f.Kind() == reflect.Slice:
			attrs[name] = schema.ListAttribute{Computed: true, MarkdownDescription: text, ElementType: types.StringType}
		case f.Kind() == reflect.Map:
			attrs[name] = schema.MapAttribute{Computed: true, MarkdownDescription: text, ElementType: types.StringType}
		case f.Kind() == reflect.Int64:
			attrs[name] = schema.Int64Attribute{Computed: true, MarkdownDescription: text}
		case f.Kind() == reflect.Bool:
			attrs[name] = schema.BoolAttribute{Computed: true, MarkdownDescription: text}
		default:
			attrs[name] = schema.StringAttribute{Computed: true, MarkdownDescription: text}
		}
	}
	return attrs
}

// attrTypes derives the same for functions, which have types and no schema.
func attrTypes(model any) map[string]attr.Type {
	out := map[string]attr.Type{}
	for name, a := range computed(model) {
		out[name] = a.GetType()
	}
	return out
}

// fields maps a model's tfsdk names to its fields' types, embedded ones included.
func fields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			for name, inner := range fields(f.Type) {
				out[name] = inner
			}
			continue
		}
		out[f.Tag.Get("tfsdk")] = f.Type
	}
	return out
}
