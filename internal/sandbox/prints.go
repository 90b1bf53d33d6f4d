package sandbox

import (
	"context"
	"net/http"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/controlplane"
)

const printsPath = "/sandbox/prints"

// Print asks that programs print.
type Print struct {
	HostOf
	Text string `json:"text,omitempty"`
	// File on this machine whose lines they print, as it grows; its name may
	// hold {slice}, {host}, {attempt}, {pod} and {container}.
	File string `json:"file,omitempty"`
}

// printsHandler lets programs print (POST).
func (s *Sandbox) printsHandler() http.Handler {
	return s.guarded(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "want POST", http.StatusMethodNotAllowed)
			return
		}
		var p Print
		var out []Exited
		err := decode(r, &p)
		if err == nil {
			out, err = s.print(r.Context(), p)
		}
		answerHosts(w, out, err)
	})
}

func (s *Sandbox) print(ctx context.Context, p Print) ([]Exited, error) {
	path, plane, err := s.clusterNamed(p.Cluster)
	if err != nil {
		return nil, err
	}
	pods, err := plane.Print(ctx, controlplane.Print{
		Namespace: p.Namespace, Job: p.Job, Slice: p.Slice, Host: p.Index, Text: p.Text, File: p.File,
	})
	if err != nil {
		return nil, err
	}
	var out []Exited
	for _, pod := range pods {
		out = append(out, Exited{path, pod.Name, pod.Node})
	}
	return out, nil
}

// LetPrint lets the programs of a job print, and tells in which pods.
func LetPrint(ctx context.Context, dir string, p Print) ([]Exited, error) {
	return askWithin[[]Exited](ctx, mendTimeout, dir, "programs", http.MethodPost, printsPath, nil, p)
}
