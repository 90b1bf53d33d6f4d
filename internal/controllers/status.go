package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// The states of an install.
const (
	Ready      = "READY"      // everything is there and all pods are available
	NotReady   = "NOT_READY"  // everything is there; pods are down or starting, which the cluster heals
	Incomplete = "INCOMPLETE" // something is missing or of another configuration; an install repairs it
	Absent     = "ABSENT"     // nothing is there
)

// Release is one controller as found on a cluster.
type Release struct {
	Version  string // of the image: v0.12.0; "" when there is no Deployment
	Replicas int    // wanted
	Ready    int    // available
}

// Status is what a cluster has.
type Status struct {
	State  string
	JobSet Release
	Kueue  Release
	// Missing names what an install would repair.
	Missing []string
	// Config is what was installed, nil when the cluster has no record of a
	// finished install.
	Config *Config
}

// Observe compares a cluster with c. It sends a few small reads and never
// waits. A cluster that does not answer is an error.
func Observe(ctx context.Context, cl *kube.Client, c Config) (Status, error) {
	c = c.WithDefaults()
	hash, err := c.Hash()
	if err != nil {
		return Status{}, err
	}
	ps := c.parts()
	seen := make([]observation, len(ps))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, p := range ps {
		for _, look := range seen[i].looks(p) {
			g.Go(func() error { return look(gctx, cl) })
		}
	}
	var changed []string // of the default priorities
	if !c.NoPriorities && !c.Kueue.Disabled {
		g.Go(func() (err error) {
			changed, err = changedPriorities(gctx, cl)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Status{}, err
	}
	s := Status{State: Ready}
	gone := 0
	for i, p := range ps {
		r, missing := seen[i].judge(c, p, hash)
		if p == jobSet {
			s.JobSet = r
		} else {
			s.Kueue = r
		}
		if s.Config == nil {
			s.Config = seen[i].recorded()
		}
		if len(missing) > 0 {
			s.State = Incomplete
			s.Missing = append(s.Missing, missing...)
		} else if s.State == Ready && (r.Ready < r.Replicas || r.Replicas == 0) {
			s.State = NotReady
		}
		if !seen[i].namespaceFound && !seen[i].deploymentFound && !seen[i].definitionFound {
			gone++
		}
	}
	if gone == len(ps) {
		s.State = Absent
		return s, nil
	}
	for _, p := range ps {
		lines, err := lost(ctx, cl, c, p)
		if err != nil {
			return Status{}, err
		}
		changed = append(lines, changed...)
	}
	if len(changed) > 0 {
		s.State = Incomplete
		s.Missing = append(s.Missing, changed...)
	}
	return s, nil
}

// observation is what was read about one release.
type observation struct {
	namespace  corev1.Namespace
	deployment appsv1.Deployment
	config     corev1.ConfigMap

	namespaceFound, deploymentFound, configFound, definitionFound, validatingFound, mutatingFound bool
}

// definition names one definition of each release: whoever deletes one
// usually deletes all.
var definition = map[part]string{jobSet: "jobsets.jobset.x-k8s.io", kueue: "clusterqueues.kueue.x-k8s.io"}

// looks returns the reads that fill o.
func (o *observation) looks(p part) []func(context.Context, *kube.Client) error {
	o.namespace.Name = p.namespace()
	o.deployment.Namespace, o.deployment.Name = p.namespace(), p.deployment()
	o.config.Namespace, o.config.Name = p.namespace(), p.configMap()
	// Metadata only: a definition has up to 700 KB.
	meta := func(found *bool, group, version, kind, name string) func(context.Context, *kube.Client) error {
		return func(ctx context.Context, cl *kube.Client) (err error) {
			m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: group + "/" + version, Kind: kind}}
			m.Name = name
			*found, err = cl.Fetch(ctx, m)
			*found = *found && m.DeletionTimestamp == nil // whoever deletes it has all of it gone
			return err
		}
	}
	return []func(context.Context, *kube.Client) error{
		func(ctx context.Context, cl *kube.Client) (err error) {
			o.namespaceFound, err = cl.Fetch(ctx, &o.namespace)
			return err
		},
		func(ctx context.Context, cl *kube.Client) (err error) {
			o.deploymentFound, err = cl.Fetch(ctx, &o.deployment)
			return err
		},
		func(ctx context.Context, cl *kube.Client) (err error) {
			o.configFound, err = cl.Fetch(ctx, &o.config)
			return err
		},
		meta(&o.definitionFound, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", definition[p]),
		meta(&o.validatingFound, "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", p.validating()),
		meta(&o.mutatingFound, "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", p.mutating()),
	}
}

// judge says what is there and what is missing.
func (o *observation) judge(c Config, p part, hash string) (r Release, missing []string) {
	if o.deploymentFound {
		r = release(&o.deployment)
	}
	for _, part := range []struct {
		found bool
		name  string
	}{
		{o.namespaceFound, "Namespace " + p.namespace()},
		{o.deploymentFound, "Deployment " + p.namespace() + "/" + p.deployment()},
		{o.configFound, "ConfigMap " + p.namespace() + "/" + p.configMap()},
		{o.definitionFound, "CustomResourceDefinition " + definition[p]},
		{o.validatingFound, "ValidatingWebhookConfiguration " + p.validating()},
		{o.mutatingFound, "MutatingWebhookConfiguration " + p.mutating()},
	} {
		if !part.found {
			missing = append(missing, part.name+" does not exist")
		}
	}
	if o.namespaceFound {
		switch got := o.namespace.Annotations[annotationHash]; got {
		case hash:
		case "":
			missing = append(missing, fmt.Sprintf("the last install of %s did not finish", p.title()))
		default:
			missing = append(missing, fmt.Sprintf("%s was installed with another configuration or by another version (%s, want %s)", p.title(), got, hash))
		}
	}
	return r, append(missing, o.changed(c, p)...)
}

// changed lists what somebody changed by hand since the install. It looks where
// people do: at the number of pods, the image and the settings.
func (o *observation) changed(c Config, p part) (lines []string) {
	name := "Deployment " + p.namespace() + "/" + p.deployment()
	if d := o.deployment.Spec; o.deploymentFound && d.Replicas != nil && int(*d.Replicas) != c.replicas(p) {
		lines = append(lines, fmt.Sprintf("%s has %d replicas, want %d", name, *d.Replicas, c.replicas(p)))
	}
	for _, container := range o.deployment.Spec.Template.Spec.Containers {
		if want := c.image(p); container.Image != want {
			lines = append(lines, fmt.Sprintf("%s runs image %s, want %s", name, container.Image, want))
		}
	}
	if want, err := c.file(p); err == nil && o.configFound && o.config.Data[configFile] != string(want) {
		lines = append(lines, fmt.Sprintf("%s in ConfigMap %s/%s was changed", configFile, p.namespace(), p.configMap()))
	}
	return lines
}

// recorded returns the recorded configuration, or nil.
func (o *observation) recorded() *Config {
	text, ok := o.namespace.Annotations[annotationRecord]
	if !ok {
		return nil
	}
	var c Config
	if json.Unmarshal([]byte(text), &c) != nil {
		return nil // written by hand: as good as none
	}
	return &c
}

func release(d *appsv1.Deployment) Release {
	r := Release{Ready: int(d.Status.AvailableReplicas), Replicas: 1}
	if d.Spec.Replicas != nil {
		r.Replicas = int(*d.Spec.Replicas)
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		if i := strings.LastIndexByte(c.Image, ':'); i >= 0 {
			r.Version = c.Image[i+1:]
		}
	}
	return r
}

// Installed reads which configuration was installed last, nil when there is
// no record of one.
func Installed(ctx context.Context, cl *kube.Client) (*Config, error) {
	for _, p := range []part{jobSet, kueue} {
		o := observation{}
		o.namespace.Name = p.namespace()
		if _, err := cl.Fetch(ctx, &o.namespace); err != nil {
			return nil, err
		}
		if c := o.recorded(); c != nil {
			return c, nil
		}
	}
	return nil, nil
}
