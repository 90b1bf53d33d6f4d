package controlplane

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GKE's own names, which its refusals carry.
const (
	wardenMutating   = "warden-mutating.common-webhooks.networking.gke.io"
	wardenValidating = "warden-validating.common-webhooks.networking.gke.io"

	injectPath = "/inject"
	reviewPath = "/review"
)

// warden does to TPU pods on their way into the API server what GKE does: it
// gives them their environment, and refuses those that fit no slice.
type warden struct {
	cp     *ControlPlane
	server *http.Server
	url    string

	mu   sync.Mutex
	jobs map[types.UID]*batchv1.Job
}

// serveWarden listens, and tells the API server where. It holds before the
// first pod is made.
func (cp *ControlPlane) serveWarden(ctx context.Context) (*warden, error) {
	pair, err := tls.LoadX509KeyPair(cp.pki.cert("kubelet"), cp.pki.key("kubelet"))
	if err != nil {
		return nil, fmt.Errorf("loading a certificate of the cluster: %w", err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, fmt.Errorf("listening for GKE's admission: %w", err)
	}
	w := &warden{cp: cp, url: "https://" + l.Addr().String(), jobs: map[types.UID]*batchv1.Job{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+injectPath, w.handle(w.inject))
	mux.HandleFunc("POST "+reviewPath, w.handle(w.review))
	w.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: debugLog(cp.log)}
	go func() { _ = w.server.Serve(l) }()
	if err := w.register(ctx); err != nil {
		_ = w.server.Close()
		return nil, fmt.Errorf("registering GKE's admission: %w", err)
	}
	return w, nil
}

// register writes the webhooks, with the address of this run.
func (w *warden) register(ctx context.Context) error {
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}
	// The others do not make the way here.
	conditions := []admissionregistrationv1.MatchCondition{{
		Name:       "asks-for-tpu-chips",
		Expression: `object.spec.containers.exists(c, has(c.resources) && has(c.resources.limits) && "google.com/tpu" in c.resources.limits)`,
	}}
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: new(w.url + path), CABundle: w.cp.CA()}
	}
	fail, none, seconds := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, int32(30)
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "warden-mutating.config.common-webhooks.networking.gke.io"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: wardenMutating, ClientConfig: at(injectPath), Rules: rules, MatchConditions: conditions,
			FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "warden-validating.config.common-webhooks.networking.gke.io"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: wardenValidating, ClientConfig: at(reviewPath), Rules: rules, MatchConditions: conditions,
			FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	api := w.cp.client.AdmissionregistrationV1()
	_, err := api.MutatingWebhookConfigurations().Create(ctx, mutating, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var had *admissionregistrationv1.MutatingWebhookConfiguration
		if had, err = api.MutatingWebhookConfigurations().Get(ctx, mutating.Name, metav1.GetOptions{}); err == nil {
			mutating.ResourceVersion = had.ResourceVersion
			_, err = api.MutatingWebhookConfigurations().Update(ctx, mutating, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return err
	}
	_, err = api.ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var had *admissionregistrationv1.ValidatingWebhookConfiguration
		if had, err = api.ValidatingWebhookConfigurations().Get(ctx, validating.Name, metav1.GetOptions{}); err == nil {
			validating.ResourceVersion = had.ResourceVersion
			_, err = api.ValidatingWebhookConfigurations().Update(ctx, validating, metav1.UpdateOptions{})
		}
	}
	return err
}

// handle answers one review of a pod.
func (w *warden) handle(decide func(context.Context, *admissionv1.AdmissionRequest, *corev1.Pod, *admissionv1.AdmissionResponse) error) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(io.LimitReader(r.Body, 8<<20)).Decode(&review); err != nil || review.Request == nil {
			http.Error(rw, "want an AdmissionReview", http.StatusBadRequest)
			return
		}
		answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		var pod corev1.Pod
		err := json.Unmarshal(review.Request.Object.Raw, &pod)
		if err == nil {
			err = decide(r.Context(), review.Request, &pod, answer)
		}
		if err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		review.Request, review.Response = nil, answer
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(review)
	}
}

func (w *warden) inject(ctx context.Context, r *admissionv1.AdmissionRequest, pod *corev1.Pod, answer *admissionv1.AdmissionResponse) error {
	job, err := w.jobOf(ctx, r.Namespace, pod)
	if err != nil {
		return err
	}
	patch := tpuEnvironment(pod, job)
	if len(patch) == 0 {
		return nil
	}
	if answer.Patch, err = json.Marshal(patch); err != nil {
		return err
	}
	answer.PatchType = new(admissionv1.PatchTypeJSONPatch)
	return nil
}

func (w *warden) review(_ context.Context, r *admissionv1.AdmissionRequest, pod *corev1.Pod, answer *admissionv1.AdmissionResponse) error {
	if text := wardenText(pod, r.UserInfo.Username, r.UserInfo.Groups); text != "" {
		answer.Allowed, answer.Result = false, &metav1.Status{Message: text}
	}
	return nil
}

// maxJobs bounds what is remembered of Jobs.
const maxJobs = 4096

// jobOf is the Job that owns a pod, or nil. What is asked of it never changes,
// and a Job has many pods.
func (w *warden) jobOf(ctx context.Context, namespace string, pod *corev1.Pod) (*batchv1.Job, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" {
		return nil, nil
	}
	w.mu.Lock()
	job := w.jobs[owner.UID]
	w.mu.Unlock()
	if job != nil {
		return job, nil
	}
	job, err := w.cp.client.BatchV1().Jobs(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	job.Spec.Template, job.ManagedFields = corev1.PodTemplateSpec{}, nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.jobs) >= maxJobs {
		clear(w.jobs)
	}
	w.jobs[job.UID] = job
	return job, nil
}
