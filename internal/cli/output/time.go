package output

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Age is how long ago t was: 42s, 5m, 3h20m; empty for the zero time. The
// cluster's clock may be ahead of ours.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(t)))
}

// Moment is a time for people: when, and how long ago.
func Moment(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 MST") + " (" + Age(now, t) + " ago)"
}
