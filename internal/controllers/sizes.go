package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources are requests and limits of a controller's container. Zero values
// keep those of Config.MaxHosts, or else the release's.
type Resources struct {
	CPU         resource.Quantity `json:"cpu,omitzero"`         // request
	Memory      resource.Quantity `json:"memory,omitzero"`      // request
	MemoryLimit resource.Quantity `json:"memoryLimit,omitzero"` // at least the request
}

const (
	// memoryPerHost is what both controllers keep of a host: its pods, their
	// Jobs, the JobSets and workloads; the figure that xpk sizes them by, in KiB.
	memoryPerHost = 1229
	// smallestSized is the memory of a controller that is sized at all, in KiB.
	smallestSized = 4 << 20
	// cpuPerHost is in thousandths of a millicore: 2 cores for 5,000 hosts.
	cpuPerHost = 400
	// cpuMost bounds the CPU request: neither controller uses more.
	cpuMost = 4000
	// cpuLeast is what both releases request themselves.
	cpuLeast = 500
)

// sized is what a controller of a cluster with this many TPU hosts needs.
func sized(hosts int) Resources {
	if hosts == 0 {
		return Resources{}
	}
	memory := resource.NewQuantity(max(int64(hosts)*memoryPerHost, smallestSized)<<10, resource.BinarySI)
	return Resources{
		CPU:         *resource.NewMilliQuantity(min(max(int64(hosts)*cpuPerHost/1000, cpuLeast), cpuMost), resource.DecimalSI),
		Memory:      *memory,
		MemoryLimit: *memory, // as much as is requested: running out of memory is what stops a large cluster
	}
}

// or fills what is not set in r from other.
func (r Resources) or(other Resources) Resources {
	if r.CPU.IsZero() {
		r.CPU = other.CPU
	}
	if r.MemoryLimit.IsZero() && r.Memory.Cmp(other.MemoryLimit) > 0 {
		r.MemoryLimit = r.Memory // asking for more memory means being allowed it
	}
	if r.MemoryLimit.IsZero() {
		r.MemoryLimit = other.MemoryLimit
	}
	if r.Memory.IsZero() {
		r.Memory = other.Memory
		if !r.MemoryLimit.IsZero() && r.Memory.Cmp(r.MemoryLimit) > 0 {
			r.Memory = r.MemoryLimit
		}
	}
	return r
}

// apply sets the container's resources where r says something.
func (r Resources) apply(to *corev1.ResourceRequirements) {
	was := Resources{
		CPU: to.Requests[corev1.ResourceCPU], Memory: to.Requests[corev1.ResourceMemory], MemoryLimit: to.Limits[corev1.ResourceMemory],
	}
	r = r.or(was)
	set := func(list *corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
		if q.IsZero() {
			return
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = q
	}
	set(&to.Requests, corev1.ResourceCPU, r.CPU)
	set(&to.Requests, corev1.ResourceMemory, r.Memory)
	set(&to.Limits, corev1.ResourceMemory, r.MemoryLimit)
	if limit, ok := to.Limits[corev1.ResourceCPU]; ok && limit.Cmp(r.CPU) < 0 {
		to.Limits[corev1.ResourceCPU] = r.CPU
	}
}

// resources is what c wants for a release's container.
func (c Config) resources(p part) Resources {
	r := c.Kueue.Resources
	if p == jobSet {
		r = c.JobSet.Resources
	}
	return r.or(sized(c.MaxHosts))
}
