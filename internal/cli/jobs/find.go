package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/near"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// find reads one run by name. Without a namespace the name is looked for in
// all of them; NAMESPACE/NAME, as -o name prints it, is understood too.
func find(ctx context.Context, source Source, namespace, name string) (training.Run, error) {
	if ns, rest, ok := strings.Cut(name, "/"); ok {
		if namespace != "" && namespace != ns {
			return training.Run{}, exit.Usagef("job %s is in namespace %s, but --namespace says %s", rest, ns, namespace)
		}
		if ns == "" || rest == "" || strings.Contains(rest, "/") {
			return training.Run{}, exit.Usagef("%q is no job's name: want NAME or NAMESPACE/NAME", name)
		}
		namespace, name = ns, rest
	}
	if name == "" { // of a variable that is not set, say: it is not whichever job there is
		return training.Run{}, exit.Usagef("a job's name is empty. tpuctl list shows the jobs")
	}
	if namespace != "" {
		run, err := source.Get(ctx, namespace, name)
		if missing := new(training.NotFoundError); errors.As(err, &missing) {
			if elsewhere := otherPlaces(ctx, source, namespace, name); elsewhere != "" {
				return training.Run{}, fmt.Errorf("%w; %s", err, elsewhere)
			}
			return training.Run{}, notFound(ctx, source, namespace, name, err)
		}
		return run, err
	}
	found, err := source.Select(ctx, training.Query{Name: name})
	if err != nil {
		return training.Run{}, fmt.Errorf("looking for job %s in all namespaces (--namespace looks in one only): %w", name, err)
	}
	var in []string
	for _, r := range found.Runs {
		in = append(in, r.Namespace)
	}
	switch len(in) {
	case 0:
		return training.Run{}, notFound(ctx, source, "", name, &training.NotFoundError{Name: name})
	case 1:
		return source.Get(ctx, in[0], name)
	}
	return training.Run{}, exit.Usagef("there are %d jobs named %s, in namespaces %s: choose one with --namespace", len(in), name, strings.Join(in, ", "))
}

// otherPlaces says in which other namespaces there is a job of the name; that
// they may not be looked at is no news.
func otherPlaces(ctx context.Context, source Source, namespace, name string) string {
	found, err := source.Select(ctx, training.Query{Name: name})
	if err != nil {
		return ""
	}
	var in []string
	for _, r := range found.Runs {
		if r.Namespace != namespace {
			in = append(in, r.Namespace)
		}
	}
	switch len(in) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("there is one in namespace %s: -n %s", in[0], in[0])
	}
	return "there are some in namespaces " + strings.Join(in, ", ")
}

// notFound adds what there is in the namespace; that it cannot be listed is no
// news.
func notFound(ctx context.Context, source Source, namespace, name string, err error) error {
	all, listErr := source.Select(ctx, training.Query{Namespace: namespace})
	if listErr != nil {
		return err
	}
	return suggest(ctx, source, err, name, all.Runs)
}

// few is how many jobs can be named in an error.
const few = 5

// suggest names the jobs there are, or those whose names are near, or says why
// there can be none, or how to see them all.
func suggest(ctx context.Context, source Source, err error, name string, runs []training.Run) error {
	var all, like []string
	for _, r := range runs {
		path := r.Namespace + "/" + r.Name
		all = append(all, path)
		if strings.Contains(r.Name, name) || strings.Contains(name, r.Name) || len(near.To(name, []string{r.Name})) > 0 {
			like = append(like, path)
		}
	}
	switch {
	case len(like) > 0 && len(like) <= few:
		return fmt.Errorf("%w; did you mean %s?", err, strings.Join(like, " or "))
	case len(all) > 0 && len(all) <= few:
		return fmt.Errorf("%w; there is %s", err, strings.Join(all, ", "))
	}
	var missing *training.NotInstalledError
	if len(all) == 0 && errors.As(source.Installed(ctx), &missing) {
		return fmt.Errorf("%w\n%s", err, noController(missing))
	}
	return fmt.Errorf("%w; tpuctl list shows all jobs", err)
}
