package kube

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// OutageLimit is how long in a row a cluster may be unreachable before a wait
// for something on it ends. Restarts of an API server are shorter; a cluster
// that died, or a network that was cut, does not come back by waiting.
const OutageLimit = time.Minute

// UnreachableError is a cluster that did not answer for OutageLimit in a row.
// It is no longer Transient.
type UnreachableError struct {
	Server string // the endpoint that does not answer; "" when it is not known
	For    time.Duration
	Err    error // of the last call
}

func (e *UnreachableError) Error() string {
	server := "its API server"
	if e.Server != "" {
		server += " " + e.Server
	}
	return fmt.Sprintf("%s has not answered for %s: %v\n"+
		"Check that the cluster is running and that this machine may reach that endpoint (authorized networks, private endpoint, proxy), "+
		"then run the command again: it continues where this stopped.", server, e.For.Round(time.Second), e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Outage counts for how long a cluster has not answered a loop that rides out
// short troubles. The zero value is ready; it is for one goroutine.
type Outage struct {
	since time.Time // of the first call in a row without an answer
}

// Note takes the result of a call, nil included, and returns it as it is, or as
// an *UnreachableError once the cluster has been silent for too long. What was
// attempted (an *Error around it) stays.
func (o *Outage) Note(c *Client, err error) error {
	switch {
	case Unreachable(err):
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return err // cut off: neither an answer nor the lack of one
	default:
		o.since = time.Time{}
		return err
	}
	if o.since.IsZero() {
		o.since = time.Now()
	}
	silent := time.Since(o.since)
	if silent < OutageLimit {
		return err
	}
	end := &UnreachableError{For: silent, Err: err}
	if c.Config != nil {
		end.Server = c.Config.Host
	}
	var e *Error
	if !errors.As(err, &e) {
		return fmt.Errorf("cluster %s: %w", c.Name, end)
	}
	end.Err = e.Err
	told := *e
	told.Err = end
	return &told
}
