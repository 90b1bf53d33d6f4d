package cluster

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resourceschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// readOnly makes a resource's attributes computed ones of a data source, with
// what their descriptions say of reading. in is where they are: "dns.".
func readOnly(in string, attrs map[string]resourceschema.Attribute) map[string]schema.Attribute {
	out := map[string]schema.Attribute{}
	for name, a := range attrs {
		about := asRead(in+name, a.GetMarkdownDescription())
		switch a := a.(type) {
		case resourceschema.BoolAttribute:
			out[name] = schema.BoolAttribute{Computed: true, MarkdownDescription: about}
		case resourceschema.Int64Attribute:
			out[name] = schema.Int64Attribute{Computed: true, MarkdownDescription: about}
		case resourceschema.StringAttribute:
			out[name] = schema.StringAttribute{Computed: true, MarkdownDescription: about}
		case resourceschema.SetAttribute:
			out[name] = schema.SetAttribute{Computed: true, ElementType: a.ElementType, MarkdownDescription: about}
		case resourceschema.MapAttribute:
			out[name] = schema.MapAttribute{Computed: true, ElementType: a.ElementType, MarkdownDescription: about}
		case resourceschema.SingleNestedAttribute:
			out[name] = schema.SingleNestedAttribute{Computed: true, MarkdownDescription: about, Attributes: readOnly(in+name+".", a.Attributes)}
		case resourceschema.MapNestedAttribute:
			out[name] = schema.MapNestedAttribute{Computed: true, MarkdownDescription: about,
				NestedObject: schema.NestedAttributeObject{Attributes: readOnly(in+name+".", a.NestedObject.Attributes)}}
		case resourceschema.ListNestedAttribute:
			out[name] = schema.ListNestedAttribute{Computed: true, MarkdownDescription: about,
				NestedObject: schema.NestedAttributeObject{Attributes: readOnly(in+name+".", a.NestedObject.Attributes)}}
		default:
			panic(fmt.Sprintf("attribute %s is a %T, which the data source does not know", name, a))
		}
	}
	return out
}

// asked begins or marks a sentence about what one may ask of the resource and
// what it then does. Somebody who reads a cluster asks for nothing.
var asked = regexp.MustCompile(`^(At most|Chang|GKE (cannot|deletes)|Leav|Need|Pools are|Read back|To avoid|With ` + "`{}`" + `|Without)|(?i)by default|change|default is|made anew|makes a new|left alone|never managed|removed|replace|the plan|upgraded one`)

// asRead is a description of the resource's, without what is about changes.
func asRead(name, about string) string {
	if own, ok := readTexts[name]; ok {
		return own
	}
	var kept []string
	for _, sentence := range strings.SplitAfter(about, ". ") {
		if !asked.MatchString(sentence) {
			kept = append(kept, strings.TrimSpace(sentence))
		}
	}
	return strings.Join(kept, " ")
}

// readTexts are descriptions that the resource's sentences do not make.
var readTexts = map[string]string{
	"autoprovisioning.limits":           "How much of it the cluster may have, nodes of all pools counted: `cpu` (cores), `memory` (GB), and TPU chips by the name that nodes carry, such as `tpu-v5-lite-podslice`.",
	"control_plane.authorized_networks": "Who may reach the IP endpoint: ranges of addresses, such as `\"203.0.113.0/24\" = \"office\"`. Empty when only the cluster's own nodes may, null when it is open to all.",
	"cpu_pools":                         "The node pools without TPUs, by name.",
	"cpu_pools.autoscaling":             "Between which numbers of nodes the cluster autoscaler chooses. Null when it does not.",
	"cpu_pools.max_pods_per_node":       "The most pods of one node.",
	"cpu_pools.node_count":              "How many nodes, in each zone of the pool. Null with `autoscaling`.",
	"cpu_pools.version":                 "The version of the nodes.",
	"ip_ranges.pods_cidr":               "The range of the pods, such as `10.0.0.0/14`.",
	"ip_ranges.services_cidr":           "The range of the services, such as `10.4.0.0/20`.",
	"logging.components":                "`SYSTEM_COMPONENTS`, `WORKLOADS`, `APISERVER`, `SCHEDULER`, `CONTROLLER_MANAGER` and others; empty for nothing.",
	"maintenance.recurrence":            "How the window recurs, as an RFC 5545 rule such as `FREQ=WEEKLY;BYDAY=SA,SU`.",
	"maintenance.window_end":            "The end of the first recurring window.",
	"max_pods_per_node":                 "The most pods of one node, for pools that do not say it themselves.",
	"monitoring.components":             "`SYSTEM_COMPONENTS`, `APISERVER`, `SCHEDULER`, `CONTROLLER_MANAGER`, `POD`, `JOBSET` and others; empty for nothing.",
}
