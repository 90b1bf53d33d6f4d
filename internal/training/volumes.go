package training

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// Volume is storage mounted into the containers. Exactly one source is set.
type Volume struct {
	Name     string // of the volume in the pod
	Path     string // absolute
	ReadOnly bool   `json:",omitempty"`
	SubPath  string `json:",omitempty"` // mount this folder of it only

	Bucket       string   `json:",omitempty"` // Cloud Storage, by its FUSE driver
	MountOptions []string `json:",omitempty"` // of the bucket
	Claim        string   `json:",omitempty"` // PersistentVolumeClaim: Filestore, Lustre, Hyperdisk, ...
	Secret       string   `json:",omitempty"`
	ConfigMap    string   `json:",omitempty"`
	HostPath     string   `json:",omitempty"` // a folder of the host
	// Ramdisk and MultiTier are GKE's checkpoint volumes, by their drivers.
	Ramdisk   bool               `json:",omitempty"`
	MultiTier bool               `json:",omitempty"`
	Memory    *resource.Quantity `json:",omitempty"` // a folder in memory of at most this size
	Scratch   *resource.Quantity `json:",omitempty"` // a folder on the boot disk of at most this size
	NFS       *NFS               `json:",omitempty"`
}

// NFS is a share of an NFS server.
type NFS struct{ Server, Path string }

// Drivers, and the annotation by which GKE adds the bucket driver's sidecar.
const (
	driverBucket     = "gcsfuse.csi.storage.gke.io"
	driverRamdisk    = "phase1-checkpoint.csi.storage.gke.io"
	driverMultiTier  = "multitier-checkpoint.csi.storage.gke.io"
	annotationBucket = "gke-gcsfuse/volumes"
)

// onHost tells whether only TPU hosts have such storage.
func (v Volume) onHost() bool { return v.Ramdisk || v.MultiTier || v.HostPath != "" }

// sources lists those that are set, by the names of their settings.
func (v Volume) sources() []string {
	var set []string
	for _, s := range []struct {
		name string
		set  bool
	}{
		{"bucket", v.Bucket != ""}, {"claim", v.Claim != ""}, {"secret", v.Secret != ""}, {"config_map", v.ConfigMap != ""},
		{"host_path", v.HostPath != ""}, {"ramdisk", v.Ramdisk}, {"multi_tier", v.MultiTier}, {"memory", v.Memory != nil}, {"scratch", v.Scratch != nil}, {"nfs", v.NFS != nil},
	} {
		if s.set {
			set = append(set, s.name)
		}
	}
	return set
}

// Sources are the settings that say what a volume is.
const Sources = "bucket, claim, secret, config_map, host_path, ramdisk, multi_tier, memory, scratch or nfs"

func (v Volume) source() corev1.VolumeSource {
	inline := func(driver string, attributes map[string]string) corev1.VolumeSource {
		csi := &corev1.CSIVolumeSource{Driver: driver, VolumeAttributes: attributes}
		if v.ReadOnly && driver == driverBucket {
			csi.ReadOnly = ptr.To(true)
		}
		return corev1.VolumeSource{CSI: csi}
	}
	switch {
	case v.Bucket != "":
		attributes := map[string]string{"bucketName": v.Bucket}
		if len(v.MountOptions) > 0 {
			attributes["mountOptions"] = strings.Join(v.MountOptions, ",")
		}
		return inline(driverBucket, attributes)
	case v.Claim != "":
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Claim, ReadOnly: v.ReadOnly}}
	case v.Secret != "":
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: v.Secret}}
	case v.ConfigMap != "":
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: v.ConfigMap}}}
	case v.HostPath != "":
		return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: v.HostPath}}
	case v.Ramdisk:
		return inline(driverRamdisk, nil)
	case v.MultiTier:
		return inline(driverMultiTier, nil)
	case v.Memory != nil:
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(v.Memory.DeepCopy())}}
	case v.Scratch != nil:
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(v.Scratch.DeepCopy())}}
	case v.NFS != nil:
		return corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: v.NFS.Server, Path: v.NFS.Path, ReadOnly: v.ReadOnly}}
	}
	return corev1.VolumeSource{}
}

// addVolumes puts the files and those volumes that wanted says into a pod, and
// mounts them into containers of it.
func (s Spec) addVolumes(t *corev1.PodTemplateSpec, containers []corev1.Container, wanted func(Volume) bool) {
	for _, v := range s.Volumes {
		if !wanted(v) {
			continue
		}
		t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: v.Name, VolumeSource: v.source()})
		if v.Bucket == "" {
			continue
		}
		if t.Annotations == nil {
			t.Annotations = map[string]string{}
		}
		if _, own := t.Annotations[annotationBucket]; !own {
			t.Annotations[annotationBucket] = "true"
		}
	}
	if len(s.Files) > 0 {
		t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: volumeFiles, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: s.filesName()}},
		}})
	}
	s.addMounts(containers, wanted)
}

// addMounts mounts what addVolumes put into the pod.
func (s Spec) addMounts(containers []corev1.Container, wanted func(Volume) bool) {
	mount := func(m corev1.VolumeMount) {
		for i := range containers {
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, m)
		}
	}
	for _, v := range s.Volumes {
		if wanted(v) {
			mount(corev1.VolumeMount{Name: v.Name, MountPath: v.Path, ReadOnly: v.ReadOnly, SubPath: v.SubPath})
		}
	}
	for i, path := range s.filePaths() {
		mount(corev1.VolumeMount{Name: volumeFiles, MountPath: path, SubPath: fileKey(i), ReadOnly: true})
	}
}
