package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

const main = training.SliceJob

// The logs of all hosts come in the order of their times.
func TestReadMerges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var hosts []*program1
		for slice := range 4 {
			for host := range 4 {
				hosts = append(hosts, w.host(main, slice, host, 0))
			}
		}
		var want []string
		r := rand.New(rand.NewPCG(1, 1))
		for i := range 400 {
			time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
			n := r.IntN(len(hosts))
			hosts[n].say(fmt.Sprint("step ", i))
			want = append(want, fmt.Sprintf("%d/%d step %d", n/4, n%4, i))
		}
		var h heard
		programs, err := Read(t.Context(), w, Options{Tail: All}, h.take)
		if err != nil || programs != 16 {
			t.Fatal(programs, err)
		}
		// Lines of one instant are ordered by host; here no two share one.
		if diff := cmp.Diff(want, h.all()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReadChooses(t *testing.T) {
	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"everything":         {Options{Tail: All}, "0/0 a|0/1 b|1/0 c|1/0 d|uploader/0 u"},
		"one host":           {Options{Tail: All, Hosts: []Host{{Slice: 0, Host: 1}}}, "0/1 b"},
		"a slice":            {Options{Tail: All, Hosts: []Host{{Slice: 0, Host: -1}}}, "0/0 a|0/1 b"},
		"a slice and a host": {Options{Tail: All, Hosts: []Host{{Slice: 0, Host: 0}, {Slice: 1, Host: -1}}}, "0/0 a|1/0 c|1/0 d"},
		"a further job":      {Options{Tail: All, Hosts: []Host{{Job: "uploader", Slice: -1, Host: -1}}}, "uploader/0 u"},
		"the newest lines":   {Options{Tail: 1}, "0/0 a|0/1 b|1/0 c|1/0 d|uploader/0 u"},
		"no lines":           {Options{Tail: 0}, ""},
		"a container":        {Options{Tail: All, Container: "main", Hosts: []Host{{Slice: 0, Host: 0}}}, "0/0 a"},
		"the one before":     {Options{Tail: All, Previous: true}, "0/1 x|1/0 c"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				tick := func() { time.Sleep(time.Second) }
				w.host(main, 0, 0, 0).say("a")
				tick()
				again := w.host(main, 0, 1, 0)
				if tt.o.Previous {
					again.say("x")
					again.restart()
				}
				again.say("b")
				tick()
				failed := w.host(main, 1, 0, 0)
				failed.say("c")
				failed.end(1)
				tick()
				w.host(main, 1, 0, 0).say("d") // its pod was made again in the same attempt
				tick()
				w.host("uploader", 0, 0, 0).say("u")
				var h heard
				if _, err := Read(t.Context(), w, tt.o, h.take); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, strings.Join(h.all(), "|")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestReadSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := w.host(main, 0, 0, 0)
		p.say("early")
		time.Sleep(1700 * time.Millisecond)
		p.say("a moment before")
		time.Sleep(100 * time.Millisecond)
		since := time.Now()
		p.say("then")
		var h heard
		if _, err := Read(t.Context(), w, Options{Tail: All, Since: since}, h.take); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"0/0 then"}, h.all()); diff != "" {
			t.Error(diff)
		}
	})
}

