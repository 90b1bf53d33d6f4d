package controllers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	jobsetconfig "sigs.k8s.io/jobset/api/config/v1alpha1"
	kueueconfig "sigs.k8s.io/kueue/apis/config/v1beta2"
	"sigs.k8s.io/yaml"
)

// configFile is the key of the configuration in both ConfigMaps.
const configFile = "controller_manager_config.yaml"

// annotationConfig on the pods is the digest of the configuration file they
// were started with.
const annotationConfig = "terraform-provider-tpu/config"

// file returns the configuration file of a release: upstream's, changed where
// c or this project's needs differ.
func (c Config) file(p part) ([]byte, error) {
	upstream, err := p.upstreamFile(c.version(p))
	if err != nil {
		return nil, err
	}
	if p == jobSet {
		return edit(upstream, func(f *jobsetconfig.Configuration) {
			f.Webhook.Port = &c.WebhookPort
			f.FeatureGates = c.JobSet.FeatureGates
			if qps, burst := c.JobSet.ClientQPS, c.JobSet.Burst; qps > 0 || burst > 0 {
				f.ClientConnection = &jobsetconfig.ClientConnection{QPS: positive(qps), Burst: positive(burst)}
			}
		})
	}
	return edit(upstream, func(f *kueueconfig.Configuration) { c.Kueue.write(f, c.WebhookPort, c.version(kueue)) })
}

// positive is a pointer to n, nil for the controller's default.
func positive[T int32 | float32](n T) *T {
	if n == 0 {
		return nil
	}
	return &n
}

// write puts k into the configuration file of a Kueue version.
func (k KueueConfig) write(f *kueueconfig.Configuration, webhookPort int, version string) {
	f.Webhook.Port = &webhookPort
	f.Metrics.EnableClusterQueueResources = k.QueueMetrics
	f.ManageJobsWithoutQueueName = k.ManageJobsWithoutQueue
	f.ManagedJobsNamespaceSelector = k.labelSelector()
	f.Integrations = &kueueconfig.Integrations{Frameworks: k.frameworks()}
	k.writeResources(f, version)
	f.WaitForPodsReady = &kueueconfig.WaitForPodsReady{
		Timeout:           k.PodsReadyTimeout,
		RecoveryTimeout:   &k.RecoveryTimeout,
		RequeuingStrategy: k.Requeue.strategy(),
	}
	if k.BlockAdmission {
		f.WaitForPodsReady.BlockAdmission = &k.BlockAdmission
	}
	k.writeFairSharing(f)
	if k.ClientQPS > 0 {
		f.ClientConnection.QPS = &k.ClientQPS
	}
	if k.Burst > 0 {
		f.ClientConnection.Burst = &k.Burst
	}
	if k.KeepFinished != nil {
		f.ObjectRetentionPolicies = &kueueconfig.ObjectRetentionPolicies{Workloads: &kueueconfig.WorkloadRetentionPolicy{AfterFinished: k.KeepFinished}}
	}
	f.FeatureGates = map[string]bool{}
	if !older(version, KueueVersion) {
		// Says in words why a workload is not admitted.
		f.FeatureGates["UnadmittedWorkloadsObservability"] = true
	}
	if k.NoVisibility {
		f.FeatureGates["VisibilityOnDemand"] = false
	}
	maps.Copy(f.FeatureGates, k.FeatureGates)
}

// uncounted are the resources that every pod may request and queues in slices
// do not declare.
var uncounted = []string{"cpu", "memory", "ephemeral-storage"}

// writeResources says what queues count. A queue has a quota of chips only;
// without this, a pod that requests cpu or memory would never be admitted.
func (k KueueConfig) writeResources(f *kueueconfig.Configuration, version string) {
	f.Resources = &kueueconfig.Resources{ExcludeResourcePrefixes: slices.Clone(k.ExcludedResources)}
	switch {
	case k.BlockUndeclared:
	case older(version, KueueVersion):
		// It cannot tell declared ones from others: they are out for all queues.
		f.Resources.ExcludeResourcePrefixes = append(f.Resources.ExcludeResourcePrefixes, uncounted...)
	default:
		ignore := kueueconfig.QuotaCheckIgnoreUndeclared
		f.Resources.QuotaCheckStrategy = &ignore
	}
}

// strategy is nil when nothing is set: Kueue requeues for ever, at the end of
// the line, so that a job whose pods do not come up lets the others go first.
func (r Requeue) strategy() *kueueconfig.RequeuingStrategy {
	if r == (Requeue{}) {
		return nil
	}
	return &kueueconfig.RequeuingStrategy{
		BackoffLimitCount:  r.Limit,
		BackoffBaseSeconds: positive(int32(r.Backoff.Seconds())),
		BackoffMaxSeconds:  positive(int32(r.MaxBackoff.Seconds())),
	}
}

func (k KueueConfig) writeFairSharing(f *kueueconfig.Configuration) {
	if k.FairSharing {
		f.FairSharing = &kueueconfig.FairSharing{}
		for _, s := range k.FairSharingPreemption {
			f.FairSharing.PreemptionStrategies = append(f.FairSharing.PreemptionStrategies, kueueconfig.PreemptionStrategy(s))
		}
		if len(k.FairSharingPreemption) == 0 {
			f.FairSharing.PreemptionStrategies = []kueueconfig.PreemptionStrategy{kueueconfig.LessThanOrEqualToFinalShare, kueueconfig.LessThanInitialShare}
		}
	}
	if a := k.AdmissionFairSharing; a != nil {
		f.AdmissionFairSharing = &kueueconfig.AdmissionFairSharing{UsageHalfLifeTime: a.HalfLife, UsageSamplingInterval: a.Sampling}
	}
}

// upstreamFile reads the configuration file out of the official ConfigMap.
func (p part) upstreamFile(version string) ([]byte, error) {
	originals, err := p.originals(version)
	if err != nil {
		return nil, err
	}
	for _, obj := range originals {
		if obj.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("ConfigMap") {
			if text, ok, _ := unstructured.NestedString(obj.Object, "data", configFile); ok {
				return []byte(text), nil
			}
		}
	}
	return nil, fmt.Errorf("the embedded %s manifests have no ConfigMap with %s", p.title(), configFile)
}

// edit changes a configuration file as the type it is and drops the empty
// values that the type would write.
func edit[T any](text []byte, change func(*T)) ([]byte, error) {
	f := new(T)
	if err := yaml.UnmarshalStrict(text, f); err != nil {
		return nil, fmt.Errorf("reading %s: %w", configFile, err)
	}
	change(f)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(f)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", configFile, err)
	}
	prune(content)
	return yaml.Marshal(content)
}

// prune removes empty strings, nulls, "0s" and objects that hold nothing else:
// to both controllers they mean the default.
func prune(m map[string]any) {
	for key, v := range m {
		if inner, ok := v.(map[string]any); ok && len(inner) > 0 {
			if prune(inner); len(inner) == 0 {
				delete(m, key)
			}
			continue
		}
		if v == nil || v == "" || v == "0s" {
			delete(m, key)
		}
	}
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:16]
}
