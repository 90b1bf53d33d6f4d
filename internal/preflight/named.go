package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/similar"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// kind is a kind of objects that a job names, and what becomes of a job whose
// object is not there.
type kind struct {
	item      string // the check
	one, many string // what objects of the kind are called
	gvk       schema.GroupVersionKind
	without   string // what becomes of the job
	make      string // how there comes to be one
}

var (
	priorityKind = kind{namePriority, "priority class", "priority classes", kueue.SchemeGroupVersion.WithKind("WorkloadPriorityClass"),
		"Kueue would never take the job in", "tpu_kueue_priority makes one"}
	accountKind = kind{nameAccount, "service account", "service accounts", corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		"no pod of the job could be made", "make it there (tpu_training_namespace makes one)"}
	secretKind = kind{nameSecret, "Secret", "Secrets", corev1.SchemeGroupVersion.WithKind("Secret"),
		"the job's pods would wait for it", "make it there"}
	configMapKind = kind{nameConfigMap, "ConfigMap", "ConfigMaps", corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		"the job's pods would wait for it", "make it there"}
	claimKind = kind{nameClaim, "PersistentVolumeClaim", "PersistentVolumeClaims", corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		"the job's pods would wait for it", "make it there"}
)

// named is an object that a job names, in a namespace or, without one, of the
// cluster.
type named struct {
	kind
	namespace, name string
}

// priority looks for the priority class: Kueue makes no Workload of a job whose
// class it does not know, and the job waits without a word.
func (c Checks) priority(ctx context.Context, s training.Spec) []Item {
	name := s.JobSet().Labels[queue.LabelPriorityClass]
	if name == "" || s.Queue == "" {
		return nil
	}
	return c.find(ctx, named{kind: priorityKind, name: name})
}

// objects looks for what the pods name in their namespace: the service account,
// and the Secrets, ConfigMaps and claims that they cannot start without. Of what
// there is only the metadata is read.
func (c Checks) objects(ctx context.Context, s training.Spec) []Item {
	all := namedBy(s)
	found := make([][]Item, len(all))
	var tasks sync.WaitGroup
	for i, one := range all {
		tasks.Go(func() { found[i] = c.find(ctx, one) })
	}
	tasks.Wait()
	return slices.Concat(found...)
}

func (c Checks) find(ctx context.Context, n named) []Item {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(n.gvk)
	err := c.Cluster.Get(ctx, client.ObjectKey{Namespace: n.namespace, Name: n.name}, m)
	switch {
	case err == nil:
		return passed(n.item, n.name)
	case meta.IsNoMatchError(err):
		return nil // controllers says it
	case apierrors.IsNotFound(err):
		return failed(n.item, c.missing(ctx, n))
	case apierrors.IsForbidden(err):
		return unknown(n.item, n.name+": this account may not look at "+n.many+n.in())
	}
	return unknown(n.item, n.name+": "+plain(err))
}

func (n named) in() string {
	if n.namespace == "" {
		return ""
	}
	return " of namespace " + n.namespace
}

// missing says what is not there, what that means, and what may have been meant.
func (c Checks) missing(ctx context.Context, n named) string {
	where := "cluster " + c.Cluster.Name
	if n.namespace != "" {
		where = "namespace " + n.namespace
	}
	text := fmt.Sprintf("%s has no %s %s", where, n.one, n.name)
	there, _ := c.names(ctx, n.gvk, n.namespace) // what cannot be listed is not named
	if near := similar.Among(n.name, there); len(near) > 0 {
		return text + "; did you mean " + strings.Join(near, " or ") + "? Without it " + n.without
	}
	if n.gvk == priorityKind.gvk && len(there) > 0 {
		text += ": it has " + strings.Join(there, ", ")
	}
	return fmt.Sprintf("%s. Without it %s: %s, or correct the name", text, n.without, n.make)
}

// fewNames bounds the names that a suggestion is chosen from.
const fewNames = 500

// names are those of the objects of a kind, by their metadata.
func (c Checks) names(ctx context.Context, gvk schema.GroupVersionKind, namespace string) ([]string, error) {
	var list metav1.PartialObjectMetadataList
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	if err := c.Cluster.List(ctx, &list, client.InNamespace(namespace), client.Limit(fewNames)); err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// namedBy is what the pods of a job name and cannot do without, overrides
// included. The job's own files come with it.
func namedBy(s training.Spec) []named {
	g := gathered{namespace: s.Namespace}
	js := s.JobSet()
	for i := range js.Spec.ReplicatedJobs {
		g.pod(js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec)
	}
	own := s.FilesObject(&jobset.JobSet{})
	all := slices.DeleteFunc(g.all, func(n named) bool {
		return n.name == "" || n.kind == accountKind && n.name == "default" || own != nil && n.kind == configMapKind && n.name == own.Name
	})
	slices.SortStableFunc(all, func(a, b named) int { return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(a.name, b.name)) })
	return slices.Compact(all)
}

func (n named) order() int {
	return slices.Index([]string{nameAccount, nameSecret, nameConfigMap, nameClaim}, n.item)
}

type gathered struct {
	namespace string
	all       []named
}

// add takes a name unless the pods start without it.
func (g *gathered) add(k kind, name string, optional *bool) {
	if optional == nil || !*optional {
		g.all = append(g.all, named{k, g.namespace, name})
	}
}

func (g *gathered) pod(p corev1.PodSpec) {
	g.add(accountKind, p.ServiceAccountName, nil)
	for _, pull := range p.ImagePullSecrets {
		g.add(secretKind, pull.Name, nil)
	}
	for _, c := range slices.Concat(p.InitContainers, p.Containers) {
		for _, from := range c.EnvFrom {
			if r := from.SecretRef; r != nil {
				g.add(secretKind, r.Name, r.Optional)
			}
			if r := from.ConfigMapRef; r != nil {
				g.add(configMapKind, r.Name, r.Optional)
			}
		}
		for _, e := range c.Env {
			if e.ValueFrom == nil {
				continue
			}
			if r := e.ValueFrom.SecretKeyRef; r != nil {
				g.add(secretKind, r.Name, r.Optional)
			}
			if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
				g.add(configMapKind, r.Name, r.Optional)
			}
		}
	}
	for _, v := range p.Volumes {
		g.volume(v)
	}
}

func (g *gathered) volume(v corev1.Volume) {
	if r := v.Secret; r != nil {
		g.add(secretKind, r.SecretName, r.Optional)
	}
	if r := v.ConfigMap; r != nil {
		g.add(configMapKind, r.Name, r.Optional)
	}
	if r := v.PersistentVolumeClaim; r != nil {
		g.add(claimKind, r.ClaimName, nil)
	}
	if r := v.CSI; r != nil && r.NodePublishSecretRef != nil {
		g.add(secretKind, r.NodePublishSecretRef.Name, nil)
	}
	if v.Projected == nil {
		return
	}
	for _, source := range v.Projected.Sources {
		if r := source.Secret; r != nil {
			g.add(secretKind, r.Name, r.Optional)
		}
		if r := source.ConfigMap; r != nil {
			g.add(configMapKind, r.Name, r.Optional)
		}
	}
}
