package fakegke

import (
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"
)

// The steps of a cluster's creation that GKE counts, in their order. A cluster
// is done when it was healthy once, of two checks at most.
const (
	configuringZonal, configuringRegional = 8, 9
	deploying                             = 11
	healthChecks, healthChecksAllowed     = 1, 2
)

// withProgress is an operation as the API shows it: the creation of a
// cluster with its progress, which is a matter of the time that has passed.
func (s *Server) withProgress(op *operation, now time.Time) *containerpb.Operation {
	if op.pb.OperationType != containerpb.Operation_CREATE_CLUSTER || op.pb.Status == containerpb.Operation_PENDING {
		return op.pb
	}
	configuring := configuringRegional
	if (place{location: op.pb.Location}).zonal() {
		configuring = configuringZonal
	}
	steps := configuring + deploying + healthChecks
	done := steps
	if op.pb.Status != containerpb.Operation_DONE {
		started, _ := time.Parse(time.RFC3339Nano, op.pb.StartTime)
		if whole := float64(duration(op)) * s.opts.scale; whole > 0 {
			// The last step is done when the operation is.
			done = min(steps-1, int(float64(steps)*float64(now.Sub(started))/whole))
		}
	}
	out := proto.CloneOf(op.pb)
	out.Progress = &containerpb.OperationProgress{}
	for _, stage := range []struct {
		name       string
		here, most int
	}{
		{"CLUSTER_CONFIGURING", configuring, configuring},
		{"CLUSTER_DEPLOYING", deploying, deploying},
		{"CLUSTER_HEALTHCHECKING", healthChecks, healthChecksAllowed},
	} {
		n := max(0, min(done, stage.here))
		done -= stage.here
		for _, metric := range []struct {
			name  string
			value int
		}{{stage.name, n}, {stage.name + "_TOTAL", stage.most}} {
			out.Progress.Metrics = append(out.Progress.Metrics, &containerpb.OperationProgress_Metric{
				Name: metric.name, Value: &containerpb.OperationProgress_Metric_IntValue{IntValue: int64(metric.value)},
			})
		}
	}
	return out
}
