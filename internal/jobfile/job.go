// Package jobfile is a training job as a document: what a job file says, what a
// command line adds to it, and the same job as a training.Spec, as Terraform and
// back. Its keys are the arguments of the resource tpu_training_jobset.
//
// It reads files and asks no server; it must not know Terraform's libraries for
// providers or the command line.
package jobfile

// Job is one training job as it is written. An `about` is what the schema says of
// a key, `enum` its choices. Texts take any scalar, as it is written.
type Job struct {
	Name        string `json:"name,omitempty" about:"The job's name: lowercase letters, digits and dashes, starting with a letter."`
	Namespace   string `json:"namespace,omitempty" about:"The namespace it runs in."`
	Queue       string `json:"queue,omitempty" about:"The queue to wait in; the namespace's only one by default, none to start at once."`
	Priority    string `json:"priority,omitempty" about:"The priority class, such as low, medium or high."`
	Accelerator string `json:"accelerator,omitempty" about:"The slice: a type name such as v5litepod-16, or v6e-4x4."`
	Slices      *int   `json:"slices,omitempty" about:"How many slices (default 1)." min:"1"`

	Placement  *Placement `json:"placement,omitempty" about:"Which slices of the kind; any by default."`
	Containers *int       `json:"containers_per_host,omitempty" about:"How many containers share the chips of a host; on tpu7x 2 (default) or 1." min:"1"`
	Pathways   *Pathways  `json:"pathways,omitempty" about:"Runs the program once, in a head on a CPU host, over the chips of all slices."`

	Image      string            `json:"image,omitempty" about:"The container image."`
	Command    []string          `json:"command,omitempty" about:"The program and its arguments. No shell reads them. Without it, the image's entry point."`
	Args       []string          `json:"args,omitempty" about:"Arguments for the image's entry point, or more of them for command."`
	Shell      string            `json:"shell,omitempty" about:"A script for the image's shell, instead of command and args."`
	Settings   map[string]string `json:"set,omitempty" about:"Settings of the program, each an argument --NAME=VALUE or what an alias makes of it."`
	Aliases    map[string]string `json:"aliases,omitempty" about:"Short names for set: --flag.name for an argument --flag.name=VALUE, a.b for an argument a.b=VALUE, env:NAME for a variable."`
	Env        map[string]string `json:"env,omitempty" about:"Environment variables. Nothing secret belongs here."`
	EnvFiles   []string          `json:"env_files,omitempty" about:"Files of NAME=VALUE lines, in Docker's format; env is over them. Relative to the job file."`
	EnvFrom    []EnvFrom         `json:"env_from,omitempty" about:"Secrets and config maps of the namespace whose keys become environment variables."`
	Files      map[string]string `json:"files,omitempty" about:"Small files in the containers: what is in them, by absolute path."`
	LocalFiles map[string]string `json:"local_files,omitempty" about:"Small files in the containers: a local file, relative to the job file, by absolute path in the container."`
	Volumes    map[string]Volume `json:"volumes,omitempty" about:"Storage mounted into the containers, by name."`
	Resources  *Resources        `json:"resources,omitempty" about:"What each container asks for beside its chips."`

	Jobs        map[string]Further `json:"jobs,omitempty" about:"Further jobs beside the main one, by name: pods without chips."`
	StartsAfter map[string]string  `json:"starts_after,omitempty" about:"What must be there before the main job starts: further jobs by name, ready or complete."`

	ServiceAccount string `json:"service_account,omitempty" about:"The Kubernetes service account that the pods run as."`
	HostNetwork    bool   `json:"host_network,omitempty" about:"Whether the pods use their host's network."`
	SchedulerName  string `json:"scheduler_name,omitempty" about:"The scheduler that places the pods."`

	RunID        string `json:"run_id,omitempty" about:"The run that this job is, or continues; the name by default."`
	FirstAttempt int    `json:"first_attempt,omitempty" about:"The ATTEMPT to begin with, of a job that goes on with a run (default 0)." min:"0"`
	OutputDir    string `json:"output_dir,omitempty" about:"Where runs write, such as gs://bucket/runs. The program gets it with the run id appended as OUTPUT_DIR."`

	Owner          string            `json:"owner,omitempty" about:"Whose job it is, as a label; the account in use by default."`
	Experiment     string            `json:"experiment,omitempty" about:"What it belongs to, as a label."`
	Tags           []string          `json:"tags,omitempty" about:"Words to find it by."`
	Note           string            `json:"note,omitempty" about:"A sentence about it."`
	Labels         map[string]string `json:"labels,omitempty" about:"Further labels of the JobSet."`
	Annotations    map[string]string `json:"annotations,omitempty" about:"Further annotations of the JobSet."`
	PodAnnotations map[string]string `json:"pod_annotations,omitempty" about:"Annotations of the pods."`

	Restart *Restart `json:"restart_policy,omitempty" about:"What a crash and the loss of a host cost."`
	TTL     Duration `json:"ttl_after_finished,omitempty" about:"How long the finished job is kept, such as 24h; for ever by default."`
	Grace   Duration `json:"termination_grace_period,omitempty" about:"The time between SIGTERM and SIGKILL (default 30s)."`
	MaxRun  Duration `json:"max_run_time,omitempty" about:"How long it may run from its admission, such as 72h."`

	Overrides map[string]any `json:"jobset_overrides,omitempty" about:"Fields of the JobSet that no key stands for, merged into what is rendered."`
}

