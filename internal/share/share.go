// Package share lets many who ask the same question of a slow API share one
// answer. It knows neither the question nor the API.
package share

import (
	"context"
	"sync"
	"time"
)

// Answers keeps the latest answer by key, while it is asked for as well as
// afterwards. The zero value is ready. What is kept is shared: whoever gets it
// must not change it.
type Answers[T any] struct {
	mu    sync.Mutex
	asked map[string]*question[T]
}

type question[T any] struct {
	began  time.Time
	cancel context.CancelFunc
	here   int           // who waits for the answer
	done   chan struct{} // closed when the rest is set
	answer T
	err    error
}

// Get returns the answer to a question that was asked at most age ago, and asks
// it if nobody has. Errors go to those who waited and are not kept. The
// question goes on when one who waits leaves, and ends when all have left;
// context.Cause(ctx) is then the error.
func (a *Answers[T]) Get(ctx context.Context, key string, age time.Duration, ask func(context.Context) (T, error)) (T, error) {
	q := a.join(ctx, key, age, ask)
	select {
	case <-q.done:
		return q.answer, q.err
	case <-ctx.Done():
		a.leave(key, q)
		var none T
		return none, context.Cause(ctx)
	}
}

func (a *Answers[T]) join(ctx context.Context, key string, age time.Duration, ask func(context.Context) (T, error)) *question[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.asked[key]; q != nil && time.Since(q.began) <= age {
		q.here++
		return q
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	q := &question[T]{began: time.Now(), cancel: cancel, here: 1, done: make(chan struct{})}
	if a.asked == nil {
		a.asked = map[string]*question[T]{}
	}
	a.asked[key] = q
	go func() {
		defer cancel()
		answer, err := ask(ctx)
		a.mu.Lock()
		defer a.mu.Unlock()
		if q.answer, q.err = answer, err; err != nil {
			a.drop(key, q)
		}
		close(q.done)
	}()
	return q
}

func (a *Answers[T]) leave(key string, q *question[T]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.here--; q.here > 0 {
		return
	}
	select {
	case <-q.done: // it came at the same moment, and may serve others
	default:
		q.cancel()
		a.drop(key, q) // nobody may join what was ended
	}
}

// Forget makes the next Get ask anew, also where a question is under way: its
// answer may be from before what the caller knows of.
func (a *Answers[T]) Forget(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.asked, key)
}

func (a *Answers[T]) drop(key string, q *question[T]) {
	if a.asked[key] == q {
		delete(a.asked, key)
	}
}
