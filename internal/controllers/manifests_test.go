package controllers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What is embedded is what tools/manifests rendered: nobody edited it.
func TestManifestsMatchTheirChecksums(t *testing.T) {
	sums, err := manifests.ReadFile("manifests/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		want[name] = sum
	}
	got := map[string]string{}
	for _, pair := range pairs {
		for p, version := range map[part]string{jobSet: pair.jobSet, kueue: pair.kueue} {
			text, err := p.text(version)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(text)
			got[p.file(version)] = hex.EncodeToString(sum[:])
			if !bytes.Contains(text, []byte("image: registry.k8s.io/"+string(p)+"/"+string(p)+":"+version+"\n")) {
				t.Errorf("%s %s does not name its released image", p.title(), version)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run `make manifests` (-SHA256SUMS +embedded):\n%s", diff)
	}
}

// The number of objects per kind, as published: a release that adds one must
// be looked at, not slip in.
func TestManifestsHoldTheKnownObjects(t *testing.T) {
	want := map[string]map[string]int{
		"jobset v0.12.0": {
			"ClusterRole": 3, "ClusterRoleBinding": 3, "ConfigMap": 1, "CustomResourceDefinition": 1, "Deployment": 1,
			"MutatingWebhookConfiguration": 1, "Namespace": 1, "Role": 2, "RoleBinding": 2, "Secret": 1, "Service": 2,
			"ServiceAccount": 1, "ValidatingWebhookConfiguration": 1,
		},
		"jobset v0.10.1": {
			"ClusterRole": 3, "ClusterRoleBinding": 3, "ConfigMap": 1, "CustomResourceDefinition": 1, "Deployment": 1,
			"MutatingWebhookConfiguration": 1, "Namespace": 1, "Role": 1, "RoleBinding": 1, "Secret": 1, "Service": 2,
			"ServiceAccount": 1, "ValidatingWebhookConfiguration": 1,
		},
		"kueue v0.19.0": {
			"APIService": 2, "ClusterRole": 47, "ClusterRoleBinding": 2, "ConfigMap": 1, "CustomResourceDefinition": 11, "Deployment": 1,
			"MutatingWebhookConfiguration": 1, "Namespace": 1, "Role": 3, "RoleBinding": 4, "Secret": 1, "Service": 3,
			"ServiceAccount": 1, "ValidatingWebhookConfiguration": 1,
		},
		"kueue v0.15.2": {
			"APIService": 2, "ClusterRole": 41, "ClusterRoleBinding": 2, "ConfigMap": 1, "CustomResourceDefinition": 11, "Deployment": 1,
			"MutatingWebhookConfiguration": 1, "Namespace": 1, "Role": 3, "RoleBinding": 4, "Secret": 1, "Service": 3,
			"ServiceAccount": 1, "ValidatingWebhookConfiguration": 1,
		},
	}
	for release, want := range want {
		name, version, _ := strings.Cut(release, " ")
		p := part(name)
		objs, err := p.objects(version)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, obj := range objs {
			got[obj.GetKind()]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", release, diff)
		}
		for _, name := range []string{p.namespace(), p.deployment(), p.validating(), p.mutating(), definition[p]} {
			found := false
			for _, obj := range objs {
				found = found || obj.GetName() == name
			}
			if !found {
				t.Errorf("%s has no object named %s", release, name)
			}
		}
	}
}

// Every kind that is embedded is installed in some stage.
func TestStagesCoverEveryObject(t *testing.T) {
	objs, err := Objects(Config{})
	if err != nil {
		t.Fatal(err)
	}
	staged := 0
	for _, s := range stages(objs) {
		staged += len(s.objects)
	}
	if staged != len(objs) {
		t.Errorf("%d of %d objects are in a stage", staged, len(objs))
	}
}

// Every framework that can be asked for has webhooks in the releases that are
// said to have it, and no other job type of Kueue's is left unnamed.
func TestFrameworksAreThoseOfTheReleases(t *testing.T) {
	for _, pair := range pairs {
		objs, err := kueue.originals(pair.kueue)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, obj := range kinds(objs, "MutatingWebhookConfiguration") {
			hooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
			for _, h := range hooks {
				rules, _, _ := unstructured.NestedSlice(h.(map[string]any), "rules")
				group := rules[0].(map[string]any)["apiGroups"].([]any)[0].(string)
				plural := rules[0].(map[string]any)["resources"].([]any)[0].(string)
				switch {
				case group == "kueue.x-k8s.io":
				case group == "" || group == "apps":
					got[strings.TrimSuffix(plural, "s")] = true
				default:
					got[group+"/"+strings.TrimSuffix(plural, "s")] = true
				}
			}
		}
		want := map[string]bool{}
		for _, f := range slices.Concat(Frameworks, podBased) {
			want[f] = true
		}
		for f, since := range more {
			if !older(pair.kueue, since) {
				want[f] = true
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Kueue %s (-want +got):\n%s", pair.kueue, diff)
		}
	}
}

// Every definition is emptied before it is removed.
func TestRemovalOrderCoversEveryDefinition(t *testing.T) {
	objs, err := Objects(Config{})
	if err != nil {
		t.Fatal(err)
	}
	ordered := map[string]bool{}
	for _, names := range removalOrder {
		for _, name := range names {
			ordered[name] = true
		}
	}
	for _, crd := range kinds(objs, "CustomResourceDefinition") {
		gvk := stored(crd)
		if !ordered[gvk.Kind] {
			t.Errorf("removalOrder lacks %v", gvk)
		}
		delete(ordered, gvk.Kind)
	}
	if len(ordered) > 0 {
		t.Errorf("removalOrder has kinds without a definition: %v", ordered)
	}
}
