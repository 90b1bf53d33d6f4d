package training

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// The files of a job are one immutable ConfigMap, named by its content and
// owned by the JobSet, so that it goes with it. Its keys are numbers, because a
// path is no key; the mounts say which is which.

func (s Spec) filePaths() []string { return slices.Sorted(maps.Keys(s.Files)) }

func fileKey(i int) string { return "file-" + strconv.Itoa(i) }

// filesName is <job>-<hash>, within the 253 characters that a name has.
func (s Spec) filesName() string {
	b, err := json.Marshal(s.Files)
	if err != nil {
		panic(err) // a map of strings
	}
	sum := sha256.Sum256(b)
	return s.Name + "-files-" + hex.EncodeToString(sum[:])[:10]
}

// FilesObject is the ConfigMap with the job's files, or nil.
func (s Spec) FilesObject(owner *jobset.JobSet) *corev1.ConfigMap {
	if len(s.Files) == 0 {
		return nil
	}
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.filesName(), Labels: s.jobLabels()},
		Immutable:  ptr.To(true),
		Data:       map[string]string{},
	}
	for i, path := range s.filePaths() {
		cm.Data[fileKey(i)] = s.Files[path]
	}
	if owner != nil && owner.UID != "" {
		cm.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: jobset.GroupVersion.String(), Kind: "JobSet", Name: owner.Name, UID: owner.UID,
		}}
	}
	return cm
}

// EnsureFiles creates the files of a job that exists. Pods that are quicker
// wait for them. What is there already, of this job or an earlier one of its
// name, has the same content by its name, and gets this owner.
func EnsureFiles(ctx context.Context, c *kube.Client, s Spec, js *jobset.JobSet) error {
	cm := s.FilesObject(js)
	if cm == nil {
		return nil
	}
	for attempt := 0; ; attempt++ {
		err := c.Apply(ctx, cm.DeepCopy(), kube.ApplyOptions{Force: true})
		if err == nil || !kube.Transient(err) || pause(ctx, attempt) != nil {
			return err
		}
	}
}

// ReadFiles fills in the files of a job that was read back from js: its mounts
// name them, the ConfigMap has what is in them.
func ReadFiles(ctx context.Context, c *kube.Client, js *jobset.JobSet, s *Spec) error {
	rj := program(js)
	if rj == nil {
		return nil
	}
	pod := rj.Template.Spec.Template.Spec
	name := ""
	for _, v := range pod.Volumes {
		if v.Name == volumeFiles && v.ConfigMap != nil {
			name = v.ConfigMap.Name
		}
	}
	if name == "" || len(pod.Containers) == 0 {
		return nil
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: js.Namespace, Name: name}}
	found, err := c.Fetch(ctx, cm)
	if err != nil || !found {
		return err
	}
	s.Files = map[string]string{}
	for _, m := range pod.Containers[0].VolumeMounts {
		if m.Name == volumeFiles {
			s.Files[m.MountPath] = cm.Data[m.SubPath]
		}
	}
	return nil
}
