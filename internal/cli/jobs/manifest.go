package jobs

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// print shows a JobSet: as YAML for people too. As Terraform has it, the job is
// what it was submitted as.
func (o *submission) print(spec training.Spec, js *jobset.JobSet) error {
	if o.dryRun == dryClient && spec.Owner == "" && o.format != output.Name && o.format != output.JSON {
		fmt.Fprintf(o.Streams.Err, "The owner is left out: only the cluster knows whose these credentials are. --dry-run=%s asks it, --owner names one.\n", dryServer)
	}
	if o.format == output.HCL {
		cluster := ""
		if strings.Contains(o.target.Cluster, "/") {
			cluster = o.target.Cluster
		}
		_, err := o.Streams.Out.Write(jobfile.HCL(spec, cluster))
		return err
	}
	data, err := manifest(js)
	if err != nil {
		return fmt.Errorf("printing job %s/%s: %w", js.Namespace, js.Name, err)
	}
	format := o.format
	if format != output.JSON && format != output.Name {
		format = output.YAML
	}
	return output.Print(o.Streams, format, output.View{Data: data, Names: []string{js.Namespace + "/" + js.Name}})
}

// manifest is a JobSet as it would be applied: without what a server writes.
func manifest(js *jobset.JobSet) (map[string]any, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(js)
	if err != nil {
		return nil, err
	}
	object["apiVersion"], object["kind"] = jobset.SchemeGroupVersion.String(), "JobSet"
	delete(object, "status")
	if meta, ok := object["metadata"].(map[string]any); ok {
		for _, written := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
			delete(meta, written)
		}
	}
	return object, nil
}
