package training

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// Pathways runs the program once, in a head on CPU hosts, which uses the chips
// of all slices through the Pathways servers there.
type Pathways struct {
	// Scratch is the folder in Cloud Storage that its servers share.
	Scratch string
	// Headless: no program of the job's own; clients connect to its proxy.
	Headless bool `json:",omitempty"`

	ProxyImage  string `json:",omitempty"` // "" = DefaultProxyImage
	ServerImage string `json:",omitempty"` // of the resource manager and the workers; "" = DefaultServerImage

	// Further arguments of the proxy, the resource manager and the workers.
	ProxyArgs  []string `json:",omitempty"`
	ServerArgs []string `json:",omitempty"`
	WorkerArgs []string `json:",omitempty"`
	// What the proxy and the resource manager ask for; what is left out is
	// DefaultProxyResources and DefaultServerResources.
	ProxyResources  Resources `json:",omitzero"`
	ServerResources Resources `json:",omitzero"`

	HeadNodeSelector map[string]string `json:",omitempty"`

	// ElasticSlices is how many slices may come and go while the program runs.
	ElasticSlices int `json:",omitempty"`
	// MaxSliceRestarts is how often each host of a slice may be started again
	// before the run restarts; 0 = DefaultSliceRestarts.
	MaxSliceRestarts int `json:",omitempty"`
	// ColocatedPython is the image of a Python server beside each worker; "" = none.
	ColocatedPython string `json:",omitempty"`
}

// Images of Pathways that a job gets unless it names others.
const (
	DefaultProxyImage  = "us-docker.pkg.dev/cloud-tpu-v2-images/pathways/proxy_server:latest"
	DefaultServerImage = "us-docker.pkg.dev/cloud-tpu-v2-images/pathways/server:latest"
)

// DefaultSliceRestarts is generous: a server that ends is no reason to end the
// program.
const DefaultSliceRestarts = 4

// What the head's containers ask for unless the job says otherwise.
var (
	DefaultProxyResources   = Resources{CPU: ptr.To(resource.MustParse("16")), Memory: ptr.To(resource.MustParse("100G"))}
	DefaultServerResources  = Resources{CPU: ptr.To(resource.MustParse("8")), Memory: ptr.To(resource.MustParse("32G"))}
	DefaultProgramResources = Resources{CPU: ptr.To(resource.MustParse("24"))}
)

// Names inside the JobSet of a Pathways job. Its workers are SliceJob, the
// program's container in the head is Container.
const (
	HeadJob = "head"

	ContainerProxy     = "pathways-proxy"
	ContainerManager   = "pathways-rm"
	ContainerWorker    = "pathways-worker"
	ContainerColocated = "colocated-python"
)

const (
	proxyPort     = 29000
	managerPort   = 29001
	workerPort    = 29005
	colocatedPort = 50051
)

// pathwaysEnv are set by Pathways for the program.
var pathwaysEnv = []string{"JAX_PLATFORMS", "JAX_BACKEND_TARGET", "XCLOUD_ENVIRONMENT", "PATHWAYS_HEAD"}

// instanceTypes are Pathways' names for machines with TPUs.
var instanceTypes = map[string]string{
	"ct4p-hightpu-4t":   "tpuv4",
	"ct5lp-hightpu-4t":  "tpuv5e",
	"ct5lp-hightpu-8t":  "tpuv5e1t",
	"ct5p-hightpu-4t":   "tpuv5",
	"ct6e-standard-4t":  "tpuv6e",
	"ct6e-standard-8t":  "tpuv6e1t",
	"tpu7x-standard-4t": "tpu7x",
}

// instanceType is what the resource manager is told of a slice: tpuv6e:4x4. ""
// when Pathways has no name for its machines.
func (s Spec) instanceType() string {
	name := instanceTypes[s.Slice.MachineType]
	if name == "" {
		return ""
	}
	return name + ":" + s.Slice.Topology.String()
}

// headHost is the head's name in DNS. JobSet's own label for it, that of a
// coordinator, would limit the job's name to 26 characters.
func headHost(job string) string { return job + "-" + HeadJob + "-0-0." + job }

// ProxyAddress is where a Pathways job takes JAX clients.
func ProxyAddress(job string) string { return fmt.Sprintf("grpc://%s:%d", headHost(job), proxyPort) }

