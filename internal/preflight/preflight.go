// Package preflight looks, before a job is submitted, whether anything is in its
// way: all that can be asked is asked at the same time, and each answer is a line
// for a person. What cannot be asked is said, and holds nothing up.
//
// It only reads. It must not know Terraform or the command line.
package preflight

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Result is how a check came out.
type Result string

// The results.
const (
	Passed  Result = "passed"
	Failed  Result = "failed"  // the job could not run
	Unknown Result = "unknown" // it could not be asked, or may be mended in time
)

// Item is one check: what was looked at, and in a sentence what was found.
type Item struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Text   string `json:"text"`
}

// Checks are what a job's way is asked of. What is nil is not looked at.
type Checks struct {
	Cluster *kube.Client
	Images  Images
	Buckets Buckets
	// Provisions tells whether the cluster has, or makes on demand, node pools of
	// such slices, for clusters that have no node of them now.
	Provisions func(context.Context, accelerator.Slice) (bool, error)
}

// Images looks for container images.
type Images interface {
	// Exists returns nil for an image that is there, a *MissingError for one that
	// is not, and what was in the way of looking.
	Exists(ctx context.Context, image string) error
}

// Buckets looks at buckets of Cloud Storage.
type Buckets interface {
	// Writable tells whether the account in use may create objects. A bucket
	// that does not exist is a *MissingError.
	Writable(ctx context.Context, bucket string) (bool, error)
}

// MissingError says that something does not exist.
type MissingError struct{ What string }

func (e *MissingError) Error() string { return e.What + " does not exist" }

// grace is how much longer than the cluster registries and buckets may take to
// answer. Nobody waits for a job because of a registry that cannot be reached.
const grace = time.Second

// Run checks the way of a job. The items are in an order that does not change;
// of a cluster that does not answer nothing else is said, and nothing of what
// would be in a namespace that is not there.
func (c Checks) Run(ctx context.Context, s training.Spec) []Item {
	checks := []struct {
		run       func(context.Context, training.Spec) []Item
		elsewhere bool
	}{{run: c.namespace}, {run: c.controllers}, {run: c.queue}, {run: c.priority}, {run: c.objects}, {run: c.run}, {c.image, true}, {c.output, true}, {run: c.slices}}
	away, leave := context.WithCancel(ctx)
	defer leave()
	found := make([][]Item, len(checks))
	var cluster, others sync.WaitGroup
	for i, check := range checks {
		if check.elsewhere {
			others.Go(func() { found[i] = check.run(away, s) })
		} else {
			cluster.Go(func() { found[i] = check.run(ctx, s) })
		}
	}
	cluster.Wait()
	defer time.AfterFunc(grace, leave).Stop()
	others.Wait()
	var all []Item
	for _, items := range found {
		all = append(all, items...)
	}
	switch {
	case len(all) > 0 && all[0].Result == Failed && all[0].Name == nameCluster:
		return all[:1]
	case slices.ContainsFunc(all, func(i Item) bool { return i.Name == nameNamespace && i.Result == Failed }):
		return slices.DeleteFunc(all, func(i Item) bool { return slices.Contains(inNamespace, i.Name) })
	}
	return all
}

// errSilent is that there was no answer when nobody waited any more.
var errSilent = errors.New("no answer in time")

// await waits for an answer as long as ctx lasts, also where the question does
// not heed ctx: helpers for credentials do not. An answer that comes later is
// dropped.
func await[T any](ctx context.Context, question func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	given := make(chan answer, 1)
	go func() {
		value, err := question()
		given <- answer{value, err}
	}()
	select {
	case a := <-given:
		if a.err != nil && ctx.Err() != nil {
			a.err = errSilent
		}
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, errSilent
	}
}

// Stops are the items that the job could not get past.
func Stops(all []Item) []Item {
	var stops []Item
	for _, i := range all {
		if i.Result == Failed {
			stops = append(stops, i)
		}
	}
	return stops
}

// What is looked at.
const (
	nameCluster     = "cluster"
	nameNamespace   = "namespace"
	nameControllers = "controllers"
	nameQueue       = "queue"
	nameQuota       = "quota"
	namePriority    = "priority"
	nameAccount     = "account"
	nameSecret      = "secret"
	nameConfigMap   = "configmap"
	nameClaim       = "claim"
	nameRun         = "run"
	nameImage       = "image"
	nameOutput      = "output"
	nameSlices      = "slices"
)

// inNamespace are the checks of what is in the job's namespace.
var inNamespace = []string{nameQueue, nameQuota, nameAccount, nameSecret, nameConfigMap, nameClaim, nameRun}

func passed(name, text string) []Item  { return []Item{{name, Passed, text}} }
func failed(name, text string) []Item  { return []Item{{name, Failed, text}} }
func unknown(name, text string) []Item { return []Item{{name, Unknown, text}} }
