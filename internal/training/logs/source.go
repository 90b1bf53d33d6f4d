package logs

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Of is the source for a job of a real cluster.
func Of(c *kube.Client, key types.NamespacedName) Source { return &clusterSource{c: c, key: key} }

type clusterSource struct {
	c   *kube.Client
	key types.NamespacedName
}

func (s *clusterSource) selector() []client.ListOption {
	return []client.ListOption{client.InNamespace(s.key.Namespace), client.MatchingLabels{jobset.JobSetNameKey: s.key.Name}}
}

func (s *clusterSource) Pods(ctx context.Context) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	var page corev1.PodList
	err := s.c.Pages(ctx, &page, "of job "+s.key.String(), func() error {
		pods = append(pods, page.Items...)
		return nil
	}, s.selector()...)
	return pods, err
}

func (s *clusterSource) Pod(ctx context.Context, name string) (*corev1.Pod, error) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: name}}
	found, err := s.c.Fetch(ctx, p)
	if !found {
		p = nil
	}
	return p, err
}

func (s *clusterSource) Watch(ctx context.Context, changed func(corev1.Pod)) {
	w, err := s.c.Watch(ctx, &corev1.PodList{}, s.selector()...)
	if err != nil {
		return // reading again tells why, if it matters
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-w.ResultChan():
			if !open || e.Type == watch.Error {
				return
			}
			// One that is deleted may still be read; the next list lacks it.
			if p, ok := e.Object.(*corev1.Pod); ok && e.Type != watch.Bookmark {
				changed(*p)
			}
		}
	}
}

func (s *clusterSource) Open(ctx context.Context, pod string, o corev1.PodLogOptions) (io.ReadCloser, error) {
	cfg := rest.CopyConfig(s.c.Config)
	cfg.APIPath, cfg.GroupVersion = "/api", &corev1.SchemeGroupVersion
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	endless := *s.c.HTTP
	endless.Timeout = 0 // a program may be silent for as long as it likes
	raw, err := rest.RESTClientForConfigAndClient(cfg, &endless)
	if err != nil {
		return nil, fmt.Errorf("preparing a client for cluster %s: %w", s.c.Name, err)
	}
	r, err := raw.Get().Namespace(s.key.Namespace).Resource("pods").Name(pod).SubResource("log").
		VersionedParams(&o, scheme.ParameterCodec).Stream(ctx)
	if err != nil {
		return nil, &kube.Error{Verb: "reading the log of", Kind: "Pod", Key: s.key.Namespace + "/" + pod, Cluster: s.c.Name, Err: err}
	}
	return r, nil
}
