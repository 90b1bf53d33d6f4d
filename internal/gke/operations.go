package gke

import (
	"context"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// operate starts an operation on a cluster when the cluster's scheduler lets
// it, and waits for its end. started, if not nil, is called once GKE has
// accepted it. An interrupt ends the wait; the operation goes on in GKE and
// keeps its slot.
func (c *Client) operate(ctx context.Context, cluster ClusterName, t target, started func(), start func(context.Context) (*containerpb.Operation, error)) (err error) {
	s, w := c.schedulerOf(cluster), newWaiter(t)
	s.begin(ctx, w)
	defer func() { s.finish(ctx, w, err) }()
	var refusal error
	for {
		if s.wait(ctx, w, refusal != nil) != nil {
			return notBegun(ctx, t, refusal)
		}
		op, err := send(ctx, c, t, start)
		switch cause(err) {
		case TooManyOps, Incompatible:
			c.log(ctx, "operation refused for now", map[string]any{"call": t.verb, "object": t.object, "answer": err.Error()})
			s.putOff(w, err)
			refusal = err
			continue
		}
		if err != nil {
			s.notStarted(w, lost(err))
			return err
		}
		name := op.GetName()
		s.started(w, name)
		if started != nil {
			started()
		}
		c.log(ctx, "operation started", map[string]any{"operation": name, "call": t.verb, "object": t.object})
		op, err = c.watch(ctx, cluster.Parent(), t, op)
		if err != nil {
			return err
		}
		s.over(w, name)
		return c.judge(ctx, t, op)
	}
}

// lost tells whether GKE may have taken a request all the same.
func lost(err error) bool {
	switch cause(err) {
	case Interrupted, TimedOut, Unreachable, Unavailable:
		return true
	}
	return false
}

func notBegun(ctx context.Context, t target, refusal error) error {
	e := &Error{Verb: t.verb, Object: t.object, Zone: t.zone, Cause: causeOfContext(ctx), Message: "before it began", Err: refusal}
	if refusal != nil {
		_ = amend(refusal, func(last *Error) { e.Message += "; GKE's last answer: " + last.Message })
	}
	return e
}

// await waits for an operation of a location to end.
func (c *Client) await(ctx context.Context, parent string, t target, op *containerpb.Operation) error {
	op, err := c.watch(ctx, parent, t, op)
	if err != nil {
		return err
	}
	return c.judge(ctx, t, op)
}

// watch returns an operation as it ended. The error says that its end is not
// known.
func (c *Client) watch(ctx context.Context, parent string, t target, op *containerpb.Operation) (*containerpb.Operation, error) {
	if op.GetStatus() == containerpb.Operation_DONE {
		return op, nil
	}
	p := c.pollerOf(parent)
	end := p.add(ctx, op, t)
	select {
	case r := <-end:
		return r.op, r.err
	case <-ctx.Done():
		p.drop(op.GetName(), end)
		return nil, &Error{Verb: t.verb, Object: t.object, Zone: t.zone, Cause: causeOfContext(ctx),
			Message: "operation " + op.GetName() + " goes on in GKE", Err: ctx.Err()}
	}
}

// judge turns the end of an operation into its error.
func (c *Client) judge(ctx context.Context, t target, op *containerpb.Operation) error {
	c.log(ctx, "operation ended", map[string]any{"operation": op.GetName(), "call": t.verb, "object": t.object})
	if e := op.GetError(); e.GetCode() != 0 {
		return operationError(t.verb, t.object, t.zone, e.GetCode(), e.GetMessage())
	}
	if m := op.GetStatusMessage(); m != "" { // what GKE filled before there was Error
		return operationError(t.verb, t.object, t.zone, 0, m)
	}
	return nil
}

// ListOperations lists the running and recent operations of a location
// (projects/P/locations/L).
func (c *Client) ListOperations(ctx context.Context, parent string) ([]*containerpb.Operation, error) {
	r, err := call(ctx, c, target{verb: "listing operations of", object: parent}, func(ctx context.Context) (*containerpb.ListOperationsResponse, error) {
		return c.api.ListOperations(ctx, &containerpb.ListOperationsRequest{Parent: parent})
	})
	return r.GetOperations(), err
}

func (c *Client) getOperation(ctx context.Context, name string) (*containerpb.Operation, error) {
	return call(ctx, c, target{verb: "reading operation", object: name}, func(ctx context.Context) (*containerpb.Operation, error) {
		return c.api.GetOperation(ctx, &containerpb.GetOperationRequest{Name: name})
	})
}
