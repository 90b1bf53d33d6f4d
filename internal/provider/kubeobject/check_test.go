package kubeobject_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// speak is what a check's controller does.
func speak(ctx context.Context, k *kube.Client, check, status, reason, message string) error {
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Active","status":%q,"reason":%q,"message":%q,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, status, reason, message)
	return k.Patch(ctx, &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: check}}, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// A check that the cluster cannot answer is said to be so at once, by itself and
// by the queues that name it; what its controller says is its status.
func TestStatusOfAnAdmissionCheck(t *testing.T) {
	const typ = "tpu_kueue_admission_check"
	g, k, cluster := world(t)
	p := g.Protocol(t, "")
	config := with(kinds[typ].config, map[string]any{"cluster": cluster})
	r, text := p.Apply(typ, nil, config)
	if r == nil || !strings.Contains(text, "the cluster has no ProvisioningRequests") || r.State["status"] != "Unknown" {
		t.Fatalf("nobody answers: %v, %s", r, text)
	}
	says := func(status, reason, message string) {
		t.Helper()
		if err := speak(t.Context(), k, "dws", status, reason, message); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct{ status, reason, message, want, warns string }{
		{"False", "BadParametersRef", "no such class", "BadParametersRef", "Admission check dws is not active: no such class."},
		{"True", "Active", "", "Active", ""},
	} {
		says(c.status, c.reason, c.message)
		if r, text = p.Refresh(r); text != "" || r.State["status"] != c.want {
			t.Errorf("%s: read as %v, %s", c.reason, r.State["status"], text)
		}
		if diff := cmp.Diff([]string(nil), p.Plan(typ, r, config).Changed); diff != "" {
			t.Errorf("%s: the status alone is a change (-want +got):\n%s", c.reason, diff)
		}
		request := with(config["provisioning_request"].(map[string]any), map[string]any{"retry_limit": 7 + i})
		config = with(config, map[string]any{"provisioning_request": request})
		if r, text = p.Apply(typ, r, config); r.State["status"] != c.want || !strings.Contains(text, c.warns) || (text == "") != (c.warns == "") {
			t.Errorf("%s: written as %v, %s", c.reason, r.State["status"], text)
		}
	}
	if _, text = p.Destroy(r); text != "" {
		t.Error(text)
	}
}
