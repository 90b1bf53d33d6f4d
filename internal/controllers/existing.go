package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// existing is what a cluster has of one release before an install.
type existing struct {
	found    bool
	version  string   // of the image; "" when it has none that can be read
	managers []string // who else wrote the Deployment's specification; none when we did
}

// lookFor reads what there is of a release: its Deployment says who installed
// which version.
func lookFor(ctx context.Context, cl *kube.Client, p part) (existing, error) {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = p.namespace(), p.deployment()
	found, err := cl.Fetch(ctx, d)
	if err != nil || !found {
		return existing{}, err
	}
	e := existing{found: true, version: release(d).Version}
	for _, m := range d.ManagedFields {
		switch {
		case m.Manager == kube.FieldManager && m.Operation == metav1.ManagedFieldsOperationApply:
			e.managers = nil
			return e, nil
		case m.Subresource == "" && !slices.Contains(e.managers, m.Manager):
			e.managers = append(e.managers, m.Manager)
		}
	}
	return e, nil
}

// ForeignError is an install that somebody else made.
type ForeignError struct {
	Cluster  string
	Part     string // JobSet or Kueue
	Object   string // its Deployment
	Version  string
	Managers []string // who wrote it
}

func (e *ForeignError) Error() string {
	who := "somebody else"
	if len(e.Managers) > 0 {
		who = strings.Join(e.Managers, ", ")
	}
	return fmt.Sprintf("cluster %s has %s %s already: %s was written by %s, not by %s.\n"+
		"Adopt it, and its queues and jobs go on while its settings become those asked for here; or disable %s here, and it stays as it is.",
		e.Cluster, e.Part, e.Version, e.Object, who, kube.FieldManager, e.Part)
}

// inspect reads what is there and refuses what an install with c would break:
// before anything is written. changed tells that some release was there before.
func inspect(ctx context.Context, cl *kube.Client, c Config, o Options) (before bool, err error) {
	for _, p := range c.parts() {
		e, err := lookFor(ctx, cl, p)
		if err != nil {
			return false, err
		}
		if !e.found {
			continue
		}
		before = true
		if len(e.managers) > 0 && !o.Adopt {
			return false, &ForeignError{
				Cluster: cl.Name, Part: p.title(), Object: "Deployment " + p.namespace() + "/" + p.deployment(),
				Version: e.version, Managers: e.managers,
			}
		}
		if err := checkChange(p, e.version, c.version(p)); err != nil {
			return false, fmt.Errorf("cluster %s: %w", cl.Name, err)
		}
		if e.version != "" && e.version != c.version(p) {
			o.say("Replacing %s %s by %s", p.title(), e.version, c.version(p))
		}
	}
	return before, nil
}