// However often and wherever streams break, each line comes once and each
// host's lines come in order, across restarts of containers and new attempts.
func TestFollowLosesAndDoublesNothing(t *testing.T) {
	for seed := range uint64(20) {
		for _, quiet := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d, silent watch %t", seed, quiet), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld()
					w.cut, w.quiet = cuts(seed), quiet
					r := rand.New(rand.NewPCG(seed, 2))
					var h heard
					done, result := make(chan struct{}), make(chan error, 1)
					want := map[string][]string{}
					say := func(p *program1, host string, n int) {
						for range n {
							// Often the same text, often the same instant.
							text := fmt.Sprint("loss ", r.IntN(3))
							p.say(text)
							want[host] = append(want[host], text)
							if r.IntN(3) > 0 {
								time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
							}
						}
					}
					first := w.host(main, 0, 0, 0)
					say(first, "0/0", 30)
					go func() {
						result <- Follow(t.Context(), w, Options{Tail: All}, done, h.take)
					}()
					say(first, "0/0", 60)
					other := w.host(main, 1, 3, 0)
					say(other, "1/3", 40)
					time.Sleep(5 * time.Second)
					uploader := w.host("uploader", 0, 0, 0)
					say(uploader, "uploader/0", 20)
					time.Sleep(time.Millisecond) // no two runs print at one instant
					uploader.restart()
					say(uploader, "uploader/0", 20)
					first.end(1)
					other.end(143)
					time.Sleep(time.Second)
					again := w.host(main, 0, 0, 1) // a new attempt
					say(again, "0/0", 50)
					again.end(0)
					uploader.end(0)
					close(done)
					if err := <-result; err != nil {
						t.Fatal(err)
					}
					for host, lines := range want {
						if diff := cmp.Diff(lines, h.of(host)); diff != "" {
							t.Errorf("%s (-printed +heard):\n%s", host, diff)
						}
					}
				})
			})
		}
	}
}

// After a break, lines from before the tail do not come after all.
func TestFollowKeepsToTheTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := w.host(main, 0, 0, 0)
		for i := range 100 {
			p.say(fmt.Sprint("old ", i))
			time.Sleep(10 * time.Millisecond)
		}
		w.cut = func() (int, error) { return 6000, io.ErrUnexpectedEOF } // what is read again is about 4,500
		var h heard
		done, result := make(chan struct{}), make(chan error, 1)
		go func() { result <- Follow(t.Context(), w, Options{Tail: 2}, done, h.take) }()
		synctest.Wait()
		for i := range 100 {
			p.say(fmt.Sprint("new ", i))
			time.Sleep(100 * time.Millisecond)
		}
		p.end(0)
		close(done)
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		got := h.of("0/0")
		if len(got) != 102 || got[0] != "old 98" || got[1] != "old 99" || got[101] != "new 99" {
			t.Errorf("%d lines: %q", len(got), got)
		}
	})
}

// A line appears as soon as it is printed, and its pod as soon as it runs.
func TestFollowIsPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(main, 0, 0, 0).say("a")
		var h heard
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- Follow(ctx, w, Options{Tail: All}, nil, h.take) }()
		time.Sleep(time.Minute)
		p := w.host(main, 0, 1, 0)
		p.say("b")
		synctest.Wait()
		p.say("c")
		synctest.Wait()
		if diff := cmp.Diff([]string{"b", "c"}, h.of("0/1")); diff != "" {
			t.Error(diff)
		}
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		opens := w.opens
		if opens > 8 {
			t.Errorf("two silent programs of a minute took %d openings", opens)
		}
	})
}

// A host that never ends its log does not hold up the end of the job.
func TestFollowEndsWithTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(main, 0, 0, 0).say("lost")
		var h heard
		var notes []string
		done := make(chan struct{})
		close(done)
		began := time.Now()
		err := Follow(t.Context(), w, Options{Tail: All, Note: func(s string) { notes = append(notes, s) }}, done, h.take)
		if took := time.Since(began); err != nil || took > drain+time.Second {
			t.Errorf("%v after %s", err, took)
		}
		if len(notes) != 1 || !strings.Contains(notes[0], "the job has ended") {
			t.Errorf("notes: %q", notes)
		}
		if diff := cmp.Diff([]string{"lost"}, h.of("0/0")); diff != "" {
			t.Error(diff)
		}
	})
}

// A pod that is taken away ends its log, and nobody waits for more.
func TestFollowOfAPodThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := w.host(main, 0, 0, 0)
		p.say("a")
		var h heard
		done, result := make(chan struct{}), make(chan error, 1)
		go func() { result <- Follow(t.Context(), w, Options{Tail: All}, done, h.take) }()
		synctest.Wait()
		p.remove()
		time.Sleep(time.Minute)
		opens := w.opens
		time.Sleep(time.Hour)
		if w.opens != opens {
			t.Errorf("opened %d times more", w.opens-opens)
		}
		close(done)
		began := time.Now()
		if err := <-result; err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// A kubelet that does not answer for a while costs time and no line; what
