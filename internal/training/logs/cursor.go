package logs

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"time"
)

// overlap is how much of a log is read again when it is opened anew. The API
// takes whole seconds only, and lines of one second need not be in order.
const overlap = 2 * time.Second

// cursor is how far a program's log has been read. Reading may break off
// anywhere: what is read again by then is recognised, line by line.
type cursor struct {
	from time.Time              // where the wanted lines begin; zero: at the beginning
	n    int                    // lines so far
	last time.Time              // the latest line so far
	seen map[int64]map[seen]int // lines by their second, as far back as overlap goes
}

type seen struct {
	at   int64 // nanoseconds since the epoch
	text string
}

// since is where to open the log so that nothing is missed.
func (c *cursor) since() time.Time {
	if c.last.IsZero() {
		return c.from
	}
	at := c.last.Add(-overlap).Truncate(time.Second)
	if at.Before(c.from) {
		return c.from
	}
	return at
}

// take notes a line.
func (c *cursor) take(at time.Time, text string) {
	if c.seen == nil {
		c.seen = map[int64]map[seen]int{}
	}
	second := at.Unix()
	if c.seen[second] == nil {
		for old := range c.seen {
			if old < c.last.Add(-overlap).Truncate(time.Second).Unix() {
				delete(c.seen, old)
			}
		}
		c.seen[second] = map[seen]int{}
	}
	c.seen[second][seen{at.UnixNano(), text}]++
	c.n++
	if at.After(c.last) {
		c.last = at
	}
}

// again is what was read before, for one more reading of the log: each line of
// it is skipped once.
func (c *cursor) again() map[seen]int {
	left := map[seen]int{}
	for _, lines := range c.seen {
		for line, n := range lines {
			left[line] += n
		}
	}
	return left
}

// maxLine bounds a line; a longer one is handed over in pieces.
const maxLine = 256 << 10

// errCut is a stream that ended in the middle of a line.
var errCut = errors.New("the log broke off in a line")

// scan reads a stream of timestamped lines and hands over those that are new.
// whole says that the program has ended: then a last line without its newline
// is a line too. Otherwise it is a broken stream, and read again later. newest
// says that the stream has the newest lines only: those before the first of them
// are not wanted later either.
func (c *cursor) scan(r io.Reader, whole, newest bool, emit func(time.Time, string) error) error {
	skip, b := c.again(), bufio.NewReaderSize(r, maxLine)
	var at time.Time
	for inside := false; ; {
		line, err := b.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !full {
			switch {
			case err != io.EOF:
				return err
			case len(line) == 0:
				return nil
			case !whole:
				return errCut
			}
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if !inside { // else one more piece of a long line
			at, text = split(text)
		}
		switch key := (seen{at.UnixNano(), text}); {
		case skip[key] > 0:
			skip[key]--
		case !at.IsZero() && at.Before(c.from): // more than was asked for
		default:
			if newest && at.After(c.from) {
				c.from = at
			}
			newest = false
			c.take(at, text)
			if err := emit(at, text); err != nil {
				return &stopError{err}
			}
		}
		if err != nil && !full {
			return nil
		}
		inside = full
	}
}

// stopError is that nobody takes lines any more.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

// split takes the time off a line; zero when it has none.
func split(line string) (time.Time, string) {
	stamp, text, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return time.Time{}, line
	}
	return at, text
}
