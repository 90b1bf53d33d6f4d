package controlplane

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// What GKE tells a TPU pod of its slice, by environment.
const (
	envWorkerID     = "TPU_WORKER_ID"
	envHostnames    = "TPU_WORKER_HOSTNAMES"
	envTopology     = "TPU_TOPOLOGY"
	envCoordinator  = "MEGASCALE_COORDINATOR_ADDRESS"
	envNumSlices    = "MEGASCALE_NUM_SLICES"
	envSliceID      = "MEGASCALE_SLICE_ID"
	replicasLabel   = "jobset.sigs.k8s.io/replicatedjob-replicas"
	replicatedLabel = "jobset.sigs.k8s.io/replicatedjob-name"
)

// jsonPatch is one operation of a JSON patch.
type jsonPatch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// tpuEnvironment is the patch by which GKE gives a pod of job its environment:
// pods of Indexed Jobs with more than one host and names in DNS, nobody else.
// What the pod sets itself stays.
func tpuEnvironment(pod *corev1.Pod, job *batchv1.Job) []jsonPatch {
	index := pod.Annotations[batchv1.JobCompletionIndexAnnotation]
	if job == nil || job.Spec.CompletionMode == nil || *job.Spec.CompletionMode != batchv1.IndexedCompletion ||
		job.Spec.Parallelism == nil || *job.Spec.Parallelism < 2 || pod.Spec.Subdomain == "" || index == "" {
		return nil
	}
	var hosts []string
	for i := range *job.Spec.Parallelism {
		hosts = append(hosts, fmt.Sprintf("%s-%d.%s", job.Name, i, pod.Spec.Subdomain))
	}
	env := []corev1.EnvVar{{Name: envWorkerID, Value: index}, {Name: envHostnames, Value: strings.Join(hosts, ",")}}
	if t := selected(pod, accelerator.LabelTopology); len(t) == 1 {
		env = append(env, corev1.EnvVar{Name: envTopology, Value: t[0]})
	}
	if n, err := strconv.Atoi(pod.Labels[replicasLabel]); err == nil && n > 1 {
		first := fmt.Sprintf("%s-%s-0-0.%s", pod.Labels[jobSetLabel], pod.Labels[replicatedLabel], pod.Spec.Subdomain)
		env = append(env,
			corev1.EnvVar{Name: envCoordinator, Value: first},
			corev1.EnvVar{Name: envNumSlices, Value: strconv.Itoa(n)},
			corev1.EnvVar{Name: envSliceID, Value: pod.Labels[jobIndexLabel]})
	}
	var patch []jsonPatch
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if chips(c) == 0 {
			continue
		}
		merged := slices.Clone(c.Env)
		for _, e := range env {
			if !slices.ContainsFunc(c.Env, func(have corev1.EnvVar) bool { return have.Name == e.Name }) {
				merged = append(merged, e)
			}
		}
		if len(merged) > len(c.Env) {
			patch = append(patch, jsonPatch{"add", fmt.Sprintf("/spec/containers/%d/env", i), merged})
		}
	}
	return patch
}

func chips(c *corev1.Container) int64 {
	q := c.Resources.Limits[tpuResource]
	return q.Value()
}

// selected are the values of a node label that a pod accepts, by its node
// selector and what its affinity requires.
func selected(pod *corev1.Pod, label string) []string {
	found := map[string]bool{}
	if v := pod.Spec.NodeSelector[label]; v != "" {
		found[v] = true
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				if e.Key == label && e.Operator == corev1.NodeSelectorOpIn {
					for _, v := range e.Values {
						found[v] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// wardenRule is the name of GKE's rule about TPU pods.
const wardenRule = "tpu-accelerator-topology-constraints"

// wardenText is the refusal of a TPU pod that GKE would not let in, or "".
func wardenText(pod *corev1.Pod, user string, groups []string) string {
	problems := wardenProblems(pod)
	if len(problems) == 0 {
		return ""
	}
	details, err := json.Marshal(map[string][]string{"[denied by " + wardenRule + "]": problems})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("GKE Warden rejected the request because it violates one or more constraints.\nViolations details: %s\nRequested by user: '%s', groups: '%s'.",
		details, user, strings.Join(groups, ","))
}

func wardenProblems(pod *corev1.Pod) []string {
	var want int64
	for i := range pod.Spec.Containers {
		want += chips(&pod.Spec.Containers[i])
	}
	if want == 0 {
		return nil
	}
	var problems []string
	shape := map[string]string{}
	for _, label := range []string{accelerator.LabelAccelerator, accelerator.LabelTopology} {
		switch values := selected(pod, label); len(values) {
		case 0:
			problems = append(problems, "Missing nodeSelector/nodeAffinity label "+label)
		case 1:
			shape[label] = values[0]
		default:
			problems = append(problems, fmt.Sprintf("Multiple values (%s) for nodeSelector/nodeAffinity label %s; a pod is for one", strings.Join(values, ", "), label))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	if sizes := hostSizes(shape[accelerator.LabelAccelerator], shape[accelerator.LabelTopology]); len(sizes) > 0 && !slices.Contains(sizes, want) {
		problems = append(problems, fmt.Sprintf("Invalid resource requests for google.com/tpu. A pod on %s with topology %s asks for all chips of its host, %s; this one asks for %d",
			shape[accelerator.LabelAccelerator], shape[accelerator.LabelTopology], orList(sizes), want))
	}
	return problems
}

// hostSizes are how many chips the hosts of a slice can have; none for a shape
// that the catalogue does not know.
func hostSizes(label, topology string) []int64 {
	t, err := accelerator.ParseTopology(topology)
	if err != nil {
		return nil
	}
	found := map[int64]bool{}
	for _, g := range accelerator.Generations() {
		f, ok := g.Facts()
		if !ok || f.AcceleratorLabel != label {
			continue
		}
		for _, m := range f.Machines {
			if s, err := accelerator.Lookup(g, t, m.Name); err == nil {
				found[int64(s.ChipsPerHost)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func orList(sizes []int64) string {
	var words []string
	for _, n := range sizes {
		words = append(words, strconv.FormatInt(n, 10))
	}
	return strings.Join(words, " or ")
}
