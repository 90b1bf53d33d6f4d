package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func amounts(cpu, memory string) corev1.ResourceList {
	l := corev1.ResourceList{}
	if cpu != "" {
		l[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		l[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return l
}

// Controllers grow with the cluster; what is asked for by name goes before.
func TestSizes(t *testing.T) {
	kueue := corev1.ResourceRequirements{Requests: amounts("500m", "512Mi"), Limits: amounts("2", "512Mi")}
	for name, tt := range map[string]struct {
		hosts int
		own   Resources
		want  corev1.ResourceRequirements
	}{
		"the release's own":        {0, Resources{}, kueue},
		"a small cluster":          {100, Resources{}, corev1.ResourceRequirements{Requests: amounts("500m", "4Gi"), Limits: amounts("2", "4Gi")}},
		"5,000 hosts":              {5000, Resources{}, corev1.ResourceRequirements{Requests: amounts("2", "6145000Ki"), Limits: amounts("2", "6145000Ki")}},
		"the CPU limit follows":    {12500, Resources{}, corev1.ResourceRequirements{Requests: amounts("4", "15362500Ki"), Limits: amounts("4", "15362500Ki")}},
		"one host":                 {1, Resources{}, corev1.ResourceRequirements{Requests: amounts("500m", "4Gi"), Limits: amounts("2", "4Gi")}},
		"the last of the smallest": {3412, Resources{}, corev1.ResourceRequirements{Requests: amounts("1364m", "4Gi"), Limits: amounts("2", "4Gi")}},
		"the first above":          {3413, Resources{}, corev1.ResourceRequirements{Requests: amounts("1365m", "4194577Ki"), Limits: amounts("2", "4194577Ki")}},
		"as large as GKE goes":     {65000, Resources{}, corev1.ResourceRequirements{Requests: amounts("4", "79885000Ki"), Limits: amounts("4", "79885000Ki")}},
		"own memory":               {5000, Resources{Memory: resource.MustParse("32Gi")}, corev1.ResourceRequirements{Requests: amounts("2", "32Gi"), Limits: amounts("2", "32Gi")}},
		"own limit below the size": {5000, Resources{MemoryLimit: resource.MustParse("1Gi")}, corev1.ResourceRequirements{Requests: amounts("2", "1Gi"), Limits: amounts("2", "1Gi")}},
		"own limit alone":          {0, Resources{MemoryLimit: resource.MustParse("2Gi")}, corev1.ResourceRequirements{Requests: amounts("500m", "512Mi"), Limits: amounts("2", "2Gi")}},
	} {
		t.Run(name, func(t *testing.T) {
			got := kueue.DeepCopy()
			c := Config{MaxHosts: tt.hosts, Kueue: KueueConfig{Resources: tt.own}}
			c.resources(part("kueue")).apply(got)
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
