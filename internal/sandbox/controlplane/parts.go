package controlplane

import (
	"fmt"
	"os"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

func (f *files) part(name string, grace time.Duration, args ...string) *part {
	return &part{grace: grace, spec: process.Spec{Name: name, Args: args, Dir: f.dir, Env: environment(f.dir, "")}}
}

// environment is all that a child sees: credentials and proxy settings of the
// caller stay out.
func environment(home, tmp string) []string {
	if tmp == "" {
		tmp = os.TempDir()
	}
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + tmp}
}

func etcd(f *files) *part {
	client, peer := fmt.Sprintf("https://127.0.0.1:%d", f.etcdPort), fmt.Sprintf("https://127.0.0.1:%d", f.peerPort)
	return f.part("etcd", 3*time.Second,
		"--name=default",
		"--data-dir="+f.path("etcd"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		// A member keeps the peer address of its first start; nobody dials it.
		"--client-cert-auth", "--trusted-ca-file="+f.pki.cert("etcd-ca"),
		"--cert-file="+f.pki.cert("etcd"), "--key-file="+f.pki.key("etcd"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file="+f.pki.cert("etcd-ca"),
		"--peer-cert-file="+f.pki.cert("etcd"), "--peer-key-file="+f.pki.key("etcd"),
		// Data has to survive the process, not the machine's power.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	)
}

func apiserver(f *files) *part {
	// Asked to end, it waits for its watches to close, up to a minute; all it
	// knows is in etcd.
	return f.part("kube-apiserver", 2*time.Second,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", f.apiPort),
		"--tls-cert-file="+f.pki.cert("apiserver"), "--tls-private-key-file="+f.pki.key("apiserver"),
		"--client-ca-file="+f.pki.cert("ca"),
		"--token-auth-file="+f.path("tokens.csv"),
		"--authorization-mode=RBAC",
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", f.etcdPort),
		"--etcd-cafile="+f.pki.cert("etcd-ca"),
		"--etcd-certfile="+f.pki.cert("etcd-client"), "--etcd-keyfile="+f.pki.key("etcd-client"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+f.pki.key("service-accounts"),
		"--service-account-signing-key-file="+f.pki.key("service-accounts"),
		"--service-cluster-ip-range=10.96.0.0/16",
		// A loopback address is no valid endpoint of the kubernetes service.
		"--endpoint-reconciler-type=none",
		"--enable-aggregator-routing=true",
		"--egress-selector-config-file="+f.path("egress.yaml"),
		"--requestheader-client-ca-file="+f.pki.cert("front-proxy-ca"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+f.pki.cert("front-proxy"), "--proxy-client-key-file="+f.pki.key("front-proxy"),
		"--kubelet-client-certificate="+f.pki.cert("apiserver-kubelet"), "--kubelet-client-key="+f.pki.key("apiserver-kubelet"),
		"--kubelet-preferred-address-types=InternalIP",
		"--max-requests-inflight=3000", "--max-mutating-requests-inflight=1000",
		"--profiling=false",
	)
}

func controllerManager(f *files) *part {
	return f.part("kube-controller-manager", time.Second,
		"--kubeconfig="+f.path("kube-controller-manager.kubeconfig"),
		"--secure-port=0",
		"--leader-elect=false",
		"--service-account-private-key-file="+f.pki.key("service-accounts"),
		"--root-ca-file="+f.pki.cert("ca"),
		"--controllers=*,-horizontal-pod-autoscaler-controller,-persistentvolume-binder-controller,-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller,-node-route-controller,-cloud-node-lifecycle-controller,-service-lb-controller",
		// Simulated nodes send no heartbeats: thousands of leases are load, and a
		// pause of the machine must not make them all NotReady.
		"--node-monitor-grace-period=8760h",
		"--kube-api-qps=2000", "--kube-api-burst=4000",
		"--concurrent-job-syncs=20",
		"--profiling=false",
	)
}

func scheduler(f *files) *part {
	return f.part("kube-scheduler", time.Second,
		"--kubeconfig="+f.path("kube-scheduler.kubeconfig"),
		"--secure-port=0",
		"--leader-elect=false",
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--profiling=false",
	)
}

func kwok(f *files) *part {
	return f.part("kwok", time.Second,
		"--kubeconfig="+f.path("kwok.kubeconfig"),
		"--config="+f.path("kwok.yaml"),
		"--manage-all-nodes=true",
		"--node-lease-duration-seconds=0",
		"--cidr=10.128.0.0/9",
		"--v=WARN", // every write of every pod otherwise
		// No server of its own: it would listen on all interfaces, and the
		// sandbox answers for the kubelets itself.
	)
}