// deciding is the replicated job that decides how the run ends.
func (s Spec) deciding() string {
	if s.Pathways != nil {
		return HeadJob
	}
	return SliceJob
}

// elastic tells whether slices may come and go while the program runs.
func (s Spec) elastic() bool { return s.Pathways != nil && s.Pathways.ElasticSlices > 0 }

func or(own, otherwise string) string {
	if own != "" {
		return own
	}
	return otherwise
}

// or fills in what is not asked for.
func (r Resources) or(otherwise Resources) Resources {
	if r.CPU == nil {
		r.CPU = otherwise.CPU
	}
	if r.Memory == nil {
		r.Memory = otherwise.Memory
	}
	if r.EphemeralStorage == nil {
		r.EphemeralStorage = otherwise.EphemeralStorage
	}
	return r
}

func text(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

func fromMetadata(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

// whoAmI is how Pathways' servers know what of the job they are.
func whoAmI() []corev1.EnvVar {
	return []corev1.EnvVar{
		fromMetadata("JOBSET_NAME", "metadata.annotations['"+jobset.JobSetNameKey+"']"),
		fromMetadata("REPLICATED_JOB_NAME", "metadata.annotations['"+jobset.ReplicatedJobNameKey+"']"),
	}
}

// server is a container of Pathways' own.
func (s Spec) server(name, image string, args []string, ports ...int32) corev1.Container {
	c := corev1.Container{
		Name: name, Image: image, Args: args,
		VolumeMounts:             []corev1.VolumeMount{{Name: volumeShm, MountPath: "/dev/shm"}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	for _, port := range ports {
		c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: port, Protocol: corev1.ProtocolTCP})
	}
	return c
}

func (s Spec) serverArgs(port int, further ...string) []string {
	return append([]string{"--server_port=" + strconv.Itoa(port), "--gcs_scratch_location=" + s.Pathways.Scratch}, further...)
}

func (s Spec) managerAddress() string {
	return fmt.Sprintf("--resource_manager_address=%s:%d", headHost(s.Name), managerPort)
}

func (s Spec) proxy() corev1.Container {
	p := s.Pathways
	args := s.serverArgs(proxyPort, s.managerAddress())
	if p.ElasticSlices > 0 {
		args = append(args, "--num_elastic_slices="+strconv.Itoa(p.ElasticSlices))
	}
	if p.ColocatedPython != "" {
		args = append(args, "--sidecar_name=external")
	}
	c := s.server(ContainerProxy, or(p.ProxyImage, DefaultProxyImage), append(args, p.ProxyArgs...), proxyPort)
	c.Resources = p.ProxyResources.or(DefaultProxyResources).requirements(0)
	return c
}

func (s Spec) manager() corev1.Container {
	p := s.Pathways
	args := s.serverArgs(managerPort, "--node_type=resource_manager", "--instance_count="+strconv.Itoa(s.Slices), "--instance_type="+s.instanceType())
	c := s.server(ContainerManager, or(p.ServerImage, DefaultServerImage), append(args, p.ServerArgs...), managerPort, managerPort+1)
	c.Env = append(whoAmI(), text("HOST_ADDRESS", headHost(s.Name)), text("TPU_SKIP_MDS_QUERY", "true"))
	c.Resources = p.ServerResources.or(DefaultServerResources).requirements(0)
	return c
}

// program is the user's container in the head.
func (s Spec) program() corev1.Container {
	c := s.container(Container, s.Image, s.Shell, s.Command, s.Args)
	c.Env = append(s.env(nil), text("PATHWAYS_HEAD", headHost(s.Name)), text("JAX_PLATFORMS", "proxy"),
		text("JAX_BACKEND_TARGET", ProxyAddress(s.Name)), text("XCLOUD_ENVIRONMENT", "GCP"))
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		c.Env = append(c.Env, text(name, s.Env[name]))
	}
	c.EnvFrom = envFrom(s.EnvFrom)
	c.Resources = s.Resources.or(DefaultProgramResources).requirements(0)
	return c
}

// headJob is one pod on a CPU host: the program, with the proxy and the
// resource manager as sidecars that end with it. Without a program they are the
// pod, and end when the job is deleted.
func (s Spec) headJob() jobset.ReplicatedJob {
	t := s.basePod()
	t.Spec.RestartPolicy = corev1.RestartPolicyNever
	t.Spec.NodeSelector = maps.Clone(s.Pathways.HeadNodeSelector)
	servers := []corev1.Container{s.manager(), s.proxy()}
	if s.Pathways.Headless {
		t.Spec.Containers = servers
	} else {
		for i := range servers {
			servers[i].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		t.Spec.InitContainers = servers
		t.Spec.Containers = []corev1.Container{s.program()}
		s.addVolumes(&t, t.Spec.Containers, func(v Volume) bool { return !v.onHost() })
	}
	s.hostNetwork(&t)
	job := batchv1.JobSpec{
		Parallelism: ptr.To(int32(1)), Completions: ptr.To(int32(1)), CompletionMode: ptr.To(batchv1.IndexedCompletion),
		BackoffLimit: ptr.To(int32(0)), PodFailurePolicy: podFailurePolicy(batchv1.PodFailurePolicyActionFailJob), Template: t,
	}
	if !s.Pathways.Headless {
		job.PodFailurePolicy = s.fatalExits(job.PodFailurePolicy, Container)
	}
	return jobset.ReplicatedJob{
		Name: HeadJob, GroupName: "default", Replicas: 1,
		Template: batchv1.JobTemplateSpec{Spec: job}, DependsOn: dependsOn(s.DependsOn),
	}
}

// workers makes Pathways' servers of the pods on the slices. They look for the
// head until it is there: to start them after it, it would have to come first,
// and Kueue 0.19 would not admit the job (see replicatedJobs).
func (s Spec) workers(rj jobset.ReplicatedJob) jobset.ReplicatedJob {
	rj.DependsOn = nil // what the main job depends on, the head does
	spec := &rj.Template.Spec
	restarts := s.Pathways.MaxSliceRestarts
	if restarts == 0 {
		restarts = DefaultSliceRestarts
	}
	spec.BackoffLimit = ptr.To(int32(min(int64(s.Slice.Hosts)*int64(restarts), math.MaxInt32)))
	// What disrupts a host disrupts the program, which holds state on all of
	// them; unless it can do without a slice. Then the host is replaced.
	spec.PodFailurePolicy = podFailurePolicy(batchv1.PodFailurePolicyActionFailJob)
	if s.elastic() {
		spec.PodFailurePolicy = podFailurePolicy(batchv1.PodFailurePolicyActionIgnore)
	}
	return rj
}

// workerContainers are the server that has the host's chips, and the Python
// server beside it.
func (s Spec) workerContainers() (sidecars, containers []corev1.Container) {
	p := s.Pathways
	c := s.server(ContainerWorker, or(p.ServerImage, DefaultServerImage), append(s.serverArgs(workerPort, s.managerAddress()), p.WorkerArgs...),
		workerPort, workerPort+1, 8471, 8080)
	c.Env = append(whoAmI(),
		text("PATHWAYS_HEAD", headHost(s.Name)), text("MEGASCALE_COORDINATOR_ADDRESS", headHost(s.Name)),
		fromMetadata("MEGASCALE_NUM_SLICES", "metadata.labels['"+jobset.ReplicatedJobReplicas+"']"),
		fromMetadata("MEGASCALE_SLICE_ID", "metadata.labels['"+jobset.JobIndexKey+"']"),
		text("MEGASCALE_GRPC_ENABLE_XOR_TRACER", "false"), text("XCLOUD_ENVIRONMENT", "GCP"),
		text("TPU_MIN_LOG_LEVEL", "0"), text("TF_CPP_MIN_LOG_LEVEL", "0"))
	c.Resources = Resources{}.requirements(int64(s.Slice.ChipsPerHost))
	if p.ColocatedPython == "" {
		return nil, []corev1.Container{c}
	}
	python := s.server(ContainerColocated, p.ColocatedPython, nil, colocatedPort)
	python.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	python.Env = append(s.env(nil), text("GRPC_SERVER_ADDRESS", "0.0.0.0:"+strconv.Itoa(colocatedPort)))
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		python.Env = append(python.Env, text(name, s.Env[name]))
	}
	python.EnvFrom = envFrom(s.EnvFrom)
	return []corev1.Container{python}, []corev1.Container{c}
}
