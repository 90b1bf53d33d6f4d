package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Where the controllers listen when their configuration does not say.
const (
	defaultHealth     = ":8081"
	defaultMetrics    = ":8443"
	defaultWebhook    = 9443
	defaultVisibility = 8082
	// defaultCertDir is where both look for the webhook's certificate.
	defaultCertDir = "/tmp/k8s-webhook-server/serving-certs"
	// visibilityDir is where a Kueue built for the sandbox keeps the
	// certificate of its visibility server, relative to its work directory
	// (linked in: -X sigs.k8s.io/kueue/pkg/visibility.certDir=...). A stock
	// binary wants /visibility, at the root of the machine.
	visibilityDir = "sandbox-visibility"
)

// configure takes the command line of the container, and rewrites the
// configuration file that it names: same controller, same settings, but on
// loopback ports of its own.
func (l *launch) configure(binary string) error {
	var overrides []string
	file := ""
	args := slices.Concat(l.run.container.Command[min(1, len(l.run.container.Command)):], l.run.container.Args)
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch name {
		case "config":
			if !joined && i+1 < len(args) {
				i++
				value = args[i]
			}
			file = value
		case "metrics-bind-address", "health-probe-bind-address", "leader-elect":
			overrides = append(overrides, name, value)
		default:
			l.args = append(l.args, l.volumes.rewrite(args[i]))
		}
	}
	if file == "" {
		return fmt.Errorf("container %s of pod %s/%s has no --config argument: the sandbox cannot give %s ports of its own", l.run.container.Name, l.run.pod.Namespace, l.run.pod.Name, binary)
	}
	b, err := os.ReadFile(l.volumes.rewrite(file))
	if err != nil {
		return fmt.Errorf("reading %s of pod %s/%s (is its ConfigMap mounted?): %w", file, l.run.pod.Namespace, l.run.pod.Name, err)
	}
	var c settings
	if err := yaml.Unmarshal(b, &c); err != nil {
		return fmt.Errorf("reading %s of pod %s/%s: %w", file, l.run.pod.Namespace, l.run.pod.Name, err)
	}
	for i := 0; i < len(overrides); i += 2 {
		switch overrides[i] {
		case "metrics-bind-address":
			c.section("metrics")["bindAddress"] = overrides[i+1]
		case "health-probe-bind-address":
			c.section("health")["healthProbeBindAddress"] = overrides[i+1]
		}
	}
	if err := l.rewriteConfig(binary, c); err != nil {
		return err
	}
	if b, err = yaml.Marshal(c); err != nil {
		return err
	}
	own := filepath.Join(l.run.dir, "config.yaml")
	if err := os.WriteFile(own, b, 0o600); err != nil {
		return err
	}
	l.args = append(l.args, "--config="+own)
	return nil
}

// settings is a controller's configuration, of whatever version.
type settings map[string]any

func (c settings) section(name string) settings {
	if s, ok := c[name].(map[string]any); ok {
		return s
	}
	s := map[string]any{}
	c[name] = s
	return s
}

