package controllers

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
)

// repository is what images can be below: a host with its port, and a path.
var repository = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)

// validatePlacement reports images and nodes that cannot be.
func (c Config) validatePlacement() error {
	if !repository.MatchString(c.ImageRepository) {
		return fmt.Errorf("image repository %q: want a registry, or a repository in one, such as us-docker.pkg.dev/my-project/mirror: lowercase, without https:// and without a tag", c.ImageRepository)
	}
	if err := validateLabels("node selector", c.NodeSelector); err != nil {
		return err
	}
	for i, t := range c.Tolerations {
		if err := validateToleration(t); err != nil {
			return fmt.Errorf("toleration %d: %w", i+1, err)
		}
	}
	return nil
}

func validateLabels(what string, labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if errs := naming.Key(key); len(errs) > 0 {
			return fmt.Errorf("%s: label %q: %s", what, key, errs[0])
		}
		if errs := naming.LabelValue(labels[key]); len(errs) > 0 {
			return fmt.Errorf("%s: value %q of label %s: %s", what, labels[key], key, errs[0])
		}
	}
	return nil
}

// validateToleration holds a toleration to the API server's rules. An operator
// that is not known yet is empty.
func validateToleration(t corev1.Toleration) error {
	if t.Key == "" && t.Operator == corev1.TolerationOpEqual {
		return fmt.Errorf("a value without the key of its taint")
	}
	if t.Value != "" && t.Operator == corev1.TolerationOpExists {
		return fmt.Errorf("operator Exists takes no value, not %q: any will do", t.Value)
	}
	if t.Key == "" {
		return nil
	}
	return validateLabels("taint", map[string]string{t.Key: t.Value})
}

// What no controller can do with: a unit was forgotten.
var (
	leastCPU, mostCPU       = resource.MustParse("10m"), resource.MustParse("64")
	leastMemory, mostMemory = resource.MustParse("64Mi"), resource.MustParse("256Gi")
)

func (r Resources) validate() error {
	for _, q := range []struct {
		what              string
		got, least, most  resource.Quantity
		example, mistaken string
	}{
		{"CPU", r.CPU, leastCPU, mostCPU, "500m (half a core) or 2", "cores"},
		{"memory", r.Memory, leastMemory, mostMemory, "512Mi or 4Gi", "bytes"},
		{"memory limit", r.MemoryLimit, leastMemory, mostMemory, "512Mi or 4Gi", "bytes"},
	} {
		if q.got.IsZero() {
			continue
		}
		if q.got.Cmp(q.least) < 0 || q.got.Cmp(q.most) > 0 {
			return fmt.Errorf("%s %s: want %s to %s, such as %s; a number without a unit is %s", q.what, &q.got, &q.least, &q.most, q.example, q.mistaken)
		}
	}
	if !r.MemoryLimit.IsZero() && r.Memory.Cmp(r.MemoryLimit) > 0 {
		return fmt.Errorf("the memory limit %s is below the request %s", &r.MemoryLimit, &r.Memory)
	}
	return nil
}