// Placement says which slices of a kind.
type Placement struct {
	Provisioning string `json:"provisioning,omitempty" about:"The capacity model of the nodes." enum:"on_demand,spot,flex_start,queued,reservation"`
	Reservation  string `json:"reservation,omitempty" about:"The reservation, by its name alone."`
	Policy       string `json:"policy,omitempty" about:"The workload policy that places slices of several tpu7x hosts."`
	Pool         string `json:"pool_accelerator,omitempty" about:"The kind of slice that node pools are made of, where the job's are parts of them (v6e) or formed of several (tpu7x)."`
}

// Pathways is a job whose program runs once, in a head.
type Pathways struct {
	Scratch          string            `json:"scratch_location,omitempty" about:"The folder in Cloud Storage that its servers share, such as gs://bucket/pathways."`
	Headless         bool              `json:"headless,omitempty" about:"No program: clients connect to the proxy."`
	ProxyImage       string            `json:"proxy_image,omitempty" about:"The image of the proxy; Google's by default."`
	ServerImage      string            `json:"server_image,omitempty" about:"The image of the resource manager and the workers; Google's by default."`
	ProxyArgs        []string          `json:"proxy_args,omitempty" about:"Further arguments of the proxy, such as XLA flags."`
	ServerArgs       []string          `json:"server_args,omitempty" about:"Further arguments of the resource manager."`
	WorkerArgs       []string          `json:"worker_args,omitempty" about:"Further arguments of the workers."`
	ProxyResources   *Resources        `json:"proxy_resources,omitempty" about:"What the proxy asks for (default 16 CPUs and 100 GB)."`
	ServerResources  *Resources        `json:"server_resources,omitempty" about:"What the resource manager asks for (default 8 CPUs and 32 GB)."`
	HeadNodeSelector map[string]string `json:"head_node_selector,omitempty" about:"Labels of the nodes that the head runs on."`
	ElasticSlices    *int              `json:"elastic_slices,omitempty" about:"How many slices may come and go while the program runs (default 0)." min:"0"`
	MaxSliceRestarts *int              `json:"max_slice_restarts,omitempty" about:"How often the workers of a slice may end, for each of its hosts, before the job restarts (default 4)." min:"1"`
	ColocatedPython  string            `json:"colocated_python_image,omitempty" about:"The image of a Python server beside each worker."`
}

// Duration is a length of time as Go writes it: 90s, 24h.
type Duration string

// Quantity is one of Kubernetes: 4, 500m, 16Gi.
type Quantity string

