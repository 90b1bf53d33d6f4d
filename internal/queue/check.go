package queue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
)

// ProvisioningController answers the checks that ask the cluster's autoscaler
// for machines.
const ProvisioningController = kueue.ProvisioningRequestControllerName

// AdmissionCheck is a condition that a job's admission waits for beside its quota.
type AdmissionCheck struct {
	Name       string
	Controller string           // who answers
	Parameters *CheckParameters // nil = none
	Request    *Request         // with ProvisioningController only
}

// CheckParameters name an object that configures a check of another controller.
type CheckParameters struct{ APIGroup, Kind, Name string }

// Request is how a check asks the autoscaler for machines
// (ProvisioningRequestConfig).
type Request struct {
	Class            string            // such as queued-provisioning.gke.io
	Parameters       map[string]string // of the class
	ManagedResources []string          // pods that ask for none of these are left out; nil = all are asked for
	Retry            Retry
	NodeSelector     map[string]string // of the pods: label -> key of the request's details
	MergePolicy      string            // "" = pods sets are not merged
}

// Retry is how often, and how long apart, a request that failed is made again.
type Retry struct{ Limit, BaseSeconds, MaxSeconds int32 }

// DefaultRetry is Kueue's.
var DefaultRetry = Retry{Limit: 3, BaseSeconds: 60, MaxSeconds: 1800}

// MergePolicies are the ways to put equal pods of a job into one request.
var MergePolicies = []string{string(kueue.IdenticalPodTemplates), string(kueue.IdenticalWorkloadSchedulingRequirements)}

// Object renders the AdmissionCheck.
func (c AdmissionCheck) Object() *kueue.AdmissionCheck {
	o := &kueue.AdmissionCheck{
		TypeMeta:   metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "AdmissionCheck"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: managed()},
		Spec:       kueue.AdmissionCheckSpec{ControllerName: c.Controller},
	}
	switch {
	case c.Request != nil:
		o.Spec.Parameters = &kueue.AdmissionCheckParametersReference{APIGroup: kueue.SchemeGroupVersion.Group, Kind: "ProvisioningRequestConfig", Name: c.Name}
	case c.Parameters != nil:
		o.Spec.Parameters = &kueue.AdmissionCheckParametersReference{APIGroup: c.Parameters.APIGroup, Kind: c.Parameters.Kind, Name: c.Parameters.Name}
	}
	return o
}

// ConfigObject renders the ProvisioningRequestConfig of the check's name, or nil.
func (c AdmissionCheck) ConfigObject() *kueue.ProvisioningRequestConfig {
	if c.Request == nil {
		return nil
	}
	r := c.Request
	o := &kueue.ProvisioningRequestConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "ProvisioningRequestConfig"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: managed()},
		Spec: kueue.ProvisioningRequestConfigSpec{
			ProvisioningClassName: r.Class,
			RetryStrategy: &kueue.ProvisioningRequestRetryStrategy{
				BackoffLimitCount: &r.Retry.Limit, BackoffBaseSeconds: &r.Retry.BaseSeconds, BackoffMaxSeconds: &r.Retry.MaxSeconds,
			},
		},
	}
	for k, v := range r.Parameters {
		if o.Spec.Parameters == nil {
			o.Spec.Parameters = map[string]kueue.Parameter{}
		}
		o.Spec.Parameters[k] = kueue.Parameter(v)
	}
	for _, name := range slices.Sorted(slices.Values(r.ManagedResources)) {
		o.Spec.ManagedResources = append(o.Spec.ManagedResources, corev1.ResourceName(name))
	}
	for _, key := range slices.Sorted(maps.Keys(r.NodeSelector)) {
		if o.Spec.PodSetUpdates == nil {
			o.Spec.PodSetUpdates = &kueue.ProvisioningRequestPodSetUpdates{}
		}
		o.Spec.PodSetUpdates.NodeSelector = append(o.Spec.PodSetUpdates.NodeSelector,
			kueue.ProvisioningRequestPodSetUpdatesNodeSelector{Key: key, ValueFromProvisioningClassDetail: r.NodeSelector[key]})
	}
	if r.MergePolicy != "" {
		o.Spec.PodSetMergePolicy = ptr.To(kueue.ProvisioningRequestConfigPodSetMergePolicy(r.MergePolicy))
	}
	return o
}

// AdmissionCheckOf reads a live check back. config is the ProvisioningRequestConfig of
// its name, or nil.
func AdmissionCheckOf(live *kueue.AdmissionCheck, config *kueue.ProvisioningRequestConfig) AdmissionCheck {
	c := AdmissionCheck{Name: live.Name, Controller: live.Spec.ControllerName}
	p := live.Spec.Parameters
	switch {
	case p == nil:
	case c.Controller != ProvisioningController || p.Kind != "ProvisioningRequestConfig" || p.Name != c.Name:
		c.Parameters = &CheckParameters{p.APIGroup, p.Kind, p.Name}
	case config != nil:
		c.Request = requestOf(config.Spec)
	}
	return c
}

