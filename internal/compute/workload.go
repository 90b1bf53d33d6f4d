package compute

import (
	"context"
	"errors"

	"github.com/googleapis/gax-go/v2"
	compute "google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

const highThroughput = "HIGH_THROUGHPUT"

func (c *Client) get(ctx context.Context, verb string, p Policy) (*compute.ResourcePolicy, error) {
	return call(ctx, c, target{verb, p}, func(ctx context.Context) (*compute.ResourcePolicy, error) {
		return c.api.get(ctx, p)
	})
}

// EnsureWorkloadPolicy makes the policy unless it is there, and waits until it
// can be used. One that is there is taken as it is, whoever made it, if it
// places the same slices.
func (c *Client) EnsureWorkloadPolicy(ctx context.Context, p Policy) error {
	t := target{"making workload policy", p}
	for {
		found, err := c.get(ctx, "looking for workload policy", p)
		switch {
		case errors.Is(err, gke.NotFound):
			err := c.insert(ctx, t)
			if !errors.Is(err, gke.AlreadyExists) {
				return err
			}
			// Made meanwhile, or by a request whose reply was lost: look again.
		case err != nil:
			return err
		case found.Status != "CREATING" && found.Status != "DELETING":
			var w compute.ResourcePolicyWorkloadPolicy
			if found.WorkloadPolicy != nil {
				w = *found.WorkloadPolicy
			}
			if why := p.differs(w.Type, w.AcceleratorTopology); why != "" {
				return t.failed(gke.AlreadyExists, why, nil)
			}
			return nil
		}
		if gax.Sleep(ctx, c.cfg.PollInterval) != nil {
			return t.ended(ctx, "", ctx.Err())
		}
	}
}

func (c *Client) insert(ctx context.Context, t target) error {
	op, err := call(ctx, c, t, func(ctx context.Context) (*compute.Operation, error) {
		return c.api.insert(ctx, t.p, &compute.ResourcePolicy{
			Name:           t.p.Name,
			Description:    t.p.Owner.description(),
			WorkloadPolicy: &compute.ResourcePolicyWorkloadPolicy{Type: highThroughput, AcceleratorTopology: t.p.Topology},
		})
	})
	if err != nil {
		return err
	}
	return c.await(ctx, t, op)
}

// await waits for an operation of a region to end. Each request waits on the
// server's side, for two minutes at most.
func (c *Client) await(ctx context.Context, t target, op *compute.Operation) error {
	for op.Status != "DONE" {
		name := op.Name
		var err error
		if op, err = call(ctx, c, t, func(ctx context.Context) (*compute.Operation, error) {
			return c.api.wait(ctx, t.p, name)
		}); err != nil {
			return err
		}
	}
	c.log(ctx, "operation ended", map[string]any{"operation": op.Name, "call": t.verb, "object": t.path()})
	if op.Error == nil || len(op.Error.Errors) == 0 {
		return nil
	}
	first := op.Error.Errors[0]
	return wrap(t, &googleapi.Error{
		Code: int(op.HttpErrorStatusCode), Message: first.Message,
		Errors: []googleapi.ErrorItem{{Reason: first.Code, Message: first.Message}},
	})
}

// Owned tells whether the policy is there and was made for its owner's pool.
func (c *Client) Owned(ctx context.Context, p Policy) (bool, error) {
	found, err := c.get(ctx, "reading workload policy", p)
	if errors.Is(err, gke.NotFound) {
		return false, nil
	}
	return err == nil && p.Owner.made(found.Description), err
}

// Topology is that of the slices which a policy places, whoever made it.
func (c *Client) Topology(ctx context.Context, p Policy) (string, error) {
	found, err := c.get(ctx, "reading workload policy", p)
	if err != nil {
		return "", err
	}
	if found.WorkloadPolicy == nil || found.WorkloadPolicy.AcceleratorTopology == "" {
		return "", target{"reading workload policy", p}.failed(gke.Invalid, "it is not a workload policy with an accelerator topology", nil)
	}
	return found.WorkloadPolicy.AcceleratorTopology, nil
}

// releases is how often the deletion of a policy is tried that is in use:
// Compute Engine may take a moment to see that the instances are gone.
const releases = 5

// DeleteWorkloadPolicy removes the policy if it was made for its owner's pool,
// and waits until it is gone. One that is gone already is no error; one that
// somebody else made is left alone. A policy that stays in use, by instances
// that are not its pool's, is left too: kept says so.
func (c *Client) DeleteWorkloadPolicy(ctx context.Context, p Policy) (kept bool, err error) {
	owned, err := c.Owned(ctx, p)
	if err != nil || !owned {
		return false, err
	}
	t, pace := target{"removing workload policy", p}, c.pace()
	for try := 1; ; try++ {
		op, err := call(ctx, c, t, func(ctx context.Context) (*compute.Operation, error) {
			return c.api.remove(ctx, p)
		})
		if err == nil {
			err = c.await(ctx, t, op)
		}
		switch {
		case err == nil || errors.Is(err, gke.NotFound):
			return false, nil
		case !errors.Is(err, InUse):
			return false, err
		case try >= releases:
			return true, nil
		}
		if gax.Sleep(ctx, pace.Pause()) != nil {
			return false, t.ended(ctx, "", ctx.Err())
		}
	}
}
