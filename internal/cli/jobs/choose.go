package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/near"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
)

// selected are the labels that --label and --tag choose jobs by.
func selected(labels, tags []string, bad func(string, ...any)) map[string]string {
	out := pairs("--label", labels, bad)
	for _, tag := range tags {
		if tag == "" || strings.ContainsAny(tag, "=/ ") {
			bad("--tag: %q; want a word, as tpuctl submit --tag gives it; --label KEY=VALUE chooses by a label", tag)
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		key, value := jobfile.TagLabel(tag)
		out[key] = value
	}
	return out
}

// missingPlace says that a namespace or a queue is not there, in which no job
// was found. What may not be listed is there for all we know.
func missingPlace(ctx context.Context, source Source, namespace, queue string) error {
	if namespace != "" {
		if all, err := source.Namespaces(ctx); err == nil && len(all) > 0 && !slices.Contains(all, namespace) {
			return fmt.Errorf("there is no namespace %s%s", namespace, near.Hint(namespace, all))
		}
	}
	if queue == "" {
		return nil
	}
	all, err := source.Queues(ctx, namespace)
	if err != nil || slices.Contains(all, queue) {
		return nil
	}
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	distinct := map[string]bool{}
	for _, name := range all {
		distinct[name] = true
	}
	names := slices.Sorted(maps.Keys(distinct))
	text := fmt.Sprintf("there is no queue %s%s", queue, where)
	if hint := near.Hint(queue, names); hint != "" || len(names) == 0 || len(names) > few {
		return errors.New(text + hint)
	}
	return fmt.Errorf("%s; there is %s", text, strings.Join(names, ", "))
}
