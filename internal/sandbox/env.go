package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Variable is one environment variable.
type Variable struct{ Name, Value string }

// Environment is what points programs at a sandbox, in the order to show it.
type Environment []Variable

// List is the environment as KEY=value.
func (e Environment) List() []string {
	out := make([]string, len(e))
	for i, v := range e {
		out[i] = v.Name + "=" + v.Value
	}
	return out
}

// Map is the environment by name.
func (e Environment) Map() map[string]string {
	out := make(map[string]string, len(e))
	for _, v := range e {
		out[v.Name] = v.Value
	}
	return out
}

// environment names the sandbox's own kubeconfig only when a cluster exists.
func environment(dir string, a address, token string) Environment {
	e := Environment{
		{"TPU_GKE_ENDPOINT", a.Endpoint},
		{"TPU_COMPUTE_ENDPOINT", a.Endpoint}, // the same port serves all
		{"TPU_STORAGE_ENDPOINT", a.Endpoint},
		{"GOOGLE_OAUTH_ACCESS_TOKEN", token},
		{"GOOGLE_PROJECT", a.Project},
		{"GOOGLE_ZONE", a.Zone},
	}
	kubeconfig := filepath.Join(dir, kubeconfigFile)
	if _, err := os.Stat(kubeconfig); err == nil {
		e = append(e, Variable{"KUBECONFIG", kubeconfig})
	}
	return e
}

// NotRunningError says that no sandbox runs in a folder.
type NotRunningError struct{ Dir string }

func (e *NotRunningError) Error() string {
	return fmt.Sprintf("no sandbox runs in %s", e.Dir)
}

// EnvironmentOf reads the environment of the sandbox that runs in dir, which
// may be another process. *NotRunningError when none does.
func EnvironmentOf(dir string) (Environment, error) {
	if _, running := Running(dir); !running {
		return nil, &NotRunningError{dir}
	}
	a, err := readAddress(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotRunningError{dir} // it is still starting
	}
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the sandbox: %w", err)
	}
	token, err := os.ReadFile(filepath.Join(dir, tokenFile))
	if err != nil {
		return nil, fmt.Errorf("reading the sandbox's token: %w", err)
	}
	return environment(dir, a, strings.TrimSpace(string(token))), nil
}
