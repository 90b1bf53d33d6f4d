package gke

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/googleapi"
)

// attempts is how often a request is sent whose answer did not come or was
// that the service has a problem. A request that is refused only for now (busy
// cluster, throttling) is sent until the context ends. With the pauses eight
// attempts last about a quarter of a minute; where one call in six gets no
// answer, one in two million gets none in eight.
const attempts = 8

// firstAttempts is how often a refused connection is tried where nothing has
// ever answered: nobody listens there, and the endpoint is wrong.
const firstAttempts = 3

// target says what a call is about, for its errors.
type target struct {
	verb   string // "creating node pool"
	object string // resource path
	zone   string
}

// call sends one request until it succeeds, is refused for good, or ctx ends.
// A request whose reply was lost is sent again: a create may then answer
// "already exists", which its caller must recognise as its own.
func call[T any](ctx context.Context, c *Client, t target, request func(context.Context) (T, error)) (T, error) {
	return attempt(ctx, c, t, request, func(why Cause) bool { return why == Incompatible || why == Throttled })
}

// send is call for a request that starts an operation: what the cluster has no
// place for now is its scheduler's.
func send[T any](ctx context.Context, c *Client, t target, request func(context.Context) (T, error)) (T, error) {
	return attempt(ctx, c, t, request, func(why Cause) bool { return why == Throttled })
}

func attempt[T any](ctx context.Context, c *Client, t target, request func(context.Context) (T, error), passes func(Cause) bool) (T, error) {
	problem := gax.Backoff{Initial: 500 * time.Millisecond, Max: 8 * time.Second, Multiplier: 2}
	busy := c.busy()
	for try := 1; ; try++ {
		if err := c.budget.wait(ctx); err != nil {
			var none T
			return none, &Error{Verb: t.verb, Object: t.object, Zone: t.zone, Cause: causeOfContext(ctx), Message: "before it was sent", Err: err}
		}
		one, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
		out, err := request(one)
		wrapped := c.blame(wrap(one, t.verb, t.object, t.zone, err)) // before cancel: it asks why the attempt ended
		cancel()
		refused := errors.Is(err, connectionRefused)
		if !refused {
			c.answered.Store(true)
		}
		if err == nil {
			return out, nil
		}
		if ctx.Err() != nil { // ours, not the attempt's
			return out, &Error{Verb: t.verb, Object: t.object, Zone: t.zone, Cause: causeOfContext(ctx), Err: err}
		}
		err = wrapped
		var pause time.Duration
		switch why, asked := cause(err), retryAfter(err); {
		case passes(why):
			pause = asked + busy.Pause() // not all at once when the time is up
			try--                        // not a problem
			if why == Throttled {
				c.budget.hold(asked) // it is the project's, not this request's
			}
		case why == Unavailable || why == Unreachable:
			if try >= attempts || refused && try >= firstAttempts && !c.answered.Load() {
				return out, err
			}
			pause = asked + problem.Pause()
		default:
			return out, err
		}
		c.log(ctx, "waiting to try again", map[string]any{"call": t.verb, "object": t.object, "cause": string(cause(err)), "pause": pause.String()})
		if gax.Sleep(ctx, pause) != nil {
			return out, amend(err, func(e *Error) {
				e.Message = string(e.Cause) + ": " + e.Message
				e.Cause = causeOfContext(ctx)
			})
		}
	}
}

// busy is the pace of asking again while something is in the way: full jitter,
// in proportion to the pace of polling.
func (c *Client) busy() gax.Backoff {
	return gax.Backoff{Initial: c.cfg.PollInterval, Max: 10 * c.cfg.PollInterval, Multiplier: 1.6}
}

// cause is the Cause of an error from this package, or Other.
func cause(err error) Cause {
	var e *Error
	if errors.As(err, &e) {
		return e.Cause
	}
	return Other
}

// amend changes a copy of an error of this package.
func amend(err error, change func(*Error)) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	c := *e
	change(&c)
	return &c
}

// retryAfter is how long the answer asks to wait, 0 if it does not say.
func retryAfter(err error) time.Duration {
	var h *googleapi.Error
	if !errors.As(err, &h) {
		return 0
	}
	v := h.Header.Get("Retry-After")
	if s, err := strconv.Atoi(v); err == nil && s > 0 {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

func (c *Client) log(ctx context.Context, msg string, fields map[string]any) {
	if c.cfg.Log != nil {
		c.cfg.Log(ctx, msg, fields)
	}
}
