package controllers

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// manifests holds what tools/manifests rendered (make manifests).
//
//go:embed manifests/*.yaml manifests/SHA256SUMS
var manifests embed.FS

// part is one of the two releases.
type part string

const (
	jobSet part = "jobset"
	kueue  part = "kueue"
)

// Names that the official manifests give their objects.
func (p part) namespace() string  { return string(p) + "-system" }
func (p part) deployment() string { return string(p) + "-controller-manager" }
func (p part) configMap() string  { return string(p) + "-manager-config" }
func (p part) validating() string { return string(p) + "-validating-webhook-configuration" }
func (p part) mutating() string   { return string(p) + "-mutating-webhook-configuration" }

// title is how messages name the release.
func (p part) title() string {
	if p == jobSet {
		return "JobSet"
	}
	return "Kueue"
}

// file names the manifests of a release.
func (p part) file(version string) string { return string(p) + "-" + version + ".yaml" }

func (p part) text(version string) ([]byte, error) {
	return manifests.ReadFile("manifests/" + p.file(version))
}

// parsed keeps each release's objects by file: parsing 2.5 MB of YAML takes a
// second, and one run may install on several clusters.
var parsed sync.Map // of func() ([]*unstructured.Unstructured, error)

func (p part) originals(version string) ([]*unstructured.Unstructured, error) {
	once, _ := parsed.LoadOrStore(p.file(version), sync.OnceValues(func() ([]*unstructured.Unstructured, error) {
		return p.parse(version)
	}))
	return once.(func() ([]*unstructured.Unstructured, error))()
}

// objects returns a release as published, a copy that the caller may change.
func (p part) objects(version string) ([]*unstructured.Unstructured, error) {
	originals, err := p.originals(version)
	if err != nil {
		return nil, err
	}
	copies := make([]*unstructured.Unstructured, len(originals))
	for i, o := range originals {
		copies[i] = o.DeepCopy()
	}
	return copies, nil
}

func (p part) parse(version string) ([]*unstructured.Unstructured, error) {
	text, err := p.text(version)
	if err != nil {
		return nil, fmt.Errorf("reading the embedded %s manifests: %w", p.title(), err)
	}
	var all []*unstructured.Unstructured
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the embedded %s manifests: %w", p.title(), err)
		}
		// JSON in between: objects then hold int64 and float64 only, as the
		// API machinery wants.
		asJSON, err := yaml.YAMLToJSON(doc)
		if err != nil {
			return nil, fmt.Errorf("reading the embedded %s manifests: %w", p.title(), err)
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(asJSON); err != nil {
			return nil, fmt.Errorf("reading the embedded %s manifests: %w", p.title(), err)
		}
		all = append(all, obj)
	}
}

// sum is the SHA-256 of a release's manifests.
func (p part) sum(version string) (string, error) {
	text, err := p.text(version)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
