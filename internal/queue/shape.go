package queue

import (
	"strconv"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// SliceOf finds the slice that node labels (a flavor's, or a pod's node
// selector) stand for.
func SliceOf(labels map[string]string) (accelerator.Slice, bool) {
	topology, err := accelerator.ParseTopology(labels[accelerator.LabelTopology])
	if err != nil {
		return accelerator.Slice{}, false
	}
	for _, g := range accelerator.Generations() {
		f, ok := g.Facts()
		if !ok || f.AcceleratorLabel != labels[accelerator.LabelAccelerator] {
			continue
		}
		s, err := accelerator.Lookup(g, topology, "")
		count := labels[accelerator.LabelAcceleratorCount]
		if err == nil && (count == "" || count == strconv.Itoa(s.ChipsPerHost)) {
			return s, true
		}
		for _, m := range f.Machines {
			if strconv.Itoa(m.Chips) != count {
				continue
			}
			if s, err := accelerator.Lookup(g, topology, m.Name); err == nil {
				return s, true
			}
		}
	}
	return accelerator.Slice{}, false
}
