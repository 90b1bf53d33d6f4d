package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Annotations of a simulated pod by which its program prints, beside
// LogAnnotation, which holds its last words. A line that begins with an RFC 3339
// time was printed then, others right after the one before, the first when the
// container started.
const (
	// PrintedAnnotation holds lines.
	PrintedAnnotation = domain + "printed"
	// LogFileAnnotation names a file on the sandbox's machine whose lines the
	// program prints, as it grows. {slice}, {host}, {attempt}, {pod} and
	// {container} in the name are the pod's.
	LogFileAnnotation = domain + "log-file"
)

// attemptLabel counts the restarts before a pod.
const attemptLabel = "jobset.sigs.k8s.io/restart-attempt"

// logLine is a line that a simulated program printed.
type logLine struct {
	at   time.Time
	text string
}

// logQuery is what the API server asks a kubelet for.
type logQuery struct {
	follow, timestamps bool
	tail               int // negative: all
	since              time.Time
}

func parseLogQuery(q url.Values, now time.Time) logQuery {
	l := logQuery{follow: q.Get("follow") == "true", timestamps: q.Get("timestamps") == "true", tail: tailLines(q.Get("tailLines"))}
	if at, err := time.Parse(time.RFC3339, q.Get("sinceTime")); err == nil {
		l.since = at
	}
	if n, err := strconv.ParseInt(q.Get("sinceSeconds"), 10, 64); err == nil {
		l.since = now.Add(-time.Duration(n) * time.Second)
	}
	return l
}

// print writes one line as it was asked for.
func (q logQuery) print(b *strings.Builder, l logLine) {
	if l.at.Before(q.since) {
		return
	}
	if q.timestamps {
		b.WriteString(l.at.UTC().Format(time.RFC3339Nano) + " ")
	}
	b.WriteString(l.text + "\n")
}

// programLog is what a container of a simulated pod has printed so far. ended
// says that it will print no more.
func programLog(p *corev1.Pod, container string) (lines []logLine, ended bool, err error) {
	at, ended := startOf(p, container), p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	add := func(text string, whole bool) {
		for len(text) > 0 {
			line, rest, full := strings.Cut(text, "\n")
			if !full && !whole {
				return // it is still being written
			}
			text = rest
			at = at.Add(time.Nanosecond)
			if stamp, said, ok := strings.Cut(line, " "); ok {
				if t, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
					at, line = t, said
				}
			}
			lines = append(lines, logLine{at, line})
		}
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if c.Name != container {
			continue
		}
		add(fmt.Sprintf("[simulated host %s] would run %s with %s\n", p.Spec.NodeName, c.Image, written(c)), true)
		add(p.Annotations[PrintedAnnotation], true)
		if file := p.Annotations[LogFileAnnotation]; file != "" {
			file = strings.NewReplacer("{slice}", p.Labels[jobIndexLabel], "{host}", p.Labels[hostLabel], "{attempt}", p.Labels[attemptLabel], "{pod}", p.Name, "{container}", c.Name).Replace(file)
			text, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) {
				return nil, ended, err
			}
			add(string(text), ended)
		}
		add(p.Annotations[LogAnnotation], true)
	}
	return lines, ended, nil
}

// written is what a container runs, without what is put around a script.
func written(c *corev1.Container) string {
	argv, script := training.AsWritten(c.Command, c.Args)
	switch {
	case script != "":
		return fmt.Sprintf("the script %q", script)
	case len(argv) == 0:
		return "its own command"
	}
	return fmt.Sprintf("%q", argv)
}

// startOf is when a container started, as its status says.
func startOf(p *corev1.Pod, container string) time.Time {
	for i := range p.Status.ContainerStatuses {
		switch s := &p.Status.ContainerStatuses[i]; {
		case s.Name != container:
		case s.State.Running != nil:
			return s.State.Running.StartedAt.Time
		case s.State.Terminated != nil:
			return s.State.Terminated.StartedAt.Time
		}
	}
	return p.CreationTimestamp.Time
}

// simulatedLogs answers for the kubelet of a simulated host.
func (a *kubeletAPI) simulatedLogs(w http.ResponseWriter, r *http.Request, p *corev1.Pod) {
	container := r.PathValue("container")
	switch {
	case r.FormValue("previous") == "true":
		http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found", container, p.Name), http.StatusBadRequest)
		return
	case p.Status.Phase == corev1.PodPending:
		http.Error(w, fmt.Sprintf("container %q in pod %q is waiting to start: ContainerCreating", container, p.Name), http.StatusBadRequest)
		return
	}
	lines, ended, err := programLog(p, container)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	q := parseLogQuery(r.URL.Query(), time.Now())
	from := 0
	if q.tail >= 0 {
		from = max(0, len(lines)-q.tail)
	}
	w.Header().Set("Content-Type", "text/plain")
	flush := http.NewResponseController(w)
	changes := podChanges(r.Context(), a, p, q.follow && !ended)
	for {
		var b strings.Builder
		for ; from < len(lines); from++ {
			q.print(&b, lines[from])
		}
		if _, err := w.Write([]byte(b.String())); err != nil || flush.Flush() != nil || ended || !q.follow {
			return
		}
		newer, ok := <-changes
		if !ok {
			return
		}
		if lines, ended, err = programLog(newer, container); err != nil {
			return
		}
	}
}

// logPoll is how often a file is looked at that a program prints.
const logPoll = 250 * time.Millisecond

// podChanges tells how a pod is whenever it has changed, or the file that it
// prints may have, until it is gone or ctx ends.
func podChanges(ctx context.Context, a *kubeletAPI, p *corev1.Pod, wanted bool) <-chan *corev1.Pod {
	changes := make(chan *corev1.Pod)
	if !wanted {
		close(changes)
		return changes
	}
	pods := a.k.cp.client.CoreV1().Pods(p.Namespace)
	go func() {
		defer close(changes)
		ticks := time.NewTicker(logPoll)
		defer ticks.Stop()
		tell := func(p *corev1.Pod) bool {
			select {
			case changes <- p:
				return true
			case <-ctx.Done():
				return false
			}
		}
		for ctx.Err() == nil {
			now, err := pods.Get(ctx, p.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && now.UID != p.UID {
				return
			}
			if err != nil {
				<-ticks.C
				continue
			}
			if !tell(now) {
				return
			}
			events, err := pods.Watch(ctx, metav1.ListOptions{
				FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, p.Name).String(), ResourceVersion: now.ResourceVersion,
			})
			if err != nil {
				<-ticks.C
				continue
			}
			if followPod(ctx, events, ticks.C, now, tell) {
				return
			}
		}
	}()
	return changes
}

// followPod tells of a pod's changes until its watch ends; over when the pod is
// gone or nobody listens.
func followPod(ctx context.Context, events watch.Interface, ticks <-chan time.Time, now *corev1.Pod, tell func(*corev1.Pod) bool) (over bool) {
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return true
		case <-ticks:
			if now.Annotations[LogFileAnnotation] != "" && !tell(now) {
				return true
			}
		case e, open := <-events.ResultChan():
			if !open || e.Type == watch.Error {
				return false
			}
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			if now = p; !tell(now) || e.Type == watch.Deleted {
				return true
			}
		}
	}
}
