package training

import (
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Text that is no label's value cannot add terms to what is chosen.
func TestNoTermsInAQuery(t *testing.T) {
	for _, q := range []Query{
		{Labels: map[string]string{"grp!": "a"}}, {Labels: map[string]string{"sweep": "bs,foo"}}, {Labels: map[string]string{"sweep in (a,b)": ""}},
		{Queue: "research,foo"}, {Owner: "a,foo"}, {Experiment: "e1,!foo"},
	} {
		if found, err := Select(t.Context(), &kube.Client{}, q); err == nil {
			t.Errorf("%+v found %v", q, found)
		}
	}
	q := Query{Queue: "research", Labels: map[string]string{"kueue.x-k8s.io/queue-name": "other", "empty": ""}}
	if s, err := q.selector(); err != nil || s.String() != "empty=,kueue.x-k8s.io/queue-name=other,kueue.x-k8s.io/queue-name=research" {
		t.Errorf("%v, %v", s, err)
	}
}
