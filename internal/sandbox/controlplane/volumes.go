package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// volumes puts a container's mounts below a folder that stands for its root.
// ConfigMaps, Secrets and empty directories are known; projected volumes hold
// the service account's credentials, which launch writes itself.
type volumes struct {
	client    kubernetes.Interface
	pod       *corev1.Pod
	container *corev1.Container
	root      string
}

// rewrite moves a path, alone or after "=", below root if a volume is mounted
// there.
func (v *volumes) rewrite(arg string) string {
	flag, path, joined := strings.Cut(arg, "=")
	if !joined {
		flag, path = "", arg
	}
	for _, m := range v.container.VolumeMounts {
		if path == m.MountPath || strings.HasPrefix(path, strings.TrimSuffix(m.MountPath, "/")+"/") {
			if joined {
				return flag + "=" + filepath.Join(v.root, path)
			}
			return filepath.Join(v.root, path)
		}
	}
	return arg
}

// mount writes every mounted file for the first time.
func (v *volumes) mount(ctx context.Context) error {
	return v.each(func(m corev1.VolumeMount, vol *corev1.Volume) error {
		switch {
		case vol.ConfigMap != nil:
			return v.configMap(ctx, m, vol.ConfigMap)
		case vol.Secret != nil:
			return v.secret(ctx, m, vol.Secret)
		case vol.EmptyDir != nil, vol.Projected != nil:
			return os.MkdirAll(filepath.Join(v.root, m.MountPath), 0o700)
		}
		return fmt.Errorf("volume %s of pod %s/%s is of a kind that the sandbox does not mount", vol.Name, v.pod.Namespace, v.pod.Name)
	})
}

// sync writes again the secrets that changed. ConfigMaps are mounted by
// subPath, which a kubelet never updates.
func (v *volumes) sync(ctx context.Context) error {
	return v.each(func(m corev1.VolumeMount, vol *corev1.Volume) error {
		if vol.Secret == nil || m.SubPath != "" {
			return nil
		}
		return v.secret(ctx, m, vol.Secret)
	})
}

func (v *volumes) each(f func(corev1.VolumeMount, *corev1.Volume) error) error {
	for _, m := range v.container.VolumeMounts {
		for i := range v.pod.Spec.Volumes {
			if vol := &v.pod.Spec.Volumes[i]; vol.Name == m.Name {
				if err := f(m, vol); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (v *volumes) configMap(ctx context.Context, m corev1.VolumeMount, src *corev1.ConfigMapVolumeSource) error {
	cm, err := v.client.CoreV1().ConfigMaps(v.pod.Namespace).Get(ctx, src.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && src.Optional != nil && *src.Optional {
		return os.MkdirAll(filepath.Join(v.root, m.MountPath), 0o700)
	}
	if err != nil {
		return fmt.Errorf("mounting config map %s: %w", src.Name, err)
	}
	data := map[string][]byte{}
	for k, s := range cm.Data {
		data[k] = []byte(s)
	}
	for k, b := range cm.BinaryData {
		data[k] = b
	}
	return v.write(m, src.Items, data)
}

func (v *volumes) secret(ctx context.Context, m corev1.VolumeMount, src *corev1.SecretVolumeSource) error {
	s, err := v.client.CoreV1().Secrets(v.pod.Namespace).Get(ctx, src.SecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && src.Optional != nil && *src.Optional {
		return os.MkdirAll(filepath.Join(v.root, m.MountPath), 0o700)
	}
	if err != nil {
		return fmt.Errorf("mounting secret %s: %w", src.SecretName, err)
	}
	return v.write(m, src.Items, s.Data)
}

// write puts the keys of an object where a mount wants them.
func (v *volumes) write(m corev1.VolumeMount, items []corev1.KeyToPath, data map[string][]byte) error {
	if len(items) > 0 {
		picked := map[string][]byte{}
		for _, i := range items {
			if b, ok := data[i.Key]; ok {
				picked[i.Path] = b
			}
		}
		data = picked
	}
	to := filepath.Join(v.root, m.MountPath)
	if m.SubPath != "" {
		b, ok := data[m.SubPath]
		if !ok {
			return fmt.Errorf("mounting %s: volume %s has no key %s", m.MountPath, m.Name, m.SubPath)
		}
		return replaceFile(to, b)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	// The certificate last: whoever waits for it (JobSet and Kueue do) then
	// finds its key too.
	for _, last := range []bool{false, true} {
		for name, b := range data {
			if (name == corev1.TLSCertKey) == last {
				if err := replaceFile(filepath.Join(to, name), b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// replaceFile writes a file that is never seen half written, and not at all if
// it would not change.
func replaceFile(path string, b []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
