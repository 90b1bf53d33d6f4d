package queue

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// Quota is a queue's share of one flavor, in slices. A slice is the unit that
// jobs ask for; Kueue counts chips.
type Quota struct {
	Flavor string
	Slice  accelerator.Slice
	Slices int64
	// Borrow is how many slices above its own the queue may take from its
	// cohort, Lend how many of its own others may take while they are idle.
	// nil means no limit. Both need a cohort.
	Borrow, Lend *int64
	// CPU and Memory of the slices' hosts; nil = not counted. What one flavor
	// counts, all of the queue do.
	CPU, Memory *HostQuota
	// Pool is the path of the slice pool that the quota follows, or "": it is
	// lowered before the pool shrinks (see Lower).
	Pool string
}

// HostQuota is a share of cpu or memory.
type HostQuota struct {
	Quota        resource.Quantity
	Borrow, Lend *resource.Quantity
}

// HostFlavor is a flavor that hands out cpu and memory only. A queue that counts
// them there counts them for all its jobs, on TPU hosts and on others.
type HostFlavor struct {
	Flavor      string
	CPU, Memory *HostQuota
}

// Chips is the quota as Kueue counts it.
func (q Quota) Chips() int64 { return q.Slices * int64(q.Slice.Chips) }

func (q Quota) object() kueue.FlavorQuotas {
	chips := func(slices int64) resource.Quantity {
		return *resource.NewQuantity(slices*int64(q.Slice.Chips), resource.DecimalSI)
	}
	r := kueue.ResourceQuota{Name: accelerator.ResourceName, NominalQuota: chips(q.Slices)}
	if q.Borrow != nil {
		r.BorrowingLimit = ptr.To(chips(*q.Borrow))
	}
	if q.Lend != nil {
		r.LendingLimit = ptr.To(chips(*q.Lend))
	}
	return kueue.FlavorQuotas{
		Name:      kueue.ResourceFlavorReference(q.Flavor),
		Resources: append([]kueue.ResourceQuota{r}, hostQuotas(q.CPU, q.Memory)...),
	}
}

// covered are the names of those resources that are counted, in the order of
// hostQuotas: Kueue wants every flavor to list them in one order.
func covered(cpu, memory *HostQuota) (names []corev1.ResourceName) {
	if cpu != nil {
		names = append(names, corev1.ResourceCPU)
	}
	if memory != nil {
		names = append(names, corev1.ResourceMemory)
	}
	return names
}

func hostQuotas(cpu, memory *HostQuota) (quotas []kueue.ResourceQuota) {
	add := func(name corev1.ResourceName, h *HostQuota) {
		if h != nil {
			quotas = append(quotas, kueue.ResourceQuota{Name: name, NominalQuota: h.Quota, BorrowingLimit: h.Borrow, LendingLimit: h.Lend})
		}
	}
	add(corev1.ResourceCPU, cpu)
	add(corev1.ResourceMemory, memory)
	return quotas
}

// minWeight is what a weight in fair sharing must exceed, unless it is 0: below
// it Kueue cannot tell it from nothing.
var minWeight = resource.MustParse("1n")

// ParseWeight reads a weight in fair sharing: 0, or more than a billionth.
func ParseWeight(s string) (resource.Quantity, error) {
	w, err := resource.ParseQuantity(s)
	if err != nil {
		return w, fmt.Errorf("%q is not a weight: want a number such as 1 or 0.5", s)
	}
	return w, checkWeight(w)
}

// WeightText is a weight the way people write it: 0.5, not 500m.
func WeightText(w resource.Quantity) string {
	s := w.AsDec().String()
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func checkWeight(w resource.Quantity) error {
	switch {
	case w.Sign() < 0:
		return fmt.Errorf("a weight of %s is negative", w.AsDec())
	case w.Sign() > 0 && w.Cmp(minWeight) <= 0:
		return fmt.Errorf("a weight of %s is too small: it is 0, or more than a billionth", w.AsDec())
	}
	return nil
}

// CheckQuantity says why s is not an amount of cpu or memory.
func CheckQuantity(s string) error {
	q, err := resource.ParseQuantity(s)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a quantity: want a number such as 400, 1.5 or 500m, or with a unit such as 64Gi", s)
	case q.Sign() < 0:
		return fmt.Errorf("%q is negative", s)
	}
	return nil
}