// EnvFrom is a source of environment variables; one of Secret and ConfigMap is
// set.
type EnvFrom struct {
	Secret    string `json:"secret,omitempty" about:"The name of a Secret."`
	ConfigMap string `json:"config_map,omitempty" about:"The name of a ConfigMap."`
	Prefix    string `json:"prefix,omitempty" about:"What to put before each name."`
	Optional  bool   `json:"optional,omitempty" about:"Whether the pods start without it."`
}

// Resources are what a container asks for.
type Resources struct {
	CPU              Quantity `json:"cpu,omitempty" about:"CPUs, such as 100 or 500m."`
	Memory           Quantity `json:"memory,omitempty" about:"Memory, such as 180Gi, and no more."`
	EphemeralStorage Quantity `json:"ephemeral_storage,omitempty" about:"Disk outside volumes, such as 50Gi, and no more."`
}

// Volume is storage; exactly one source is set.
type Volume struct {
	Path         string   `json:"path,omitempty" about:"Where it is mounted."`
	ReadOnly     bool     `json:"read_only,omitempty" about:"Whether it is mounted for reading only."`
	SubPath      string   `json:"sub_path,omitempty" about:"The folder of it to mount."`
	Bucket       string   `json:"bucket,omitempty" about:"A Cloud Storage bucket."`
	MountOptions []string `json:"mount_options,omitempty" about:"Options of the bucket's mount."`
	Claim        string   `json:"claim,omitempty" about:"A PersistentVolumeClaim: Filestore, Lustre, Hyperdisk."`
	Secret       string   `json:"secret,omitempty" about:"A Secret."`
	ConfigMap    string   `json:"config_map,omitempty" about:"A ConfigMap."`
	HostPath     string   `json:"host_path,omitempty" about:"A folder of the host."`
	Ramdisk      bool     `json:"ramdisk,omitempty" about:"GKE's checkpoint volume in memory."`
	MultiTier    bool     `json:"multi_tier,omitempty" about:"GKE's multi-tier checkpoint volume."`
	Memory       Quantity `json:"memory,omitempty" about:"A folder in memory of at most this size."`
	Scratch      Quantity `json:"scratch,omitempty" about:"A folder on the boot disk of at most this size."`
	NFS          *NFS     `json:"nfs,omitempty" about:"A share of an NFS server."`
}

// NFS is a share of an NFS server.
type NFS struct {
	Server string `json:"server,omitempty" about:"The server's name or address."`
	Path   string `json:"path,omitempty" about:"The path of the share."`
}

// Further is a further job: pods without chips.
type Further struct {
	Pods         *int              `json:"pods,omitempty" about:"How many pods (default 1)." min:"1"`
	Image        string            `json:"image,omitempty" about:"The image; the main job's by default."`
	Command      []string          `json:"command,omitempty" about:"The program and its arguments."`
	Args         []string          `json:"args,omitempty" about:"Arguments for the image's entry point, or more of them for command."`
	Shell        string            `json:"shell,omitempty" about:"A script for the image's shell, instead of command and args."`
	Env          map[string]string `json:"env,omitempty" about:"Environment variables; the main job's are not taken over."`
	EnvFrom      []EnvFrom         `json:"env_from,omitempty" about:"Secrets and config maps whose keys become environment variables."`
	Resources    *Resources        `json:"resources,omitempty" about:"What each pod asks for."`
	NodeSelector map[string]string `json:"node_selector,omitempty" about:"Labels of the nodes it may run on."`
	OnFailure    string            `json:"on_failure,omitempty" about:"What its failure does." enum:"retry,restart,fail"`
	StartsAfter  map[string]string `json:"starts_after,omitempty" about:"What must be there before it starts: jobs by name, ready or complete."`
}

// Restart says what a failure costs.
type Restart struct {
	MaxRestarts    *int    `json:"max_restarts,omitempty" about:"Crashes to forgive (default 3)." min:"0"`
	FatalExitCodes []int32 `json:"fatal_exit_codes" about:"Exit codes that fail the job at once (default 2, 126, 127)."`
	OnPreemption   string  `json:"on_preemption,omitempty" about:"What the loss of a host does." enum:"restart,count,fail"`
}
