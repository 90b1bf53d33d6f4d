package share

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// api answers with how often it was asked, a second after the question.
type api struct {
	asked atomic.Int64
	ended atomic.Int64 // by its context
	err   error
}

func (a *api) ask(ctx context.Context) (int64, error) {
	n := a.asked.Add(1)
	select {
	case <-time.After(time.Second):
		return n, a.err
	case <-ctx.Done():
		a.ended.Add(1)
		return 0, ctx.Err()
	}
}

// Who asks at the same time, or soon after, shares one answer; later ones do
// not, and other keys never.
func TestOneAnswerForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got Answers[int64]
		var a api
		var all sync.WaitGroup
		for range 400 {
			all.Go(func() {
				if n, err := got.Get(t.Context(), "c", time.Minute, a.ask); n != 1 || err != nil {
					t.Errorf("%d, %v", n, err)
				}
			})
		}
		all.Wait()
		time.Sleep(58 * time.Second) // the answer took one
		for _, c := range []struct {
			key  string
			age  time.Duration
			want int64
		}{{"c", time.Minute, 1}, {"c", 10 * time.Second, 2}, {"c", 10 * time.Second, 2}, {"d", time.Minute, 3}, {"c", time.Minute, 2}, {"c", 0, 4}} {
			if n, err := got.Get(t.Context(), c.key, c.age, a.ask); n != c.want || err != nil {
				t.Errorf("%s not older than %s: %d, %v; want %d", c.key, c.age, n, err, c.want)
			}
		}
	})
}

// After Forget nobody gets an answer to an earlier question, also not one that
// is still under way; who waited for that gets it.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got Answers[int64]
		var a api
		var all sync.WaitGroup
		get := func(want int64) {
			all.Go(func() {
				if n, err := got.Get(t.Context(), "c", time.Minute, a.ask); n != want || err != nil {
					t.Errorf("%d, %v; want %d", n, err, want)
				}
			})
		}
		get(1)
		time.Sleep(500 * time.Millisecond)
		got.Forget("c")
		get(2)
		synctest.Wait()
		get(2)
		time.Sleep(700 * time.Millisecond) // the first answer is there now
		get(2)
		all.Wait()
		got.Forget("c")
		get(3)
		all.Wait()
	})
}

// An error goes to all who waited, and the next one asks again.
func TestErrorsAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got Answers[int64]
		refused := errors.New("refused")
		a := api{err: refused}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := got.Get(t.Context(), "c", time.Minute, a.ask); !errors.Is(err, refused) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		a.err = nil
		if n, err := got.Get(t.Context(), "c", time.Minute, a.ask); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}

// Who leaves takes nothing from those who stay; when all have left, the
// question ends.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got Answers[int64]
		var a api
		why := errors.New("interrupted")
		first, leave := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := got.Get(first, "c", time.Minute, a.ask); !errors.Is(err, why) {
				t.Error(err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if n, err := got.Get(t.Context(), "c", time.Minute, a.ask); n != 1 || err != nil {
				t.Errorf("who stayed: %d, %v", n, err)
			}
		})
		synctest.Wait()
		leave(why)
		all.Wait()
		got.Forget("c")

		second, leave := context.WithCancelCause(t.Context())
		all.Go(func() {
			if _, err := got.Get(second, "c", time.Minute, a.ask); !errors.Is(err, why) {
				t.Error(err)
			}
		})
		synctest.Wait()
		leave(why)
		all.Wait()
		synctest.Wait()
		if a.ended.Load() != 1 {
			t.Errorf("%d questions were ended, want 1", a.ended.Load())
		}
		if n, err := got.Get(t.Context(), "c", time.Minute, a.ask); n != 3 || err != nil {
			t.Errorf("after that: %d, %v", n, err)
		}
	})
}
