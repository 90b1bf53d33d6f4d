package gke

import (
	"context"
	"sync"
	"time"

	"github.com/googleapis/gax-go/v2"
	"golang.org/x/time/rate"
)

// RequestsPerMinute is GKE's documented quota of a project.
const RequestsPerMinute = 3000

// budget keeps all requests of a client, whatever cluster they are for, within
// the project's quota, and holds all of them back when GKE asks one to wait.
type budget struct {
	bucket *rate.Limiter

	mu    sync.Mutex
	until time.Time // nothing is sent before
}

// newBudget spends a tenth of a minute's requests at once if need be, and the
// rest evenly: no minute has more than perMinute.
func newBudget(perMinute int) *budget {
	burst := max(1, perMinute/10)
	return &budget{bucket: rate.NewLimiter(rate.Limit(perMinute-burst)/60, burst)}
}

// wait returns when one request may be sent, or with ctx's error.
func (b *budget) wait(ctx context.Context) error {
	r := b.bucket.Reserve()
	b.mu.Lock()
	d := max(r.Delay(), time.Until(b.until))
	b.mu.Unlock()
	if d <= 0 {
		return ctx.Err()
	}
	if err := gax.Sleep(ctx, d); err != nil {
		r.Cancel()
		return err
	}
	return nil
}

// hold sends nothing for d.
func (b *budget) hold(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := time.Now().Add(d); at.After(b.until) {
		b.until = at
	}
}
