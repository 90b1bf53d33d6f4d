package main

import (
	"testing"
	"time"
)

// A provider whose command line was killed ends, and not before.
func TestEndsWithItsParent(t *testing.T) {
	parents, looks, code := []int{7, 7, 1, 1}, 0, -1
	ticks := make(chan time.Time, len(parents))
	for range parents {
		ticks <- time.Time{}
	}
	close(ticks)
	endWith(7, ticks, func() int { looks++; return parents[looks-1] }, func(c int) { code = c })
	if looks != 3 || code != 1 {
		t.Errorf("it looked %d times and ended with %d, want 3 and 1", looks, code)
	}
}