// nobody may read ends everything, in words.
func TestOutagesAndRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := w.host(main, 0, 0, 0)
		p.say("a")
		w.fails = 12
		var h heard
		var notes []string
		note := func(s string) { notes = append(notes, s) }
		done, result := make(chan struct{}), make(chan error, 1)
		go func() { result <- Follow(t.Context(), w, Options{Tail: All, Note: note}, done, h.take) }()
		time.Sleep(5 * time.Minute)
		p.say("b")
		p.end(0)
		close(done)
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a", "b"}, h.of("0/0")); diff != "" {
			t.Error(diff)
		}
		if len(notes) == 0 || !strings.Contains(notes[0], "the kubelet does not answer") {
			t.Errorf("notes: %q", notes)
		}

		w.deny = apierrors.NewForbidden(schema.GroupResource{Resource: "pods/log"}, "x", errors.New("no"))
		if _, err := Read(t.Context(), w, Options{Tail: All}, h.take); !apierrors.IsForbidden(err) {
			t.Errorf("Read: %v", err)
		}
		w.host(main, 0, 1, 0)
		if err := Follow(t.Context(), w, Options{Tail: All}, nil, h.take); !apierrors.IsForbidden(err) {
			t.Errorf("Follow: %v", err)
		}
	})
}

// Nobody listens any more: both end with that error.
func TestNobodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := w.host(main, 0, 0, 0)
		p.say("a", "b")
		broken := errors.New("broken pipe")
		deaf := func(Line) error { return broken }
		if _, err := Read(t.Context(), w, Options{Tail: All}, deaf); !errors.Is(err, broken) {
			t.Errorf("Read: %v", err)
		}
		if err := Follow(t.Context(), w, Options{Tail: All}, nil, deaf); !errors.Is(err, broken) {
			t.Errorf("Follow: %v", err)
		}
	})
}

func TestParseHost(t *testing.T) {
	for in, want := range map[string]Host{
		"0/3": {Slice: 0, Host: 3}, "12": {Slice: 12, Host: -1}, "uploader": {Job: "uploader", Slice: -1, Host: -1}, "pathways-head/0": {Job: "pathways-head", Slice: -1, Host: 0},
	} {
		got, err := ParseHost(in)
		if err != nil || got != want || got.String() != in {
			t.Errorf("%q: %+v (%s), %v", in, got, got, err)
		}
	}
	for _, in := range []string{"", "/", "0/", "-1", "0/x", "0/-1", "0/1/2", "1x", "uploader/x", "99999999"} {
		if got, err := ParseHost(in); err == nil || !strings.Contains(err.Error(), "want SLICE/HOST") {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 3*maxLine)
	var c cursor
	var got strings.Builder
	n := 0
	text := "2026-01-01T00:00:00Z " + long + "\n2026-01-01T00:00:01Z end"
	for range 2 { // the second time all is known
		if err := c.scan(strings.NewReader(text), true, false, func(_ time.Time, s string) error {
			n++
			got.WriteString(s)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got.String() != long+"end" || n != 5 {
		t.Errorf("%d pieces, %d bytes", n, got.Len())
	}
	if err := c.scan(strings.NewReader("2026-01-01T00:00:02Z half"), false, false, nil); !errors.Is(err, errCut) {
		t.Errorf("a line that broke off: %v", err)
	}
}

// What pods that are there lack is said, and what they have.
func TestNothingToRead(t *testing.T) {
	w := newWorld()
	w.host("slice", 0, 0, 0).say("a line")
	for want, o := range map[string]Options{
		"its pods have no container nosuch; they have main": {Tail: All, Container: "nosuch"},
		"no container has restarted":                        {Tail: All, Previous: true},
		"":                                                  {Tail: All, Hosts: []Host{{Slice: 3, Host: 0}}, Container: "nosuch"},
	} {
		n, err := Read(t.Context(), w, o, func(Line) error { return nil })
		if n != 0 || want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %d, %v, want %q", o, n, err, want)
		}
	}
}
