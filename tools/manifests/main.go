// Command manifests renders the JobSet and Kueue releases that the provider
// embeds: the config/default of each module zip, as its authors ship it, with
// the released image. What the provider changes about them is decided when it
// installs them, never here, so that the files can be compared with upstream's.
//
//	go run . ../../internal/controllers/manifests
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// release is one version of one controller. Sum is the go.sum hash of its
// module zip: what is rendered is what was published, or nothing.
type release struct {
	Name, Module, Version, Sum, Image string
}

var releases = []release{
	{
		Name: "jobset", Module: "sigs.k8s.io/jobset", Version: "v0.12.0",
		Sum:   "h1:YYPuV0px8Ongq/RXmJg6V0w2UC67aiR+rCMD06vhQQQ=",
		Image: "registry.k8s.io/jobset/jobset",
	},
	{
		Name: "kueue", Module: "sigs.k8s.io/kueue", Version: "v0.19.0",
		Sum:   "h1:5yCu85qsJhvUVVxE0Csw546DDBcRwUXpBEOmEFlws34=",
		Image: "registry.k8s.io/kueue/kueue",
	},
	// The newest pair that stores v1beta1.
	{
		Name: "jobset", Module: "sigs.k8s.io/jobset", Version: "v0.10.1",
		Sum:   "h1:u8QKifNsrWVrlRFe6w2ofYTqFT9ma2DRHxfeB2m9xyU=",
		Image: "registry.k8s.io/jobset/jobset",
	},
	{
		Name: "kueue", Module: "sigs.k8s.io/kueue", Version: "v0.15.2",
		Sum:   "h1:UYjEd8lx3Am1njcvpyEO/QkwCFerE6WW6qaaXNYg768=",
		Image: "registry.k8s.io/kueue/kueue",
	},
}

// checksums is the file that lists the SHA-256 of each rendered manifest, in
// the format of sha256sum.
const checksums = "SHA256SUMS"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manifests FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], releases); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(out string, rs []release) error {
	var sums []string
	for _, r := range rs {
		dir, err := r.download()
		if err != nil {
			return err
		}
		text, err := r.render(dir)
		if err != nil {
			return fmt.Errorf("rendering %s %s: %w", r.Module, r.Version, err)
		}
		name := r.Name + "-" + r.Version + ".yaml"
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		sums = append(sums, hex.EncodeToString(sum[:])+"  "+name+"\n")
	}
	slices.Sort(sums)
	return os.WriteFile(filepath.Join(out, checksums), []byte(strings.Join(sums, "")), 0o644)
}

// download puts the module in the module cache and returns its folder there.
func (r release) download() (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", r.Module+"@"+r.Version)
	cmd.Dir = os.TempDir() // outside any module: the version is exactly ours
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	var got struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(text, &got); jsonErr != nil {
		return "", fmt.Errorf("downloading %s %s: %w", r.Module, r.Version, errors.Join(err, errors.New(stderr.String())))
	}
	if err != nil || got.Error != "" {
		return "", fmt.Errorf("downloading %s %s: %s", r.Module, r.Version, got.Error)
	}
	if got.Sum != r.Sum {
		return "", fmt.Errorf("%s %s has hash %s, want %s: not the release this was written for", r.Module, r.Version, got.Sum, r.Sum)
	}
	return got.Dir, nil
}

// render builds config/default as its authors ship it and sets the released
// image; the module's own kustomization may name a staging image.
func (r release) render(dir string) ([]byte, error) {
	opts := krusty.MakeDefaultOptions()
	opts.LoadRestrictions = types.LoadRestrictionsRootOnly
	resources, err := krusty.MakeKustomizer(opts).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "config", "default"))
	if err != nil {
		return nil, err
	}
	var docs [][]byte
	images := 0
	for _, res := range resources.Resources() {
		obj, err := res.Map()
		if err != nil {
			return nil, err
		}
		if obj["kind"] == "Deployment" {
			images += setImages(obj, r.Image+":"+r.Version)
		}
		text, err := yaml.Marshal(obj)
		if err != nil {
			return nil, err
		}
		docs = append(docs, text)
	}
	if images != 1 {
		return nil, fmt.Errorf("found %d containers in Deployments, want 1", images)
	}
	head := fmt.Sprintf("# %s %s (Apache-2.0), config/default, rendered by tools/manifests. Do not edit.\n", r.Module, r.Version)
	return append([]byte(head), bytes.Join(docs, []byte("---\n"))...), nil
}

// setImages sets the image of a Deployment's containers and returns how many.
func setImages(deployment map[string]any, image string) int {
	value := any(deployment)
	for _, key := range []string{"spec", "template", "spec", "containers"} {
		m, ok := value.(map[string]any)
		if !ok {
			return 0
		}
		value = m[key]
	}
	containers, _ := value.([]any)
	for _, c := range containers {
		c.(map[string]any)["image"] = image
	}
	return len(containers)
}
