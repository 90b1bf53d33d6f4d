package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/preflight"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Maker is what making a job takes of a cluster beside the submission.
type Maker interface {
	// Preflight looks whether anything is in the job's way; as
	// preflight.Checks.Run.
	Preflight(ctx context.Context, s training.Spec) []preflight.Item
	// Namespace looks whether a namespace is there; as preflight.Checks.Namespace.
	Namespace(ctx context.Context, name string) []preflight.Item
	// Account is whom the cluster takes us for.
	Account(ctx context.Context) (string, error)
	// Spec, Past, Cancel and Annotate are ReadSpec, ReadPast, Cancel and Annotate
	// of internal/training.
	Spec(ctx context.Context, key types.NamespacedName) (training.Spec, error)
	Past(ctx context.Context, namespace, runID string) (training.Past, error)
	Cancel(ctx context.Context, key types.NamespacedName, now time.Time) error
	Annotate(ctx context.Context, key types.NamespacedName, labels, annotations map[string]*string) error
}

func (c cluster) Spec(ctx context.Context, key types.NamespacedName) (training.Spec, error) {
	return training.ReadSpec(ctx, c.client, key)
}

func (c cluster) Past(ctx context.Context, namespace, runID string) (training.Past, error) {
	return training.ReadPast(ctx, c.client, namespace, runID)
}

func (c cluster) Cancel(ctx context.Context, key types.NamespacedName, now time.Time) error {
	return training.Cancel(ctx, c.client, key, now)
}

func (c cluster) Annotate(ctx context.Context, key types.NamespacedName, labels, annotations map[string]*string) error {
	return training.Annotate(ctx, c.client, key, labels, annotations)
}

func (c cluster) Preflight(ctx context.Context, s training.Spec) []preflight.Item {
	return c.checks.Run(ctx, s)
}

func (c cluster) Namespace(ctx context.Context, name string) []preflight.Item {
	return c.checks.Namespace(ctx, name)
}

func (c cluster) Account(ctx context.Context) (string, error) { return c.client.Account(ctx) }

// signs of the results of a check.
var signs = map[preflight.Result]struct {
	sign  string
	style term.Style
}{
	preflight.Passed:  {"✓", term.Good},
	preflight.Failed:  {"✗", term.Bad},
	preflight.Unknown: {"?", term.Wait},
}

// checkLine is a check for a person.
func checkLine(s *term.Streams, i preflight.Item) string {
	sign := signs[i.Result]
	return fmt.Sprintf("%s %-12s %s", s.Paint(sign.style, sign.sign), i.Name, i.Text)
}

// blockedError says that a job was not submitted, because of what its preflight
// found.
type blockedError struct {
	job, more string
	items     []preflight.Item
}

func (e *blockedError) Error() string {
	return fmt.Sprintf("job %s was not submitted: %s in its way%s", e.job, plural(len(preflight.Stops(e.items)), "thing"), e.more)
}

// Fields are what a program reads of the error.
func (e *blockedError) Fields() map[string]any {
	return map[string]any{"kind": "preflight", "preflight": e.items}
}

// tell shows checks on standard error: all of them to a person, else only those
// that did not pass. A program reads them in the error.
func (o *submission) tell(items []preflight.Item) {
	s := o.Streams
	if o.format == output.JSON {
		return
	}
	var b strings.Builder
	for _, i := range items {
		if s.Width > 0 || i.Result != preflight.Passed {
			b.WriteString(checkLine(s, i) + "\n")
		}
	}
	_, _ = s.Err.Write([]byte(b.String())) // nobody to tell of it
}
