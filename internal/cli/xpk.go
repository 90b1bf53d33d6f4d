package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/near"
)

// xpkGuide maps all of xpk to what there is here.
const xpkGuide = "docs/guides/from-xpk.md"

// xpkFlags are flags of xpk's commands for workloads that are called otherwise
// here, or that something else stands for. The guide for xpk's users says the
// same, in its sections about these commands, and more.
var xpkFlags = map[string]string{
	"workload":                          "the name stands alone: tpuctl submit NAME, tpuctl delete NAME",
	"command":                           "the program stands after --, or is a script by --shell",
	"tpu-type":                          "--accelerator",
	"device-type":                       "--accelerator",
	"num-slices":                        "--slices",
	"num-nodes":                         "it follows from the accelerator: leave it out",
	"restart-on-exit-codes":             "every exit code restarts but those of --fatal-exit-codes",
	"ttl-seconds-after-finished":        "--ttl, with a unit as in 12h",
	"termination-grace-period-seconds":  "--grace-period, with a unit as in 30s",
	"scheduler":                         "scheduler_name of a job file",
	"docker-name":                       "the container is called train: leave it out",
	"docker-image":                      "--image",
	"base-docker-image":                 "images are not built here: build and push the image",
	"script-dir":                        "images are not built here: build and push the image",
	"docker-image-pull-secret":          "the pull secret of a service account, by --service-account",
	"use-parallel-containers":           "containers_per_host of a job file",
	"storage":                           "volumes of a job file",
	"ramdisk-directory":                 "volumes.ramdisk of a job file",
	"mtc-enabled":                       "volumes.multi_tier of a job file",
	"debug-dump-gcs":                    "XLA_FLAGS by --env, and volumes.bucket of a job file",
	"deploy-stacktrace-sidecar":         "a sidecar by jobset_overrides of a job file",
	"enable-debug-logs":                 "the variables by --env or --env-file",
	"output-manifest-file":              "--dry-run=client -o yaml",
	"use-vertex-tensorboard":            "there is no TensorBoard; --experiment is a label to find jobs by",
	"experiment-name":                   "--experiment",
	"on-demand":                         "placement.provisioning of a job file",
	"spot":                              "placement.provisioning of a job file",
	"flex":                              "placement.provisioning of a job file",
	"reservation":                       "placement.reservation of a job file",
	"use-pathways":                      "pathways of a job file",
	"headless":                          "pathways.headless of a job file",
	"proxy-server-image":                "pathways.proxy_image of a job file",
	"server-image":                      "pathways.server_image of a job file",
	"pathways-gcs-location":             "pathways.scratch_location of a job file",
	"custom-pathways-server-args":       "pathways.server_args of a job file",
	"custom-pathways-proxy-server-args": "pathways.proxy_args of a job file",
	"custom-pathways-worker-args":       "pathways.worker_args of a job file",
	"elastic-slices":                    "pathways.elastic_slices of a job file",
	"max-slice-restarts":                "pathways.max_slice_restarts of a job file",
	"colocated-python-sidecar-image":    "pathways.colocated_python_image of a job file",
	"filter-by-status":                  "--state",
	"filter-by-job":                     "--label",
	"wait-for-job-completion":           "tpuctl wait NAME",
	"force":                             "--yes",
	"quiet":                             "--yes",
	"zone":                              "--location",
	"project-number":                    "it is not needed: leave it out",
	"skip-validation":                   "--skip-preflight",
	"sandbox-kubeconfig":                "no kubeconfig is written: leave it out",
	"dependency-auto-download":          "there is nothing to download: leave it out",
}

// xpkCommands are commands of xpk, by their words, that are called otherwise
// here.
var xpkCommands = map[string]string{
	"workload create":          "tpuctl submit",
	"workload create-pathways": "tpuctl submit -f FILE, with pathways in the job file",
	"workload list":            "tpuctl list",
	"workload delete":          "tpuctl delete",
	"workload":                 "tpuctl submit, tpuctl list and tpuctl delete",
	"cluster create":           "Terraform's tpu_training_cluster and tpu_slice_pool",
	"cluster create-pathways":  "Terraform's tpu_training_cluster and tpu_slice_pool",
	"cluster create-ray":       "Terraform's tpu_training_cluster, with addons.ray_operator",
	"cluster adapt":            "Terraform's tpu_slice_pool, tpu_job_controllers and tpu_kueue_queue",
	"cluster delete":           "terraform destroy",
	"cluster cacheimage":       "Terraform's action tpu_preload_image",
	"storage":                  "volumes of a job file: nothing is attached to a cluster",
	"inspector":                "tpuctl status and tpuctl logs --first-failure",
	"info":                     "tpuctl queues",
	"kind":                     "tpuctl sandbox",
	"batch":                    "tpuctl submit",
	"shell":                    "tpuctl run",
	"job":                      "tpuctl list, tpuctl status and tpuctl cancel",
}

// xpkCommand says what there is here for a command of xpk, or "".
func xpkCommand(words []string) string {
	for n := min(len(words), 2); n > 0; n-- {
		if ours, known := xpkCommands[strings.Join(words[:n], " ")]; known {
			return fmt.Sprintf("; in place of xpk's %s: %s (%s)", strings.Join(words[:n], " "), ours, xpkGuide)
		}
	}
	return ""
}

// otherFlag says which flag may have been meant by one that there is not: by
// xpk's name for it, or by a slip of the pen.
func otherFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	name := unknown.GetSpecifiedName()
	ours := xpkFlags[name]
	if flag, is := strings.CutPrefix(ours, "--"); is && cmd.Flags().Lookup(firstWord(flag)) != nil || !is && ours != "" && slices.Contains(forWorkloads, cmd.Name()) {
		return fmt.Sprintf("; in place of xpk's --%s: %s (%s)", name, ours, xpkGuide)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return near.Hint("--"+name, names)
}

// firstWord is the name of a flag before its value or a remark.
func firstWord(text string) string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("=, ", r) })[0]
}

// forWorkloads are the commands that do what xpk's do for workloads.
var forWorkloads = []string{"submit", "run", "continue", "rerun", "list", "delete"}
