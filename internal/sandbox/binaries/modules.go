// Package binaries builds the programs that the sandbox runs, from modules
// whose every dependency is pinned and whose go.mod and go.sum are part of this
// binary: it takes Go and nothing else, no checkout. What is built is kept in
// the user's cache and built once. It knows how to build, never how to run.
package binaries

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
)

// The copies exist because a go:embed pattern cannot leave its own folder, and
// a folder that holds a file named go.mod cannot be embedded at all.
//
//go:generate cp ../../../tools/controlplane/go.mod modules/controlplane.mod.txt
//go:generate cp ../../../tools/controlplane/go.sum modules/controlplane.sum.txt
//go:generate cp ../../../tools/controllers-older/go.mod modules/controllers-older.mod.txt
//go:generate cp ../../../tools/controllers-older/go.sum modules/controllers-older.sum.txt
//go:generate cp ../../../tools/opentofu/go.mod modules/opentofu.mod.txt
//go:generate cp ../../../tools/opentofu/go.sum modules/opentofu.sum.txt
var (
	//go:embed modules/controlplane.mod.txt
	controlPlaneMod []byte
	//go:embed modules/controlplane.sum.txt
	controlPlaneSum []byte
	//go:embed modules/controllers-older.mod.txt
	olderControllersMod []byte
	//go:embed modules/controllers-older.sum.txt
	olderControllersSum []byte
	//go:embed modules/opentofu.mod.txt
	openTofuMod []byte
	//go:embed modules/opentofu.sum.txt
	openTofuSum []byte
)

// KubernetesVersion is what the control plane says it is. It is linked in:
// Kueue refuses to talk to a server whose version it cannot parse, and without
// it every Kubernetes binary calls itself v0.0.0-master.
const KubernetesVersion = "v1.36.2"

// target is one program of a module.
type target struct {
	name string // of the file
	pkg  string // import path of its main package
}

// module is a set of programs built from one pinned go.mod and go.sum.
type module struct {
	name     string
	mod, sum []byte
	ldflags  string
	targets  []target
}

// The order is that of their need for time: the longest first, so that the
// display starts with the worst and speeds up.
var controlPlane = module{
	name: "controlplane",
	mod:  controlPlaneMod,
	sum:  controlPlaneSum,
	ldflags: "-s -w" +
		" -X k8s.io/component-base/version.gitVersion=" + KubernetesVersion +
		" -X k8s.io/component-base/version.gitMajor=1" +
		" -X k8s.io/component-base/version.gitMinor=36" +
		" -X k8s.io/client-go/pkg/version.gitVersion=" + KubernetesVersion +
		kueueCertDir,
	targets: []target{
		{"etcd", "go.etcd.io/etcd/server/v3"},
		{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
		{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
		{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
		{"kwok", "sigs.k8s.io/kwok/cmd/kwok"},
		{"jobset", "sigs.k8s.io/jobset"},
		{"kueue", "sigs.k8s.io/kueue/cmd/kueue"},
	},
}

// kueueCertDir is where Kueue keeps its visibility server's certificate,
// relative to its work directory: otherwise it is the machine's root.
const kueueCertDir = " -X sigs.k8s.io/kueue/pkg/visibility.certDir=sandbox-visibility"

// OlderImages are the images whose programs OlderControllers builds.
var OlderImages = map[string]string{"jobset": "v0.10.1", "kueue": "v0.15.2"}

// olderControllers are the releases from which clusters are upgraded. They need
// older Kubernetes libraries than the control plane, so a module of their own.
var olderControllers = module{
	name:    "controllers-older",
	mod:     olderControllersMod,
	sum:     olderControllersSum,
	ldflags: "-s -w" + kueueCertDir,
	targets: []target{{"kueue", "sigs.k8s.io/kueue/cmd/kueue"}, {"jobset", "sigs.k8s.io/jobset"}},
}

var openTofu = module{
	name:    "opentofu",
	mod:     openTofuMod,
	sum:     openTofuSum,
	ldflags: "-s -w -X github.com/opentofu/opentofu/version.dev=no",
	targets: []target{{"tofu", "github.com/opentofu/opentofu/cmd/tofu"}},
}

// flags are the arguments of go build but for the output and the package.
func (m module) flags() []string {
	return []string{"-trimpath", "-buildvcs=false", "-ldflags", m.ldflags}
}

// folder names the module's folder in the cache. Whatever can change the
// result changes the name, so what lies there is never stale.
func (m module) folder(goVersion, goos, goarch string) string {
	h := sha256.New()
	for _, part := range []string{
		string(m.mod), string(m.sum), strings.Join(m.flags(), "\x00"),
		goVersion, goos, goarch, fmt.Sprint(m.targets),
	} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return m.name + "-" + hex.EncodeToString(h.Sum(nil))[:16]
}
