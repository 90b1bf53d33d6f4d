package accelerators

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
)

// describePage is the description for a person to read.
func describePage(w io.Writer, s *term.Streams, d accelerator.Description) error {
	hosts := fmt.Sprintf("%d (single host)", d.Hosts)
	if d.MultiHost {
		hosts = fmt.Sprintf("%d, all or none", d.Hosts)
	}
	p := output.NewPage(s, d.Name)
	p.Field("generation", string(d.Generation))
	p.Field("topology", d.Topology.String())
	p.Field("chips", fmt.Sprintf("%d (%s)", d.Chips, cores(d.TensorCores)))
	p.Field("hosts", hosts)
	p.Field("chips per host", fmt.Sprint(d.ChipsPerHost))
	p.Field("machine type", d.MachineType)
	p.Field("placement", placement(d))
	p.Field("boot disk", strings.Join(d.BootDisks, ", "))
	p.Field("max pods per node", fmt.Sprint(d.MaxPodsPerNode))
	p.Field("containers per host", fmt.Sprint(d.ContainersPerHost))
	p.Field("multislice", yesNo(d.Multislice))
	p.Field("provisioning", provisioning(d))
	p.Field("GKE", atLeast(d.MinGKE))
	p.Field("zones", zones(d.Capacity.Zones, d.Capacity.AsOf))
	p.Field("flex-start zones", zones(d.Capacity.FlexStartZones, d.Capacity.AsOf))

	p.Section("node labels and taint")
	var keys []string
	for k := range d.NodeLabels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		p.Line(k + "=" + d.NodeLabels[k])
	}
	p.Line(d.Taint.Key + "=" + d.Taint.Value + ":" + d.Taint.Effect)
	parts(p, d)
	if len(d.Alternatives) > 0 {
		p.Section(fmt.Sprintf("other slices of %d chips", d.Chips))
		for _, a := range d.Alternatives {
			p.Line(fmt.Sprintf("%s: %s, %d x %s", a.Name, a.Topology, a.Hosts, a.MachineType))
		}
	}
	p.Paragraphs("notes", d.Notes, term.Plain)
	p.Paragraphs("warnings", d.Warnings, term.Wait)
	_, err := io.WriteString(w, p.String())
	return err
}

// parts says how jobs share a slice, or how cubes make one: what to put on the
// jobs' pods, and the levels of the Kueue Topology that this needs.
func parts(p *output.Page, d accelerator.Description) {
	if len(d.SubSlices) > 0 {
		p.Section("jobs can use a part, with these annotations on their pods")
		for _, part := range d.SubSlices {
			t, err := accelerator.ParseTopology(part)
			if err != nil {
				continue
			}
			sub, err := d.SubSlice(t)
			if err != nil {
				continue
			}
			for _, key := range slices.Sorted(maps.Keys(sub.PodAnnotations)) {
				p.Line(fmt.Sprintf("%s: %s=%s", part, key, sub.PodAnnotations[key]))
			}
		}
	}
	if d.Cubes > 0 {
		p.Section(fmt.Sprintf("can be formed of %d cubes (4x4x4) by the admission check %s", d.Cubes, accelerator.SuperSliceController))
	}
	if len(d.TopologyLevels) > 0 {
		p.Section("levels of the Kueue Topology for that")
		for _, level := range d.TopologyLevels {
			p.Line(level)
		}
	}
}

func placement(d accelerator.Description) string {
	switch d.Placement {
	case accelerator.PlacementCompact:
		return "compact, with the topology"
	case accelerator.PlacementWorkloadPolicy:
		return "a Compute workload policy (HIGH_THROUGHPUT) with the topology"
	}
	return "none: one host needs none"
}

func provisioning(d accelerator.Description) string {
	kinds := []string{"on demand"}
	for _, k := range []struct {
		name string
		is   bool
	}{{"spot", d.Spot}, {"flex-start", d.FlexStart}, {"reservation", d.Reservations}} {
		if k.is {
			kinds = append(kinds, k.name)
		}
	}
	return strings.Join(kinds, ", ")
}

func zones(names []string, asOf string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s (as of %s)", strings.Join(names, ", "), asOf)
}

func atLeast(version string) string {
	if version == "" {
		return ""
	}
	return version + " or later"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func cores(n int) string {
	if n == 1 {
		return "1 TensorCore"
	}
	return fmt.Sprintf("%d TensorCores", n)
}