func requestOf(s kueue.ProvisioningRequestConfigSpec) *Request {
	r := &Request{Class: s.ProvisioningClassName, Retry: DefaultRetry}
	for k, v := range s.Parameters {
		if r.Parameters == nil {
			r.Parameters = map[string]string{}
		}
		r.Parameters[k] = string(v)
	}
	for _, name := range s.ManagedResources {
		r.ManagedResources = append(r.ManagedResources, string(name))
	}
	if s.PodSetUpdates != nil {
		for _, u := range s.PodSetUpdates.NodeSelector {
			if r.NodeSelector == nil {
				r.NodeSelector = map[string]string{}
			}
			r.NodeSelector[u.Key] = u.ValueFromProvisioningClassDetail
		}
	}
	if t := s.RetryStrategy; t != nil {
		r.Retry = Retry{ptr.Deref(t.BackoffLimitCount, r.Retry.Limit), ptr.Deref(t.BackoffBaseSeconds, r.Retry.BaseSeconds), ptr.Deref(t.BackoffMaxSeconds, r.Retry.MaxSeconds)}
	}
	r.MergePolicy = string(ptr.Deref(s.PodSetMergePolicy, ""))
	return r
}

// Validate checks what the CRDs would refuse, and what no controller would
// understand.
func (c AdmissionCheck) Validate() error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("admission check %s: "+format, append([]any{c.Name}, args...)...))
	}
	if err := checkName("admission check", c.Name); err != nil {
		errs = append(errs, err)
	}
	if n := len(c.Controller); n == 0 || n > validation.DNS1123SubdomainMaxLength {
		add("a controller name of %d characters; Kueue wants 1 to %d", n, validation.DNS1123SubdomainMaxLength)
	}
	switch ours := c.Controller == ProvisioningController; {
	case ours && c.Request == nil:
		add("controller %s needs provisioning_request: which machines to ask for", ProvisioningController)
	case !ours && c.Request != nil:
		add("provisioning_request is for controller %s; %s has parameters of its own", ProvisioningController, c.Controller)
	}
	switch p := c.Parameters; {
	case p == nil:
	case c.Request != nil:
		add("provisioning_request is its parameters; leave parameters out")
	default:
		if err := checkName("API group", p.APIGroup); err != nil {
			add("parameters: %w", err)
		}
		if problems := naming.Label(strings.ToLower(p.Kind)); len(problems) > 0 || !letter(p.Kind) {
			add("parameters: %q is not a kind", p.Kind)
		}
		if problems := naming.Label(p.Name); len(problems) > 0 {
			add("parameters: name %q: %s", p.Name, strings.Join(problems, "; "))
		}
	}
	if c.Request != nil {
		// The reference to the configuration allows less than its name.
		if problems := naming.Label(c.Name); len(problems) > 0 {
			add("with provisioning_request its name has up to 63 characters and no dots: %s", strings.Join(problems, "; "))
		}
		for _, problem := range c.Request.problems() {
			add("provisioning_request: %s", problem)
		}
	}
	return errors.Join(errs...)
}

func letter(s string) bool {
	return s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
}

// Kueue's limits (ProvisioningRequestConfigSpec).
const (
	maxParameters       = 100
	maxParameterLength  = 255
	maxManagedResources = 100
	maxNodeSelector     = 8
	maxDetailLength     = 32768
)

func (r Request) problems() (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if err := checkName("class", r.Class); err != nil {
		add("%s", err)
	}
	if n := len(r.Parameters); n > maxParameters {
		add("%d parameters; Kueue allows %d", n, maxParameters)
	}
	for _, k := range slices.Sorted(maps.Keys(r.Parameters)) {
		if n := utf8.RuneCountInString(r.Parameters[k]); n > maxParameterLength {
			add("parameter %s has %d characters; Kueue allows %d", k, n, maxParameterLength)
		}
	}
	if n := len(r.ManagedResources); n > maxManagedResources {
		add("%d managed resources; Kueue allows %d", n, maxManagedResources)
	}
	for i, name := range r.ManagedResources {
		if why := naming.Key(name); len(why) > 0 {
			add("managed resource %q: %s", name, strings.Join(why, "; "))
		}
		if slices.Contains(r.ManagedResources[:i], name) {
			add("managed resource %s is there twice", name)
		}
	}
	if n := len(r.NodeSelector); n > maxNodeSelector {
		add("%d labels in node_selector; Kueue allows %d", n, maxNodeSelector)
	}
	for _, key := range slices.Sorted(maps.Keys(r.NodeSelector)) {
		if why := naming.Key(key); len(why) > 0 {
			add("node_selector: %q is not a label's key: %s", key, strings.Join(why, "; "))
		}
		if n := utf8.RuneCountInString(r.NodeSelector[key]); n == 0 || n > maxDetailLength {
			add("node_selector: %s takes its value from a detail of the request, whose key has 1 to %d characters, not %d", key, maxDetailLength, n)
		}
	}
	if r.Retry.Limit < 0 || r.Retry.BaseSeconds < 1 || r.Retry.MaxSeconds < r.Retry.BaseSeconds {
		add("retry: %d times, after %d to %d seconds: want at least 0 times, and from at least 1 second up", r.Retry.Limit, r.Retry.BaseSeconds, r.Retry.MaxSeconds)
	}
	if r.MergePolicy != "" && !slices.Contains(MergePolicies, r.MergePolicy) {
		add("pod_set_merge_policy %q: want %s", r.MergePolicy, strings.Join(MergePolicies, " or "))
	}
	return problems
}
