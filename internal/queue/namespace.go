package queue

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationGoogleServiceAccount ties a Kubernetes service account to a Google
// one (Workload Identity). The IAM binding on the other side is not ours.
const AnnotationGoogleServiceAccount = "iam.gke.io/gcp-service-account"

// Names of the roles in a namespace.
const (
	SubmitterRole = "tpu-submitter"
	ViewerRole    = "tpu-viewer"
)

// Namespace is a namespace that jobs run in: the account its pods run as, and
// who may submit or look. It needs no Kueue to exist.
type Namespace struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	// ServiceAccount is made for the jobs' pods; "" leaves them the
	// namespace's "default" account.
	ServiceAccount string
	// GoogleServiceAccount is what ServiceAccount acts as, by e-mail; "" = none.
	GoogleServiceAccount string
	// PullSecrets are the names of the secrets that ServiceAccount's pods pull
	// images with. nil leaves those that it has.
	PullSecrets         []string
	Submitters, Viewers []Subject
}

// Subject is a person, a group, or another namespace's service account.
type Subject struct {
	Kind      string // User, Group or ServiceAccount
	Name      string
	Namespace string // of a ServiceAccount
}

// Objects renders the namespace and what is in it, in the order of creation.
func (n Namespace) Objects() []client.Object {
	labels := maps.Clone(n.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, managed())
	objects := []client.Object{&corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, Annotations: n.Annotations},
	}}
	if n.ServiceAccount != "" {
		account := &corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Name: n.ServiceAccount, Namespace: n.Name, Labels: managed()},
		}
		if n.GoogleServiceAccount != "" {
			account.Annotations = map[string]string{AnnotationGoogleServiceAccount: n.GoogleServiceAccount}
		}
		for _, name := range n.PullSecrets {
			account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		}
		objects = append(objects, account)
	}
	objects = append(objects, n.bind(SubmitterRole, n.Submitters)...)
	return append(objects, n.bind(ViewerRole, n.Viewers)...)
}

// bind renders a role and its binding, or nothing when nobody holds it.
func (n Namespace) bind(role string, subjects []Subject) []client.Object {
	if len(subjects) == 0 {
		return nil
	}
	meta := metav1.ObjectMeta{Name: role, Namespace: n.Name, Labels: managed()}
	binding := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	}
	for _, s := range subjects {
		subject := rbacv1.Subject{Kind: s.Kind, Name: s.Name, Namespace: s.Namespace}
		if s.Kind != rbacv1.ServiceAccountKind {
			subject.APIGroup = rbacv1.GroupName
		}
		binding.Subjects = append(binding.Subjects, subject)
	}
	return []client.Object{
		&rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
			ObjectMeta: meta,
			Rules:      RoleRules(role),
		},
		binding,
	}
}

// RoleRules are what a role in the namespace allows: SubmitterRole or ViewerRole.
func RoleRules(role string) []rbacv1.PolicyRule {
	if role == SubmitterRole {
		return submitterRules
	}
	return viewerRules
}

var (
	read  = []string{"get", "list", "watch"}
	write = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

	viewerRules = []rbacv1.PolicyRule{
		{APIGroups: []string{"jobset.x-k8s.io"}, Resources: []string{"jobsets", "jobsets/status"}, Verbs: read},
		{APIGroups: []string{"kueue.x-k8s.io"}, Resources: []string{"workloads", "workloads/status", "localqueues", "localqueues/status"}, Verbs: read},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs", "jobs/status"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"pods", "pods/log", "events", "configmaps"}, Verbs: read},
	}
	// A submitter suspends and resumes a job through its Workload
	// (spec.active): Kueue undoes a change of the JobSet's own suspend field.
	submitterRules = append([]rbacv1.PolicyRule{
		{APIGroups: []string{"jobset.x-k8s.io"}, Resources: []string{"jobsets"}, Verbs: write},
		{APIGroups: []string{"kueue.x-k8s.io"}, Resources: []string{"workloads"}, Verbs: []string{"patch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: write},
	}, viewerRules...)
)
