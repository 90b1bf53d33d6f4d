package controllers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of Config.
const (
	// DefaultWebhookPort is open from a private GKE control plane to its nodes
	// without a firewall rule; the upstream 9443 is not.
	DefaultWebhookPort = 10250

	// DefaultRegistry is where the releases are published.
	DefaultRegistry = "registry.k8s.io"

	// DefaultPodsReadyTimeout is how long an admitted job may wait for all its
	// pods: 7 days, as long as Google lets a flex-start request wait. Kueue's
	// own 30 minutes would evict a job that waits for nodes, cancel its request
	// for capacity, and start again at the end of the line.
	DefaultPodsReadyTimeout = 7 * 24 * time.Hour

	// DefaultRecoveryTimeout is how long a running job may miss a pod before it
	// gives its quota back: GKE replaces a preempted host within minutes when
	// there is capacity, and a job that waits longer should let others run.
	DefaultRecoveryTimeout = time.Hour
)

// Config says what to install and how. The zero value of a field means its
// default; WithDefaults fills them in. It is stored, as JSON, on the cluster.
type Config struct {
	JobSet JobSetConfig `json:"jobset"`
	Kueue  KueueConfig  `json:"kueue"`

	// ImageRepository replaces registry.k8s.io in image names, for clusters
	// that pull through a mirror: R/jobset/jobset:v0.12.0, R/kueue/kueue:v0.19.0.
	ImageRepository string `json:"imageRepository,omitempty"`

	// WebhookPort is the port that the controllers' pods serve webhooks on.
	WebhookPort int `json:"webhookPort,omitempty"`

	// MaxHosts is how many TPU hosts the cluster will have at most: both
	// controllers get memory and CPU for them. 0 keeps the releases' own sizes.
	MaxHosts int `json:"maxHosts,omitempty"`

	// NodeSelector and Tolerations place the controllers' pods.
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`

	// NoPriorities leaves out the five default priorities.
	NoPriorities bool `json:"noPriorities,omitempty"`
}

// JobSetConfig configures the JobSet release.
type JobSetConfig struct {
	Disabled  bool      `json:"disabled,omitempty"`  // somebody else installs it
	Version   string    `json:"version,omitempty"`   // JobSetVersion
	Replicas  int       `json:"replicas,omitempty"`  // 1; one leads, the others stand by and serve webhooks
	Resources Resources `json:"resources,omitzero"`  // instead of what MaxHosts gives
	ClientQPS float32   `json:"clientQPS,omitempty"` // requests a second to the API server; 0 means the release's
	Burst     int32     `json:"burst,omitempty"`     // requests in a moment

	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// KueueConfig configures the Kueue release.
type KueueConfig struct {
	Disabled  bool      `json:"disabled,omitempty"`
	Version   string    `json:"version,omitempty"` // KueueVersion
	Replicas  int       `json:"replicas,omitempty"`
	Resources Resources `json:"resources,omitzero"`
	ClientQPS float32   `json:"clientQPS,omitempty"`
	Burst     int32     `json:"burst,omitempty"`

	// Frameworks are the kinds of jobs that Kueue manages; see Frameworks.
	Frameworks []string `json:"frameworks,omitempty"`

	// PodsReadyTimeout and RecoveryTimeout are Kueue's waitForPodsReady; see
	// DefaultPodsReadyTimeout and DefaultRecoveryTimeout for why.
	PodsReadyTimeout metav1.Duration `json:"podsReadyTimeout,omitzero"`
	RecoveryTimeout  metav1.Duration `json:"recoveryTimeout,omitzero"`

	// Requeue is what becomes of a job whose pods were not ready in time.
	Requeue Requeue `json:"requeue,omitzero"`

	// BlockAdmission admits one job at a time: the next one waits until all pods
	// of the one before are ready.
	BlockAdmission bool `json:"blockAdmission,omitempty"`

	// FairSharing shares idle quota of a cohort by weight rather than by age;
	// FairSharingPreemption says which preemptions keep it fair.
	FairSharing           bool     `json:"fairSharing,omitempty"`
	FairSharingPreemption []string `json:"fairSharingPreemption,omitempty"`

	// AdmissionFairSharing orders the jobs of a queue by what their namespaces
	// used before; nil is off.
	AdmissionFairSharing *AdmissionFairSharing `json:"admissionFairSharing,omitempty"`

	// ManageJobsWithoutQueue holds back jobs that name no queue.
	ManageJobsWithoutQueue bool `json:"manageJobsWithoutQueue,omitempty"`

	// NamespaceSelector narrows the namespaces whose jobs Kueue's webhooks see.
	// System namespaces are left out in any case.
	NamespaceSelector map[string]string `json:"namespaceSelector,omitempty"`

	// ExcludedResources are prefixes of resources that no queue counts.
	ExcludedResources []string `json:"excludedResources,omitempty"`

	// BlockUndeclared keeps a job from being admitted that requests a resource
	// which its queue does not declare, cpu and memory included.
	BlockUndeclared bool `json:"blockUndeclared,omitempty"`

	// NoVisibility leaves out the aggregated API that tells the order of waiting
	// jobs.
	NoVisibility bool `json:"noVisibility,omitempty"`

	// QueueMetrics exports usage and quota of each queue as metrics.
	QueueMetrics bool `json:"queueMetrics,omitempty"`

	// KeepFinished is how long the workload of a finished job stays; nil is for
	// as long as the job.
	KeepFinished *metav1.Duration `json:"keepFinished,omitempty"`

	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// Requeue bounds how often and how soon a job is admitted again.
type Requeue struct {
	Limit      *int32          `json:"limit,omitempty"`     // then it is deactivated; nil is for ever
	Backoff    metav1.Duration `json:"backoff,omitzero"`    // before the first time, doubled each time; 0 means Kueue's 60 s
	MaxBackoff metav1.Duration `json:"maxBackoff,omitzero"` // 0 means Kueue's hour
}

// AdmissionFairSharing weighs past usage less the older it is.
type AdmissionFairSharing struct {
	HalfLife metav1.Duration `json:"halfLife"`
	Sampling metav1.Duration `json:"sampling"`
}

// WithDefaults returns c with every zero value that has a default filled in.
func (c Config) WithDefaults() Config {
	if c.ImageRepository == "" {
		c.ImageRepository = DefaultRegistry
	}
	c.ImageRepository = strings.TrimSuffix(c.ImageRepository, "/")
	if c.WebhookPort == 0 {
		c.WebhookPort = DefaultWebhookPort
	}
	c.JobSet.Version, c.Kueue.Version = c.version(jobSet), c.version(kueue)
	if c.JobSet.Replicas == 0 {
		c.JobSet.Replicas = 1
	}
	if c.Kueue.Replicas == 0 {
		c.Kueue.Replicas = 1
	}
	if c.Kueue.PodsReadyTimeout.Duration == 0 {
		c.Kueue.PodsReadyTimeout.Duration = DefaultPodsReadyTimeout
	}
	if c.Kueue.RecoveryTimeout.Duration == 0 {
		c.Kueue.RecoveryTimeout.Duration = DefaultRecoveryTimeout
	}
	return c
}

// Hash identifies what an install with c writes: the configuration and the
// manifests of this build. Two equal hashes mean that nothing is to be done.
func (c Config) Hash() (string, error) {
	text, err := json.Marshal(c.WithDefaults())
	if err != nil {
		return "", fmt.Errorf("encoding the controllers' configuration: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "rendering %d\n%s\n", rendering, text)
	for _, p := range c.parts() {
		sum, err := p.sum(c.version(p))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %s\n", p, sum)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// parts lists the enabled releases in the order of installation: JobSet first,
// because Kueue watches JobSets.
func (c Config) parts() []part {
	var ps []part
	if !c.JobSet.Disabled {
		ps = append(ps, jobSet)
	}
	if !c.Kueue.Disabled {
		ps = append(ps, kueue)
	}
	return ps
}

func (c Config) replicas(p part) int {
	if p == jobSet {
		return c.JobSet.Replicas
	}
	return c.Kueue.Replicas
}
