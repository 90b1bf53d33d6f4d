package jobset_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	jobsetv1 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"

	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/jobset"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Arguments that a job file has no use for, and keys that stand for others.
var (
	onlyHere  = []string{"cluster", "active", "rerun_trigger", "wait_for", "timeouts"}
	onlyFiles = []string{"set", "aliases", "env_files", "local_files", "tags", "note"}
)

// A job file has a key for every argument, and each means the same. An argument
// that is new here goes into jobfile.Job, its Spec and From.
func TestJobFilesHaveEveryArgument(t *testing.T) {
	var about resource.SchemaResponse
	jobset.NewResource().Schema(t.Context(), resource.SchemaRequest{}, &about)
	inputs := map[string]tftypes.Type{}
	for name, a := range about.Schema.Attributes {
		if (a.IsOptional() || a.IsRequired()) && !slices.Contains(onlyHere, name) {
			inputs[name] = a.GetType().TerraformType(t.Context())
		}
	}
	text, err := jobfile.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for _, key := range onlyFiles {
		delete(schema["properties"].(map[string]any), key)
	}
	sameKeys(t, "", inputs, schema)
}

func sameKeys(t *testing.T, at string, attributes map[string]tftypes.Type, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(attributes)), slices.Sorted(maps.Keys(properties))); diff != "" {
		t.Errorf("%s (-arguments of the resource +keys of a job file):\n%s", at, diff)
	}
	for name, typ := range attributes {
		below, _ := properties[name].(map[string]any)
		for {
			switch of := typ.(type) {
			case tftypes.Map:
				typ, below = of.ElementType, under(below, "additionalProperties")
				continue
			case tftypes.List:
				typ, below = of.ElementType, under(below, "items")
				continue
			case tftypes.Object:
				sameKeys(t, at+name+".", of.AttributeTypes, below)
			}
			break
		}
	}
}

func under(schema map[string]any, key string) map[string]any {
	below, _ := schema[key].(map[string]any)
	return below
}

// configOf is what Terraform makes of a resource that was written as HCL.
func configOf(t rapid.TB, text []byte) object {
	t.Helper()
	file, diags := hclsyntax.ParseConfig(text, "job.tf", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, text)
	}
	scope := &hcl.EvalContext{Functions: map[string]function.Function{"jsonencode": stdlib.JSONEncodeFunc}}
	all := map[string]cty.Value{}
	for name, a := range file.Body.(*hclsyntax.Body).Blocks[0].Body.Attributes {
		v, diags := a.Expr.Value(scope)
		if diags.HasErrors() {
			t.Fatalf("%s: %v\n%s", name, diags, text)
		}
		all[name] = v
	}
	b, err := ctyjson.Marshal(cty.ObjectVal(all), cty.DynamicPseudoType)
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Value object }
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out.Value
}

// rendered are a job's objects by the provider's function.
func (s *scene) rendered(t rapid.TB, config object) (js jobsetv1.JobSet, files corev1.ConfigMap) {
	t.Helper()
	text, refused := s.p.Call("render_jobset", config)
	if refused != "" {
		t.Fatalf("refused: %s", refused)
	}
	parts := strings.Split(text.(string), "---\napiVersion: v1\n")
	if err := yaml.UnmarshalStrict([]byte(parts[0]), &js); err != nil {
		t.Fatal(err)
	}
	if len(parts) > 1 {
		if err := yaml.UnmarshalStrict([]byte("apiVersion: v1\n"+parts[1]), &files); err != nil {
			t.Fatal(err)
		}
	}
	return js, files
}

// equal: the JobSet, with its metadata, and the files. Of one that was written
// as text, quantities and empty maps are the same in another form.
func equal(t rapid.TB, what string, want, got any) {
	t.Helper()
	a, errA := yaml.Marshal(want)
	b, errB := yaml.Marshal(got)
	if errA != nil || errB != nil {
		t.Fatalf("%v, %v", errA, errB)
	}
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Fatalf("%s (-submitted +rendered by the provider):\n%s", what, diff)
	}
}

