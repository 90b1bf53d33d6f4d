package preflight

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// run looks whether another job is at the run that this one names: the two
// would write to one OUTPUT_DIR. The job of the same name is another question,
// which its creation answers.
func (c Checks) run(ctx context.Context, s training.Spec) []Item {
	if s.RunID == "" {
		return nil
	}
	past, err := training.ReadPast(ctx, c.Cluster, s.Namespace, s.RunID)
	switch {
	case apierrors.IsForbidden(err):
		return unknown(nameRun, s.RunID+": this account may not look at the jobs of namespace "+s.Namespace)
	case err != nil:
		return unknown(nameRun, s.RunID+": "+plain(err))
	}
	for _, other := range past.Unfinished {
		if other.Name == s.Name {
			continue
		}
		path := other.Namespace + "/" + other.Name
		return failed(nameRun, fmt.Sprintf("job %s of run %s is not over (%s), and both would write to one OUTPUT_DIR: wait for it, or end it (tpuctl cancel %s) and go on with its run (tpuctl continue %s)",
			path, s.RunID, other.State, path, path))
	}
	return passed(nameRun, s.RunID)
}
