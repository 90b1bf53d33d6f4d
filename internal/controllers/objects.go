package controllers

import (
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// rendering numbers the changes that this file makes to the manifests. Raise
// it with every change, so that the next apply writes it to old installs.
const rendering = 3

// upstreamWebhookPort is what both official manifests serve webhooks on.
const upstreamWebhookPort = 9443

// Objects returns everything an install with c writes, JobSet before Kueue.
func Objects(c Config) ([]*unstructured.Unstructured, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, p := range c.parts() {
		objs, err := p.objects(c.version(p))
		if err != nil {
			return nil, err
		}
		for _, obj := range objs {
			if c.unused(obj) {
				continue
			}
			if err := transform(c, p, obj); err != nil {
				return nil, fmt.Errorf("preparing %s %s of %s: %w", obj.GetKind(), obj.GetName(), p.title(), err)
			}
			all = append(all, obj)
		}
	}
	return all, nil
}

// unused tells whether obj only serves what c leaves out: the editor and viewer
// roles of job types that Kueue does not manage here, and the visibility API.
func (c Config) unused(obj *unstructured.Unstructured) bool {
	switch obj.GetKind() {
	case "APIService":
		// While nobody serves it, no namespace of the cluster could be deleted.
		return c.Kueue.NoVisibility
	case "ClusterRole":
		name := strings.TrimPrefix(obj.GetName(), "kueue-")
		for _, suffix := range []string{"-editor-role", "-viewer-role"} {
			if job, ok := strings.CutSuffix(name, suffix); ok {
				return isJobType(job) && !slices.ContainsFunc(c.Kueue.frameworks(), func(f string) bool { return path.Base(f) == job })
			}
		}
	}
	return false
}

func isJobType(name string) bool {
	for f := range more {
		if path.Base(f) == name {
			return true
		}
	}
	return slices.ContainsFunc(slices.Concat(Frameworks, podBased), func(f string) bool { return path.Base(f) == name })
}

// transform changes one object of a release as c says.
func transform(c Config, p part, obj *unstructured.Unstructured) error {
	switch obj.GetKind() {
	case "CustomResourceDefinition":
		// A placeholder of the kustomization that its authors left in.
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", "cert-manager.io/inject-ca-from")
		if p == jobSet {
			return columns(obj)
		}
	case "Deployment":
		return convert(obj, func(d *appsv1.Deployment) error { return deployment(c, p, d) })
	case "ConfigMap":
		return convert(obj, func(cm *corev1.ConfigMap) error { return configMap(c, p, cm) })
	case "Service":
		return convert(obj, func(s *corev1.Service) error {
			for i := range s.Spec.Ports {
				if s.Spec.Ports[i].TargetPort == intstr.FromInt32(upstreamWebhookPort) {
					s.Spec.Ports[i].TargetPort = intstr.FromInt(c.WebhookPort)
				}
			}
			return nil
		})
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return webhooks(c, p, obj)
	}
	return nil
}

// columns adds the printer columns by which a list of jobs says what they are.
func columns(crd *unstructured.Unstructured) error {
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return err
	}
	for _, v := range versions {
		version := v.(map[string]any)
		shown, _ := version["additionalPrinterColumns"].([]any)
		for _, c := range training.Columns() {
			column := map[string]any{"name": c.Name, "description": c.Description, "type": "string", "jsonPath": c.JSONPath}
			if c.Wide {
				column["priority"] = int64(1)
			}
			shown = append(shown, column)
		}
		version["additionalPrinterColumns"] = shown
	}
	return unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
}

// convert edits an object as the type it is and writes it back without the
// zero values that typed objects always carry.
func convert[T any](obj *unstructured.Unstructured, edit func(*T) error) error {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, typed, true); err != nil {
		return err
	}
	if err := edit(typed); err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return err
	}
	for _, path := range [][]string{
		{"status"}, {"metadata", "creationTimestamp"}, {"spec", "strategy"}, {"spec", "template", "metadata", "creationTimestamp"},
	} {
		if v, ok, _ := unstructured.NestedFieldNoCopy(content, path...); ok && (path[0] == "status" || empty(v)) {
			unstructured.RemoveNestedField(content, path...)
		}
	}
	obj.Object = content
	return nil
}

func empty(v any) bool {
	if m, ok := v.(map[string]any); ok {
		return len(m) == 0
	}
	return v == nil
}

// deployment sets what differs from the official Deployment.
func deployment(c Config, p part, d *appsv1.Deployment) error {
	replicas := int32(c.replicas(p))
	d.Spec.Replicas = &replicas
	config, err := c.file(p)
	if err != nil {
		return err
	}
	// A file mounted by subPath never changes in a running pod: a changed
	// configuration must make new pods.
	if d.Spec.Template.Annotations == nil {
		d.Spec.Template.Annotations = map[string]string{}
	}
	d.Spec.Template.Annotations[annotationConfig] = digest(config)
	spec := &d.Spec.Template.Spec
	spec.NodeSelector = c.NodeSelector
	spec.Tolerations = c.Tolerations
	if n := len(spec.Containers); n != 1 {
		return fmt.Errorf("found %d containers, want 1", n)
	}
	container := &spec.Containers[0]
	container.Image = c.image(p)
	c.resources(p).apply(&container.Resources)
	container.ImagePullPolicy = corev1.PullIfNotPresent // released tags do not move
	// A controller that refuses a setting says so in its log and ends; this puts
	// the log's end where we can read it.
	container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	for i := range container.Ports {
		if container.Ports[i].ContainerPort == upstreamWebhookPort {
			container.Ports[i].ContainerPort = int32(c.WebhookPort)
		}
	}
	// Webhooks get no traffic before the pod is Ready; upstream asks for the
	// first time after 5 s and then every 10 s.
	container.ReadinessProbe.InitialDelaySeconds = 1
	container.ReadinessProbe.PeriodSeconds = 2
	container.ReadinessProbe.FailureThreshold = 5
	return nil
}

// image is what the release's pods run: the official name under ImageRepository.
func (c Config) image(p part) string {
	return c.ImageRepository + "/" + string(p) + "/" + string(p) + ":" + c.version(p)
}

// configMap puts the release's configuration file in place.
func configMap(c Config, p part, cm *corev1.ConfigMap) error {
	if _, ok := cm.Data[configFile]; !ok {
		return fmt.Errorf("there is no %s in it", configFile)
	}
	text, err := c.file(p)
	if err != nil {
		return err
	}
	cm.Data[configFile] = string(text)
	return nil
}