// jobs: those of the examples, and one with every input.
func (s *scene) jobs() map[string]jobfile.Job {
	all := map[string]jobfile.Job{}
	r := jobfile.Reader{File: os.ReadFile, Variable: os.LookupEnv}
	for _, name := range []string{"train", "eval", "pathways"} {
		job, _, err := r.Load("../../../examples/jobs/"+name+".yaml", name)
		if err != nil {
			s.t.Fatal(err)
		}
		all[name] = job
	}
	arguments := s.everything()
	delete(arguments, "cluster")
	delete(arguments, "wait_for")
	var overrides object
	if err := json.Unmarshal([]byte(arguments["jobset_overrides"].(string)), &overrides); err != nil {
		s.t.Fatal(err)
	}
	arguments["jobset_overrides"] = overrides
	text, err := yaml.Marshal(arguments)
	if err != nil {
		s.t.Fatal(err)
	}
	if all["everything"], _, err = jobfile.Decode("everything.yaml", text); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// What `tpuctl submit` creates is what tpu_training_jobset creates of the same
// job: the whole object, metadata too, but for what the API server writes.
func TestSubmittedIsWhatIsApplied(t *testing.T) {
	s := newScene(t)
	for name, job := range s.jobs() {
		t.Run(name, func(t *testing.T) {
			job.Owner = "team"
			submitted, applied := both(t, job, "")
			equal(t, name, submitted, applied)
		})
	}
}

// Where nobody is named as the owner, it is the account in use that submits,
// and the provider's owner where Terraform applies: then these keys differ, and
// nothing else.
func TestWhatDiffersByTheOwner(t *testing.T) {
	job := newScene(t).jobs()["train"]
	job.Owner = ""
	submitted, applied := both(t, job, "ada-example.com")
	differ := func(a, b map[string]string) (keys []string) {
		for key := range a {
			if a[key] != b[key] {
				keys = append(keys, key)
			}
		}
		if len(a) != len(b) {
			t.Errorf("%v, %v", a, b)
		}
		return slices.Sorted(slices.Values(keys))
	}
	owner := []string{training.LabelOwner}
	if submitted.Labels[training.LabelOwner] != "ada-example.com" || applied.Labels[training.LabelOwner] != "team" {
		t.Errorf("owners %s and %s", submitted.Labels[training.LabelOwner], applied.Labels[training.LabelOwner])
	}
	if diff := cmp.Diff(owner, differ(submitted.Labels, applied.Labels)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{training.AnnotationSpec, training.AnnotationSpecHash}, differ(submitted.Annotations, applied.Annotations)); diff != "" {
		t.Error(diff)
	}
	for i := range submitted.Spec.ReplicatedJobs {
		a, b := &submitted.Spec.ReplicatedJobs[i].Template, &applied.Spec.ReplicatedJobs[i].Template
		if diff := cmp.Diff(owner, differ(a.Spec.Template.Labels, b.Spec.Template.Labels)); diff != "" {
			t.Error(diff)
		}
		a.Spec.Template.Labels = b.Spec.Template.Labels
	}
	submitted.Labels, submitted.Annotations = applied.Labels, applied.Annotations
	equal(t, "the rest", submitted, applied)
}

// both are a job as tpuctl submits it, for an account where it names no owner,
// and as the provider applies it, without what the API server writes.
func both(t *testing.T, job jobfile.Job, account string) (submitted, applied *jobsetv1.JobSet) {
	t.Helper()
	s, other := newScene(t), newScene(t)
	job.Name, job.Queue = "train", "research"
	spec, err := job.Spec()
	if err != nil {
		t.Fatal(err)
	}
	config := configOf(t, jobfile.HCL(spec, s.cluster))
	config["wait_for"] = "created"
	s.apply(nil, config)
	if spec.Owner == "" {
		spec.Owner = account
	}
	if _, err := training.Submit(t.Context(), other.k, spec); err != nil {
		t.Fatal(err)
	}
	submitted, applied = other.js(), s.js()
	for _, js := range []*jobsetv1.JobSet{applied, submitted} {
		js.UID, js.ResourceVersion, js.CreationTimestamp, js.Generation = "", "", submitted.CreationTimestamp, 0
	}
	return submitted, applied
}

// So it is for random jobs.
func TestRandomJobsAreRenderedAlike(t *testing.T) {
	s := newScene(t)
	rapid.Check(t, func(t *rapid.T) {
		spec, err := drawJob(t).Spec()
		if err != nil {
			t.Fatal(err)
		}
		js, files := s.rendered(t, configOf(t, jobfile.HCL(spec, s.cluster)))
		own := spec.JobSet()
		js.TypeMeta = own.TypeMeta
		equal(t, "the JobSet", own, &js)
		if cm := spec.FilesObject(nil); cm != nil {
			equal(t, "the files", cm, &files)
		}
	})
}

func drawJob(t *rapid.T) jobfile.Job {
	text := rapid.SampledFrom([]string{"a", "x y", "$(A)", "${b} %{c} $${d}", "ä\"'\n\ttwo", "--flag=1"})
	word := rapid.StringMatching(`[a-z]{1,6}`)
	texts := func(name string) map[string]string { return rapid.MapOfN(word, text, 0, 3).Draw(t, name) }
	list := func(name string) []string { return rapid.SliceOfN(text, 0, 3).Draw(t, name) }
	words := func(name string) map[string]string { return rapid.MapOfN(word, word, 0, 2).Draw(t, name) }
	number := func(name string, from, to int) *int { n := rapid.IntRange(from, to).Draw(t, name); return &n }
	yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
	j := jobfile.Job{
		Name: "train", Namespace: "research", Queue: rapid.SampledFrom([]string{"research", jobfile.QueueNone}).Draw(t, "queue"),
		Accelerator: rapid.SampledFrom([]string{"v5litepod-16", "v6e-8", "v4-8", "v5p-128", "tpu7x-16", "v6e-4x4"}).Draw(t, "accelerator"),
		Slices:      number("slices", 1, 3), Image: "train:1", Args: list("args"), Env: texts("env"),
		ServiceAccount: "trainer", RunID: rapid.SampledFrom([]string{"", "run"}).Draw(t, "run"), OutputDir: rapid.SampledFrom([]string{"", "gs://runs/c"}).Draw(t, "dir"),
		Owner: word.Draw(t, "owner"), Labels: words("labels"), Annotations: texts("annotations"), PodAnnotations: texts("pod annotations"),
		HostNetwork: yes("network"), Tags: rapid.SliceOfNDistinct(word, 0, 2, rapid.ID).Draw(t, "tags"), Note: text.Draw(t, "note"),
		TTL: jobfile.Duration(rapid.SampledFrom([]string{"", "1h", "90s"}).Draw(t, "ttl")),
	}
	if yes("a script") {
		j.Shell, j.Args = text.Draw(t, "shell"), nil
	} else if yes("settings") {
		j.Settings = texts("settings")
	}
	if yes("files") {
		j.Files = map[string]string{"/etc/a": text.Draw(t, "file"), "/etc/b": ""}
	}
	if yes("resources") {
		j.Resources = &jobfile.Resources{CPU: "1500m", Memory: "10Gi"}
	}
	if yes("a policy") {
		j.Restart = &jobfile.Restart{MaxRestarts: number("restarts", 0, 5), FatalExitCodes: rapid.SliceOfNDistinct(rapid.Int32Range(1, 255), 0, 4, rapid.ID).Draw(t, "codes"),
			OnPreemption: rapid.SampledFrom(training.OnPreemptions).Draw(t, "on preemption")}
	}
	if yes("sources") {
		j.EnvFrom = []jobfile.EnvFrom{{Secret: "s", Prefix: "P_", Optional: yes("optional")}, {ConfigMap: "c"}}
	}
	if yes("volumes") {
		j.Volumes = map[string]jobfile.Volume{"b": {Path: "/b", Bucket: "bucket", MountOptions: []string{"implicit-dirs"}, ReadOnly: yes("read only")}, "m": {Path: "/m", Memory: "1Gi"},
			"n": {Path: "/n", NFS: &jobfile.NFS{Server: "10.0.0.2", Path: "/n"}}}
	}
	if yes("further jobs") {
		j.Jobs = map[string]jobfile.Further{"eval": {Pods: number("pods", 1, 3), Command: []string{"eval"}, Env: texts("its env"), OnFailure: rapid.SampledFrom(training.OnFailures).Draw(t, "on failure")}}
		j.StartsAfter = map[string]string{"eval": "ready"}
	}
	if yes("placement") {
		j.Placement = &jobfile.Placement{Provisioning: rapid.SampledFrom([]string{"", "spot", "on_demand"}).Draw(t, "provisioning")}
	}
	if yes("a part") {
		j.Queue, j.Accelerator, j.Placement = "research", "v6e-16", &jobfile.Placement{Pool: rapid.SampledFrom([]string{"v6e-64", "v6e-8x8"}).Draw(t, "pool")}
	} else if yes("Pathways") {
		j.Accelerator = "v6e-16"
		j.Pathways = &jobfile.Pathways{Scratch: "gs://scratch", ProxyArgs: list("proxy"), WorkerArgs: list("workers"), ElasticSlices: number("elastic", 0, 1),
			ServerResources: &jobfile.Resources{CPU: "2"}, HeadNodeSelector: words("heads"), ColocatedPython: rapid.SampledFrom([]string{"", "python:1"}).Draw(t, "colocated")}
		if j.Restart != nil && *j.Pathways.ElasticSlices > 0 {
			j.Restart.OnPreemption = string(training.PreemptionRestarts)
		}
	}
	if yes("overrides") {
		j.Overrides = object{"spec": object{"coordinator": object{"replicatedJob": "slice", "jobIndex": rapid.IntRange(0, 9).Draw(t, "index")}}, "metadata": object{"labels": words("other labels")}}
	}
	return j
}

// A job without a cluster is given one by a variable.
func TestHCLWithoutACluster(t *testing.T) {
	s := newScene(t)
	spec, err := jobfile.Job{Name: "a-b", Accelerator: "v6e-8", Image: "i"}.Spec()
	if err != nil {
		t.Fatal(err)
	}
	text := string(jobfile.HCL(spec, ""))
	for _, want := range []string{`resource "tpu_training_jobset" "a_b" {`, "= var.cluster\n", `= "v6e-8"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if !strings.Contains(fmt.Sprint(configOf(t, jobfile.HCL(spec, s.cluster))["cluster"]), s.cluster) {
		t.Error("the cluster is not named")
	}
}
