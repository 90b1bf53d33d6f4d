package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// launch is one start of a pod's process: its command line, the files it sees
// and the loopback ports that stand for the pod's.
type launch struct {
	run     *podRun
	volumes *volumes
	path    string
	older   bool // than the program in Config.Binaries
	args    []string
	env     []string
	work    string
	ports   map[int]int // pod port -> loopback port
	token   string      // path of the service account's token
	marker  bool        // see jobSetMarker
}

// serviceAccountDir is where a container finds its credentials.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// prepare writes everything that the process needs to start.
func (r *podRun) prepare(ctx context.Context) (l *launch, err error) {
	name := binaryOf(r.container.Image)
	l = &launch{run: r, ports: map[int]int{}}
	if l.path, l.older, err = r.k.cp.program(ctx, name, r.container.Image); err != nil {
		return nil, fmt.Errorf("getting a program for image %s: %w", r.container.Image, err)
	}
	if l.path == "" {
		return nil, fmt.Errorf("the sandbox has no binary for image %s", r.container.Image)
	}
	root := filepath.Join(r.dir, "root")
	l.work = root
	tmp := filepath.Join(root, "tmp")
	for _, d := range []string{tmp, filepath.Join(root, serviceAccountDir), filepath.Join(root, visibilityDir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	l.volumes = &volumes{client: r.k.cp.client, pod: r.pod, container: r.container, root: root}
	if err := l.volumes.mount(ctx); err != nil {
		return nil, err
	}
	l.token = filepath.Join(root, serviceAccountDir, "token")
	if err := r.writeToken(ctx, l); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(r.dir, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, r.k.cp.rest.Host, r.k.cp.CA(), &clientcmdapi.AuthInfo{TokenFile: l.token}); err != nil {
		return nil, err
	}
	if r.replicas, err = r.siblings(ctx); err != nil {
		return nil, err
	}
	if err := l.configure(name); err != nil {
		return nil, err
	}
	// Controllers and Kueue's delegated authentication both read this flag.
	l.args = append(l.args, "--"+clientcmd.RecommendedConfigPathFlag+"="+kubeconfig)
	l.env = append(environment(root, tmp), l.containerEnv()...)
	return l, nil
}

// program finds what runs for an image.
func (cp *ControlPlane) program(ctx context.Context, name, image string) (path string, older bool, err error) {
	if cp.cfg.Older != nil {
		image, _, _ = strings.Cut(image, "@")
		tag := image[strings.LastIndexByte(image, ':')+1:]
		if path, err := cp.cfg.Older(ctx, name, tag); path != "" || err != nil {
			return path, true, err
		}
	}
	return cp.cfg.Binaries[name], false, nil
}

// siblings is how many pods like this one its Deployment wants, itself
// included. The ReplicaSet notes it; its own count grows during a roll-out.
func (r *podRun) siblings(ctx context.Context) (int, error) {
	owner := metav1.GetControllerOf(r.pod)
	if owner == nil || owner.Kind != "ReplicaSet" {
		return 1, nil
	}
	rs, err := r.k.cp.client.AppsV1().ReplicaSets(r.pod.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("reading the pod's ReplicaSet: %w", err)
	}
	n, err := strconv.Atoi(rs.Annotations["deployment.kubernetes.io/desired-replicas"])
	if err != nil {
		return 1, nil // not made by a Deployment
	}
	return n, nil
}

// containerEnv is what the pod's author set. Variables that come from elsewhere
// than the pod itself are left out: neither controller uses one.
func (l *launch) containerEnv() []string {
	var env []string
	for _, e := range l.run.container.Env {
		v := e.Value
		if e.ValueFrom != nil {
			if e.ValueFrom.FieldRef == nil {
				continue
			}
			switch e.ValueFrom.FieldRef.FieldPath {
			case "metadata.name":
				v = l.run.pod.Name
			case "metadata.namespace":
				v = l.run.pod.Namespace
			case "spec.nodeName":
				v = l.run.pod.Spec.NodeName
			case "status.podIP":
				v = l.run.ip
			default:
				continue
			}
		}
		env = append(env, e.Name+"="+v)
	}
	return env
}

// writeToken gets a token of the pod's own service account, so that its RBAC
// is what decides.
func (r *podRun) writeToken(ctx context.Context, l *launch) error {
	seconds, sa := int64(tokenLife/time.Second), r.pod.Spec.ServiceAccountName
	if sa == "" {
		sa = "default"
	}
	t, err := r.k.cp.client.CoreV1().ServiceAccounts(r.pod.Namespace).CreateToken(ctx, sa, &authv1.TokenRequest{
		Spec: authv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: r.pod.Name, UID: r.pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("getting a token of service account %s/%s: %w", r.pod.Namespace, sa, err)
	}
	return replaceFile(l.token, []byte(t.Status.Token))
}

// syncSecrets brings the mounted secrets up to date, as a kubelet does.
func (l *launch) syncSecrets(ctx context.Context) error {
	if err := l.volumes.sync(ctx); err != nil {
		return err
	}
	return l.mark()
}

// probeClient checks no certificate, as a kubelet's probe.
var probeClient = &http.Client{
	Timeout: 2 * time.Second,
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as a kubelet
		DialContext:       (&net.Dialer{Timeout: time.Second}).DialContext,
	},
}

// probe is the container's own readiness probe, on the loopback port.
func (l *launch) probe(ctx context.Context) bool {
	p := l.run.container.ReadinessProbe
	if p == nil || p.HTTPGet == nil {
		return l.reachable(ctx)
	}
	port := l.ports[l.portNumber(p)]
	if port == 0 {
		return l.reachable(ctx)
	}
	scheme := "http"
	if p.HTTPGet.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://127.0.0.1:%d/%s", scheme, port, strings.TrimPrefix(p.HTTPGet.Path, "/")), nil)
	if err != nil {
		return false
	}
	resp, err := probeClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode >= 200 && resp.StatusCode < 400
}

func (l *launch) portNumber(p *corev1.Probe) int {
	if p.HTTPGet.Port.StrVal == "" {
		return p.HTTPGet.Port.IntValue()
	}
	for _, c := range l.run.container.Ports {
		if c.Name == p.HTTPGet.Port.StrVal {
			return int(c.ContainerPort)
		}
	}
	return 0
}

// reachable tells whether every port of the container is open.
func (l *launch) reachable(ctx context.Context) bool {
	for _, port := range l.ports {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		c.Close()
	}
	return true
}

// local reserves the loopback port that stands for a port of the pod.
func (l *launch) local(podPort int) (int, error) {
	if p := l.ports[podPort]; p != 0 {
		return p, nil
	}
	p, err := process.FreePort()
	if err != nil {
		return 0, err
	}
	l.ports[podPort] = p
	return p, nil
}
