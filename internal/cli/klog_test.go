package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
)

// What Kubernetes' libraries log is for -v.
func TestLibrariesAreQuiet(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		s, _, stderr := clitest.Streams(0, false)
		logger(s, verbose)
		klog.Background().WithName("a").WithValues("kind", "JobSet").Error(errors.New("no answer"), "a library's words")
		klog.Errorf("its %s words", "other")
		runtime.HandleErrorWithContext(context.Background(), errors.New("unheard"), "its error")
		for _, want := range []string{"kind=JobSet error=\"no answer\"", "its other words", "its error"} {
			if verbose != strings.Contains(stderr.String(), want) {
				t.Errorf("-v %t: %q in\n%s", verbose, want, stderr)
			}
		}
	}
}
