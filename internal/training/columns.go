package training

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// Column is a printer column of JobSet's definition that shows what a job is
// without its object. kubectl shows it too.
type Column struct {
	Name        string
	Description string
	JSONPath    string
	Wide        bool // kubectl shows it with -o wide alone

	set func(m *metav1.PartialObjectMetadata, value string)
}

// Columns are those that tpu_job_controllers adds to JobSet's own. A server sends
// a Table of them without any object, which is a quarter of what the jobs'
// metadata is, compressed: most of that is managed fields.
func Columns() []Column {
	return []Column{
		label("Queue", "Kueue's queue that the job waits in", queue.LabelQueueName, false),
		label("Owner", "Whose job it is", LabelOwner, false),
		annotation("Slices", "How many slices it has", AnnotationSlices, false),
		annotation("Accelerator", "What kind of slice", AnnotationAccelerator, false),
		label("Experiment", "What it belongs to", LabelExperiment, true),
		label("Run", "The run that it is an attempt of", LabelRunID, true),
		label("Priority", "Its priority class in Kueue", queue.LabelPriorityClass, true),
		annotation("Cancelled", "When it was cancelled (RFC 3339)", AnnotationCancelled, true),
		{"Namespace", "Its namespace", ".metadata.namespace", true, func(m *metav1.PartialObjectMetadata, v string) { m.Namespace = v }},
		{"UID", "Its uid", ".metadata.uid", true, func(m *metav1.PartialObjectMetadata, v string) { m.UID = types.UID(v) }},
		{"Created", "When it was made (RFC 3339)", ".metadata.creationTimestamp", true, func(m *metav1.PartialObjectMetadata, v string) {
			if t, err := time.Parse(time.RFC3339, v); err == nil {
				m.CreationTimestamp = metav1.NewTime(t)
			}
		}},
	}
}

func label(name, description, key string, wide bool) Column {
	return Column{name, description, ".metadata.labels." + escaped(key), wide, func(m *metav1.PartialObjectMetadata, v string) { m.Labels[key] = v }}
}

func annotation(name, description, key string, wide bool) Column {
	return Column{name, description, ".metadata.annotations." + escaped(key), wide, func(m *metav1.PartialObjectMetadata, v string) { m.Annotations[key] = v }}
}

// escaped is a key as JSONPath wants it.
func escaped(key string) string { return strings.ReplaceAll(key, ".", `\.`) }

// metaOf is what a row that has Columns tells of its job.
func metaOf(cell func(name string) string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: cell("Name"), Labels: map[string]string{}, Annotations: map[string]string{}}}
	for _, c := range Columns() {
		if v := cell(c.Name); v != "" {
			c.set(m, v)
		}
	}
	return m
}
