package logs

import (
	"errors"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// program is one container of one pod, and how far its log has been read. Its
// runs in the pod follow one another: previous is the one before the present.
type program struct {
	line   Line // what its lines have in common
	cursor cursor
	runs   int32 // restarts of the container when it was last read
	tail   int

	followed bool // by a goroutine of its own, from now on
}

// state is how a container stands.
type state int

const (
	waiting state = iota // has not started (again)
	running
	ended
	gone
)

// stateOf reads a container's state off its pod, and how often it was
// restarted. nil is a pod that is gone.
func stateOf(p *corev1.Pod, container string) (state, int32) {
	if p == nil {
		return gone, 0
	}
	for _, all := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range all {
			c := &all[i]
			switch {
			case c.Name != container:
			case c.State.Running != nil:
				return running, c.RestartCount
			case c.State.Terminated != nil:
				return ended, c.RestartCount
			case c.LastTerminationState.Terminated != nil && over(p):
				return ended, c.RestartCount
			default:
				return waiting, c.RestartCount
			}
		}
	}
	if over(p) {
		return ended, 0
	}
	return waiting, 0
}

func over(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// options are those of the next reading.
func (g *program) options(follow, previous bool) corev1.PodLogOptions {
	o := corev1.PodLogOptions{Container: g.line.Container, Timestamps: true, Follow: follow, Previous: previous}
	if at := g.cursor.since(); !at.IsZero() {
		o.SinceTime = ptr.To(metav1.NewTime(at))
	}
	if g.tail >= 0 && g.cursor.last.IsZero() {
		o.TailLines = ptr.To(int64(g.tail))
	}
	return o
}

// scan hands over what is new in a stream of the log; tail says that it begins
// with the newest lines that are wanted.
func (g *program) scan(r io.Reader, whole, tail bool, emit func(Line) error) error {
	return g.cursor.scan(r, whole, tail, func(at time.Time, text string) error {
		l := g.line
		l.Time, l.Text = at, text
		return emit(l)
	})
}

// What an API server answers when a log cannot be read.
type hindrance int

const (
	passes  hindrance = iota // an outage, a kubelet that does not answer: try again
	absent                   // there is no such log, or none yet
	refused                  // nobody with this account will ever read it
)

func hindranceOf(err error) hindrance {
	switch {
	case apierrors.IsNotFound(err), apierrors.IsBadRequest(err), apierrors.IsGone(err):
		return absent
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err), apierrors.IsMethodNotSupported(err):
		return refused
	}
	return passes
}

func stopped(err error) bool { return errors.As(err, new(*stopError)) }