func (l *launch) rewriteConfig(binary string, c settings) error {
	for _, a := range []struct{ section, key, byDefault string }{
		{"health", "healthProbeBindAddress", defaultHealth},
		{"metrics", "bindAddress", defaultMetrics},
	} {
		s := c.section(a.section)
		addr, _ := s[a.key].(string)
		if addr == "" {
			addr = a.byDefault
		}
		if addr == "0" {
			continue // switched off
		}
		_, p, err := net.SplitHostPort(addr)
		if err != nil {
			return fmt.Errorf("%s.%s of %s: %w", a.section, a.key, binary, err)
		}
		port, err := strconv.Atoi(p)
		if err != nil {
			return fmt.Errorf("%s.%s of %s: %w", a.section, a.key, binary, err)
		}
		local, err := l.local(port)
		if err != nil {
			return err
		}
		s[a.key] = fmt.Sprintf("127.0.0.1:%d", local)
	}
	hook := c.section("webhook")
	local, err := l.local(number(hook["port"], defaultWebhook))
	if err != nil {
		return err
	}
	hook["port"], hook["host"] = local, "127.0.0.1"
	certs, _ := hook["certDir"].(string)
	if certs == "" {
		certs = defaultCertDir
	}
	hook["certDir"] = filepath.Join(l.volumes.root, certs)
	// A lone controller needs no election, and would wait at every restart for
	// the lease of the process before it. Outside a pod, an election has to be
	// told its namespace.
	if election := c.section("leaderElection"); l.run.replicas > 1 {
		election["resourceNamespace"] = l.run.pod.Namespace
	} else {
		election["leaderElect"] = false
	}
	delete(c, "pprofBindAddress")
	if binary == "kueue" {
		return l.rewriteKueue(c)
	}
	managed, given := c.section("internalCertManagement")["enable"].(bool)
	l.marker = managed || !given
	return nil
}

func (l *launch) rewriteKueue(c settings) error {
	if c["namespace"] == nil {
		c["namespace"] = l.run.pod.Namespace
	}
	// An older one listens on every address of the machine, and no setting tells
	// it otherwise.
	if l.older || !l.run.k.cp.visibility() {
		c.section("featureGates")["VisibilityOnDemand"] = false
		return nil
	}
	v := c.section("visibilityServer")
	local, err := l.local(number(v["bindPort"], defaultVisibility))
	if err != nil {
		return err
	}
	v["bindPort"], v["bindAddress"] = local, "127.0.0.1"
	return nil
}

func number(v any, byDefault int) int {
	switch n := v.(type) {
	case float64:
		return int(n)
	case int64:
		return int(n)
	case int:
		return n
	}
	return byDefault
}

// visibility tells whether the Kueue binary can serve pending workloads from a
// sandbox: whether it was linked with visibilityDir.
func (cp *ControlPlane) visibility() bool {
	cp.visibilityOnce.Do(func() {
		found, err := contains(cp.cfg.Binaries["kueue"], visibilityDir)
		cp.visibilityOK = err == nil && found
		if !cp.visibilityOK {
			cp.log.Warn("Kueue's visibility API is off: its binary was not linked for a sandbox", "binary", cp.cfg.Binaries["kueue"])
		}
	})
	return cp.visibilityOK
}

func contains(file, text string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	buf, kept := make([]byte, 1<<20), 0
	for {
		n, err := f.Read(buf[kept:])
		if bytes.Contains(buf[:kept+n], []byte(text)) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		// A text may lie across two reads.
		tail := min(len(text), kept+n)
		copy(buf, buf[kept+n-tail:kept+n])
		kept = tail
	}
}

// jobSetMarker is a file that JobSet's certificate manager waits for, at a
// place that no setting moves; its content does not matter, as the webhook
// server reads the pod's own directory. It exists, empty, only from the moment
// when the pod's certificate is there until the pod is ready, because the place
// belongs to the whole machine.
const jobSetMarker = defaultCertDir + "/tls.crt"

func (l *launch) mark() error {
	if !l.marker {
		return nil
	}
	if _, err := os.Stat(filepath.Join(l.volumes.root, jobSetMarker)); err != nil {
		return nil // no certificate yet
	}
	if err := os.MkdirAll(filepath.Dir(jobSetMarker), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(jobSetMarker, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// cleanUp removes the marker, unless somebody keeps a real certificate there.
func (l *launch) cleanUp() {
	if !l.marker {
		return
	}
	l.marker = false
	if fi, err := os.Lstat(jobSetMarker); err != nil || fi.Size() != 0 {
		return
	}
	_ = os.Remove(jobSetMarker)
	_ = os.Remove(filepath.Dir(jobSetMarker)) // only if empty
	_ = os.Remove(filepath.Dir(filepath.Dir(jobSetMarker)))
}
