// Package contexts is the file in which a user names clusters, so that commands
// need not be told each time. It knows the file, and neither commands nor
// clusters.
package contexts

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"
	"sigs.k8s.io/yaml"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/near"
)

// Variable names another file than the usual one.
const Variable = "TPUCTL_CONFIG"

// Context says where a cluster is. Fields are as the flags of their names.
type Context struct {
	Cluster     string `json:"cluster,omitempty"`
	Project     string `json:"project,omitempty"`
	Location    string `json:"location,omitempty"`
	KubeContext string `json:"kube-context,omitempty"`
	Kubeconfig  string `json:"kubeconfig,omitempty"`
	// Namespace is where jobs are, where a command does not say.
	Namespace string `json:"namespace,omitempty"`
	// Aliases are short names for the settings of programs (--set), beside those
	// of a job file.
	Aliases map[string]string `json:"aliases,omitempty"`
}

// File is what the file holds.
type File struct {
	Current  string             `json:"current,omitempty"` // used where nothing else is said; "" = none
	Contexts map[string]Context `json:"contexts,omitempty"`
}

// Names are those of the contexts, in order.
func (f File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// UnknownError is a context that the file has not.
type UnknownError struct {
	Name, Path string
	Known      []string
}

func (e *UnknownError) Error() string {
	has := "it has none; tpuctl config set makes one"
	if len(e.Known) > 0 {
		has = "it has " + strings.Join(e.Known, ", ")
	}
	if hint := near.Hint(e.Name, e.Known); hint != "" {
		return fmt.Sprintf("there is no context %q in %s%s", e.Name, e.Path, hint)
	}
	return fmt.Sprintf("there is no context %q in %s; %s", e.Name, e.Path, has)
}

// Get finds a context by name.
func (f File) Get(name, path string) (Context, error) {
	c, ok := f.Contexts[name]
	if !ok {
		return Context{}, &UnknownError{Name: name, Path: path, Known: f.Names()}
	}
	return c, nil
}

// Path is where the file is: what Variable says, else tpuctl/config.yaml in the
// user's folder for configuration, which each system has at another place.
func Path() (string, error) {
	if p := os.Getenv(Variable); p != "" {
		return filepath.Abs(p)
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("finding the folder for tpuctl's configuration: %w; name a file by %s", err, Variable)
	}
	return filepath.Join(dir, "tpuctl", "config.yaml"), nil
}

// Load reads the file. One that is not there is empty.
func Load(path string) (File, error) {
	var f File
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = yaml.UnmarshalStrict(text, &f)
	}
	if err != nil {
		return File{}, fmt.Errorf("reading tpuctl's configuration %s: %w; mend the file, or remove it", path, err)
	}
	return f, nil
}

// Change reads the file, lets do change it, and writes it so that others see
// either the old one or the new one, and nobody else may read it. Of two changes
// at a time, one waits for the other.
func Change(path string, do func(*File) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the folder of tpuctl's configuration: %w", err)
	}
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("waiting for the lock of tpuctl's configuration %s: %w", path, err)
	}
	defer func() { _ = lock.Unlock() }()
	f, err := Load(path)
	if err != nil {
		return err
	}
	if f.Contexts == nil {
		f.Contexts = map[string]Context{}
	}
	if err := do(&f); err != nil {
		return err
	}
	text, err := yaml.Marshal(f)
	if err != nil {
		return fmt.Errorf("encoding tpuctl's configuration: %w", err)
	}
	if err := replace(path, text); err != nil {
		return fmt.Errorf("writing tpuctl's configuration %s: %w", path, err)
	}
	return nil
}

func replace(path string, text []byte) error {
	// A file that is a link elsewhere stays one.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), ".config-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = fresh.Write(text)
	if err == nil {
		err = fresh.Sync()
	}
	if closeErr := fresh.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		_ = os.Remove(fresh.Name())
	}
	return err
}
