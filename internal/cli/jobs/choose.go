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
	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
)

// selected are the labels that --label and --tag choose jobs by: valid keys and
// values, so that nothing but what was meant is chosen.
func selected(labels, tags []string, bad func(string, ...any)) map[string]string {
	out := pairs("--label", labels, bad)
	for _, key := range slices.Sorted(maps.Keys(out)) {
		for _, problem := range naming.Key(key) {
			bad("--label: the key %q: %s; jobs are chosen by KEY=VALUE alone", key, problem)
		}
		for _, problem := range naming.LabelValue(out[key]) {
			bad("--label: the value %q of %s: %s; --label is repeated for several", out[key], key, problem)
		}
	}
	for _, tag := range tags {
		if problem := jobfile.CheckTag(tag); problem != "" {
			bad("--tag: %s, as tpuctl submit --tag gives it; --label KEY=VALUE chooses by a label", problem)
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

// place refuses what cannot be the value of the label that a flag chooses by.
func place(flag, value string, bad func(string, ...any)) {
	for _, problem := range naming.LabelValue(value) {
		bad("%s: %q: %s", flag, value, problem)
	}
}

// ownedBy is the owner that jobs of an account have.
func ownedBy(account string, bad func(string, ...any)) string {
	owner := jobfile.OwnerOf(account)
	if account != "" && owner == "" || strings.ContainsAny(account, ", \t\n") {
		bad("--owner: %q; want one owner or account, such as ada or ada@example.com", account)
	}
	return owner
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
