package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// existing is what a cluster has of one release before an install.
type existing struct {
	found    bool
	version  string   // of the image; "" when it has none that can be read
	managers []string // who else wrote the Deployment's specification; none when we did
	helm     string   // the Helm release it is of
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
	return existing{found: true, version: release(d).Version, managers: writers(d), helm: d.Annotations["meta.helm.sh/release-name"]}, nil
}

// writers are the managers that wrote a Deployment's specification; none when
// we did.
func writers(d *appsv1.Deployment) (managers []string) {
	for _, m := range d.ManagedFields {
		switch {
		case m.Manager == kube.FieldManager && m.Operation == metav1.ManagedFieldsOperationApply:
			return nil
		case m.Subresource == "" && !slices.Contains(managers, m.Manager):
			managers = append(managers, m.Manager)
		}
	}
	return managers
}

// elsewhere finds a release that somebody installed under other names than the
// official manifests have: Helm names things after the release, and into any
// namespace. Two of them would work on the same objects.
func elsewhere(ctx context.Context, cl *kube.Client, c Config) error {
	var all appsv1.DeploymentList
	if err := cl.List(ctx, &all); err != nil {
		return &kube.Error{Verb: "listing", Kind: "Deployments", Key: "to find other installs", Cluster: cl.Name, Err: err}
	}
	for _, p := range c.parts() {
		for i := range all.Items {
			d := &all.Items[i]
			if d.DeletionTimestamp != nil || d.Namespace == p.namespace() && d.Name == p.deployment() || !p.runs(d) {
				continue
			}
			return &ForeignError{Cluster: cl.Name, Part: p.title(), Object: "Deployment " + key(d), Version: release(d).Version,
				Managers: writers(d), HelmRelease: d.Annotations["meta.helm.sh/release-name"], Elsewhere: true}
		}
	}
	return nil
}

// runs tells whether a Deployment is the controller of a release: both are
// started as /manager, from an image that is named after the project.
func (p part) runs(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		image, _, _ := strings.Cut(c.Image[strings.LastIndexByte(c.Image, '/')+1:], "@")
		image, _, _ = strings.Cut(image, ":")
		return image == string(p) && slices.Equal(c.Command, []string{"/manager"})
	})
}

// ForeignError is an install that somebody else made.
type ForeignError struct {
	Cluster     string
	Part        string // JobSet or Kueue
	Object      string // its Deployment
	Version     string
	Managers    []string // who wrote it
	HelmRelease string   // the Helm release it is of, if any
	Elsewhere   bool     // it has another name or namespace than ours, and cannot become ours
}

func (e *ForeignError) Error() string {
	who := "somebody else"
	if len(e.Managers) > 0 {
		who = strings.Join(e.Managers, ", ")
	}
	if e.HelmRelease != "" {
		who += " (Helm release " + e.HelmRelease + ")"
	}
	msg := fmt.Sprintf("cluster %s has %s %s already: %s was written by %s, not by %s.\n", e.Cluster, e.Part, e.Version, e.Object, who, kube.FieldManager)
	if e.Elsewhere {
		return msg + fmt.Sprintf("It goes by other names than the official manifests and so cannot be adopted: both would work on the same objects. "+
			"Disable %[1]s here, and it stays as it is; or remove its Deployment and its webhook configurations, and apply again. "+
			"Leave its definitions: all queues and jobs go with them, and `helm uninstall` removes those of Kueue.", e.Part)
	}
	msg += fmt.Sprintf("Adopt it, and its queues and jobs go on while its settings become those asked for here; or disable %s here, and it stays as it is.", e.Part)
	if e.HelmRelease != "" {
		msg += fmt.Sprintf(" Once it is adopted, let Helm forget it: delete its secrets sh.helm.release.v1.%s.*, and never uninstall it.", e.HelmRelease)
	}
	return msg
}

// inspect reads what is there and refuses what an install with c would break:
// before anything is written. changed tells that some release was there before.
func inspect(ctx context.Context, cl *kube.Client, c Config, o Options) (before bool, err error) {
	if err := elsewhere(ctx, cl, c); err != nil {
		return false, err
	}
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
				Version: e.version, Managers: e.managers, HelmRelease: e.helm,
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
