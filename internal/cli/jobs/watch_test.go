package jobs

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// changing is a cluster whose jobs are others from look to look.
type changing struct {
	fake
	looks [][]training.Run
	next  *int
}

func (c changing) Select(context.Context, training.Query) (training.Listing, error) {
	i := min(*c.next, len(c.looks)-1)
	*c.next++
	return training.Listing{Runs: append([]training.Run{}, c.looks[i]...)}, nil
}

// --watch prints a job again when it has changed, and nothing otherwise.
func TestListWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits, runs, other := run("research", "train", training.Pending), run("research", "train", training.Running), run("research", "other", training.Running)
		s, out, _ := clitest.Streams(0, false)
		c := changing{looks: [][]training.Run{{waits, other}, {waits, other}, {runs, other}, {runs, other}}, next: new(int)}
		d := Deps{Streams: s, Now: func() time.Time { return now }, Open: func(context.Context, target.Options) (Cluster, error) { return c, nil }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := runWith(ctx, newList(d), "--watch", "-o", "name", "--interval", "2s")
		if ctx.Err() == nil || err == nil {
			t.Fatalf("ended by itself: %v", err)
		}
		if got := strings.Fields(out.String()); strings.Join(got, " ") != "research/train research/other research/train" {
			t.Errorf("printed %v", got)
		}
		if *c.next < 25 || *c.next > 31 {
			t.Errorf("looked %d times in a minute", *c.next)
		}
	})
	for args, want := range map[string]string{"--watch -o json": "--watch prints lines", "--watch --interval 1ms": "want 100ms or more", "--label x": "want KEY=VALUE"} {
		d, _ := deps(sample(), 0, false)
		if err := clitest.Run(newList(d), strings.Fields(args)...); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("list %s: %v, want %q", args, err, want)
		}
	}
}
