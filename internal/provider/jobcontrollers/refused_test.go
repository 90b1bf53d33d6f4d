package jobcontrollers_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// with is a configuration with these attributes.
func with(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

func kueue(pairs ...any) map[string]any  { return with("kueue", with(pairs...)) }
func jobset(pairs ...any) map[string]any { return with("jobset", with(pairs...)) }
func list(all ...any) []any              { return all }

// Bad input is refused by validate, in words, before anything is asked of any
// API; what only looks odd is not.
func TestRefused(t *testing.T) {
	p := acctest.NewGKE(t).Protocol(t, "")
	for name, tt := range map[string]struct {
		config map[string]any
		want   string // "" for accepted
	}{
		"no cluster's path":        {with("cluster", "main"), `"main" is not a cluster path`},
		"privileged port":          {with("webhook_port", 443), "webhook port 443: want 1024 to 65535"},
		"port in use":              {with("webhook_port", 8443), "taken by metrics"},
		"no port":                  {with("webhook_port", 0), "must be at least 1"},
		"a URL for images":         {with("image_repository", "https://mirror.example.com"), "without https://"},
		"no place for images":      {with("image_repository", ""), "length must be at least 1"},
		"a tag on the repository":  {with("image_repository", "example.com/mirror:v1"), "without a tag"},
		"uppercase":                {with("image_repository", "example.com/Mirror"), "lowercase"},
		"a port and a slash":       {with("image_repository", "mirror.example.com:5000/k8s/"), ""},
		"no hosts":                 {with("max_hosts", 0), "between 1 and 65000"},
		"a label's key":            {with("node_selector", with("a b", "c")), `node selector: label "a b"`},
		"a label's value":          {with("node_selector", with("a", "c d")), `value "c d" of label a`},
		"an empty selector":        {with("node_selector", with()), ""},
		"a taint's key":            {with("tolerations", list(with("key", "a b"))), "toleration 1: taint"},
		"any value, and which":     {with("tolerations", list(with("key", "a"), with("key", "a", "operator", "Exists", "value", "b"))), "toleration 2: operator Exists takes no value"},
		"a value of nothing":       {with("tolerations", list(with("value", "b"))), "without the key"},
		"an operator":              {with("tolerations", list(with("operator", "exists"))), "must be one of"},
		"every taint":              {with("tolerations", list(with("operator", "Exists"))), ""},
		"neither":                  {with("jobset", with("enabled", false), "kueue", with("enabled", false)), "neither JobSet nor Kueue"},
		"JobSet alone":             {kueue("enabled", false), ""},
		"a pair that does not fit": {kueue("version", "v0.15.2"), "JobSet v0.12.0 and Kueue v0.15.2 do not fit"},
		"unknown version":          {jobset("version", "v9.9.9"), "JobSet v9.9.9 is not one that can be installed"},
		"no version":               {jobset("version", ""), "length must be at least 1"},
		"too many pods":            {jobset("replicas", 11), "between 1 and 10"},
		"no quantity":              {jobset("resources", with("memory", "lots")), "want a positive quantity"},
		"limit below request":      {jobset("resources", with("memory", "4Gi", "memory_limit", "1Gi")), "the memory limit 1Gi is below the request 4Gi"},
		"memory without a unit":    {jobset("resources", with("memory", "512")), "memory 512: want 64Mi to 256Gi"},
		"CPU without a unit":       {kueue("resources", with("cpu", "500")), "CPU 500: want 10m to 64"},
		"a limit of nothing":       {kueue("resources", with("memory_limit", "1Ki")), "memory limit 1Ki: want 64Mi"},
		"requests of nothing":      {jobset("client_qps", 0), "between 1 and 10000"},
		"no such gate":             {kueue("feature_gates", with("topology aware", true)), "not the name of one"},
		"gates of the older":       {with("jobset", with("version", "v0.10.1", "feature_gates", with("X", true)), "kueue", with("version", "v0.15.2")), "v0.10.1 has none"},
		"pod framework":            {kueue("frameworks", list("batch/job", "jobset.x-k8s.io/jobset", "pod")), "every namespace from starting pods"},
		"no JobSets":               {kueue("frameworks", list("batch/job")), "jobset.x-k8s.io/jobset is missing"},
		"a framework twice":        {kueue("frameworks", list("batch/job", "batch/job", "jobset.x-k8s.io/jobset")), "listed twice"},
		"no duration":              {kueue("recovery_timeout", "soon"), "want a positive duration"},
		"negative timeout":         {kueue("pods_ready_timeout", "-1h"), "want a positive duration"},
		"no time at all":           {kueue("pods_ready_timeout", "1ms"), "no pod is ever ready in time"},
		"backoff in parts":         {kueue("requeue_backoff", "1500ms"), "want whole seconds"},
		"backoff above its end":    {kueue("requeue_backoff", "2h"), "above its maximum 1h0m0s"},
		"an end below its backoff": {kueue("requeue_max_backoff", "10s"), "requeue backoff 1m0s is above its maximum 10s"},
		"more than a number holds": {kueue("requeue_limit", 3000000000), "between 0 and 1000, got: 3000000000"},
		"strategy of nothing":      {kueue("fair_sharing_preemption", list("LessThanInitialShare")), "fair sharing is off"},
		"strategies turned around": {kueue("fair_sharing", true, "fair_sharing_preemption", list("LessThanInitialShare", "LessThanOrEqualToFinalShare")), "in this order"},
		"usage of no time":         {kueue("admission_fair_sharing", with("usage_half_life", "0s")), "want a positive duration"},
		"chips left out":           {kueue("excluded_resources", list("google.com/")), "chips are what queues count"},
		"no resource":              {kueue("excluded_resources", list("a b")), `excluded resource "a b": want the beginning`},
		"a resource twice":         {kueue("excluded_resources", list("cpu", "cpu")), "listed twice"},
		"a namespace's label":      {kueue("namespace_selector", with("a b", "c")), "namespace selector"},
		"undeclared":               {kueue("undeclared_resources", "maybe"), "must be one of"},
		"kept for less than no":    {kueue("workload_retention", "-1h"), "want a positive duration"},
		"no time to install":       {with("timeouts", with("create", "-5m")), "longer than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			config := with("cluster", "projects/p/locations/us-west4-a/clusters/main")
			maps.Copy(config, tt.config)
			text := strings.Join(strings.Fields(p.Validate("tpu_job_controllers", config)), " ")
			if tt.want == "" && text != "" || !strings.Contains(text, tt.want) {
				t.Errorf("said %q, want %q", text, tt.want)
			}
			for attribute := range config {
				unknown := maps.Clone(config)
				unknown[attribute] = acctest.Unknown
				if text := p.Validate("tpu_job_controllers", unknown); attribute != "cluster" && tt.want == "" && text != "" {
					t.Errorf("%s unknown: %s", attribute, text)
				}
			}
		})
	}
}
