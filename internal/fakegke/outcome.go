package fakegke

import (
	"errors"
	"regexp"
	"strconv"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/genproto/googleapis/rpc/code"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// finish ends an operation in next: DONE, and its target as it is from now on.
// end is the endpoint of a cluster that was created.
func finish(next state, path string, end Endpoint, failure error) {
	op := *next.operations[path]
	op.pb = proto.CloneOf(op.pb)
	op.pb.Status = containerpb.Operation_DONE
	op.pb.EndTime = time.Now().UTC().Format(time.RFC3339Nano)
	if failure != nil {
		c := code.Code_INTERNAL
		var stock *stockoutError
		switch {
		case errors.As(failure, &stock):
			c = stock.code
		case errors.Is(failure, errAborted):
			c = code.Code_CANCELLED
		}
		op.pb.Error = &rpcstatus.Status{Code: int32(c), Message: failure.Error()}
		op.pb.StatusMessage = failure.Error() // the older field carries the text too
	}
	if op.pool != "" {
		finishPool(next, &op, failure)
	} else {
		finishCluster(next, &op, end, failure)
	}
	op.afterCluster, op.afterPool = nil, nil
	next.operations[path] = &op
}

func finishCluster(next state, op *operation, end Endpoint, failure error) {
	create := op.pb.OperationType == containerpb.Operation_CREATE_CLUSTER
	c := proto.CloneOf(op.afterCluster)
	switch {
	case failure != nil:
		c = proto.CloneOf(next.clusters[op.cluster])
		failCluster(c, failure)
	case c == nil:
		delete(next.clusters, op.cluster)
		for _, path := range next.poolsOf(op.cluster) {
			delete(next.pools, path)
		}
		return
	default:
		c.Status = containerpb.Cluster_RUNNING
		if !create { // a restart meanwhile may have moved the API server
			now := next.clusters[op.cluster]
			end = Endpoint{Host: now.Endpoint, CA: caOf(now)}
		}
		setEndpoint(c, end)
		c.Etag = etag(c)
	}
	next.clusters[op.cluster] = c
	if !create {
		return
	}
	for _, path := range next.poolsOf(op.cluster) {
		p := proto.CloneOf(next.pools[path])
		p.Status = containerpb.NodePool_RUNNING
		if failure != nil {
			failPool(p, containerpb.NodePool_ERROR, failure)
		}
		p.Etag = etag(p)
		next.pools[path] = p
	}
}

func finishPool(next state, op *operation, failure error) {
	var stock *stockoutError
	p := proto.CloneOf(op.afterPool)
	switch {
	case errors.As(failure, &stock):
		p = proto.CloneOf(stock.pool)
	case failure != nil:
		status := containerpb.NodePool_RUNNING_WITH_ERROR
		if t := op.pb.OperationType; t == containerpb.Operation_CREATE_NODE_POOL || t == containerpb.Operation_DELETE_NODE_POOL {
			status = containerpb.NodePool_ERROR
		}
		p = proto.CloneOf(next.pools[op.pool])
		failPool(p, status, failure)
	case p == nil:
		delete(next.pools, op.pool)
		return
	default:
		p.Status, p.StatusMessage, p.Conditions = containerpb.NodePool_RUNNING, "", nil
	}
	p.Etag = etag(p)
	next.pools[op.pool] = p
}

// failPool marks a pool, which nobody else holds, as broken.
func failPool(p *containerpb.NodePool, status containerpb.NodePool_Status, err error) {
	p.Status, p.StatusMessage = status, err.Error()
	p.Conditions = []*containerpb.StatusCondition{{Message: err.Error(), CanonicalCode: code.Code_INTERNAL}}
}

// stockoutError ends the creation of a pool for which there was no capacity.
type stockoutError struct {
	text string
	code code.Code
	pool *containerpb.NodePool // as it is left behind
}

func (e *stockoutError) Error() string { return e.text }

// outOfStock is the end of a pool's creation whose instances do not come up. A
// multi-host slice is all or nothing; other pools keep those that did.
func outOfStock(op *operation, o Stockout) *stockoutError {
	p := proto.CloneOf(op.afterPool)
	cause := o.Trouble.words(instanceOf(op.pool, o.Zone, 0), projectOf(op.cluster), o.Zone)
	condition := o.Trouble.condition("")
	e := &stockoutError{pool: p, code: condition.CanonicalCode}
	expected := int(p.InitialNodeCount)
	p.Status = containerpb.NodePool_ERROR
	if _, ok := sliceOf(p); ok {
		e.text = "Google Compute Engine: Atomic resize failed with " + cause
	} else {
		up := min(o.Running, expected)
		e.text = "Google Compute Engine: " + shortText(o.Trouble.time(), expected, up, cause)
		if up > 0 {
			p.Status = containerpb.NodePool_RUNNING_WITH_ERROR
		}
	}
	condition.Message, p.StatusMessage = e.text, e.text
	p.Conditions = []*containerpb.StatusCondition{condition}
	return e
}

// tryForCapacity is the part of a pool's creation that a stockout prolongs: it
// returns nil when there is capacity, at once or when the time is up.
func (s *Server) tryForCapacity(op *operation, started time.Time) error {
	o, ok := s.stockout(op.pool, op.afterPool)
	if !ok {
		return nil
	}
	// The pool and the operation tell of it long before the end.
	condition := outOfStock(op, o).pool.Conditions[0]
	s.settle(func(next state) {
		if p := proto.CloneOf(next.pools[op.pool]); p != nil {
			p.Conditions = []*containerpb.StatusCondition{condition}
			next.pools[op.pool] = p
		}
		for path, other := range next.operations {
			if other.pb.Name == op.pb.Name {
				changed := *other
				changed.pb = proto.CloneOf(other.pb)
				changed.pb.NodepoolConditions = []*containerpb.StatusCondition{condition}
				next.operations[path] = &changed
			}
		}
	})
	// Cancelling is accepted and does not cut this short.
	if err := s.wait(s.ctx, started, o.Trouble.time()); err != nil {
		return err
	}
	o, still := s.stockout(op.pool, op.afterPool)
	if !still {
		return nil
	}
	end := outOfStock(op, o)
	if hasNodes(end.pool) {
		if err := s.setNodes(s.ctx, op.pool, end.pool); err != nil {
			return err
		}
	}
	return end
}

var runningCount = regexp.MustCompile(`running (\d+), transitioning`)

// shortfall is how many instances per zone of a pool in RUNNING_WITH_ERROR are
// up: its message is the only place that says so.
func shortfall(p *containerpb.NodePool) int {
	if m := runningCount.FindStringSubmatch(p.StatusMessage); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return int(p.InitialNodeCount)
}
