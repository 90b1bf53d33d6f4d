package kubeobject_test

import (
	"slices"
	"strings"
	"testing"
)

// While Kueue is down, plans work, what exists stays in state, and an apply says
// what is down; when it is back, the apply goes on. Priorities have no webhook
// and do not notice; queues have a test of their own.
func TestKueueDown(t *testing.T) {
	object := func(m map[string]any) map[string]any { return m }
	for typ, tt := range map[string]struct{ config, change map[string]any }{
		"tpu_kueue_flavor":          {object(map[string]any{"name": "v5e", "accelerator": "v5litepod-16"}), object(map[string]any{"node_labels": map[string]any{"a": "b"}})},
		"tpu_kueue_cohort":          {kinds["tpu_kueue_cohort"].config, map[string]any{"parent": "elsewhere"}},
		"tpu_kueue_admission_check": {kinds["tpu_kueue_admission_check"].config, map[string]any{"provisioning_request": map[string]any{"class": "another"}}},
	} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			g, _, cluster := world(t)
			p := g.Protocol(t, "")
			config := with(tt.config, map[string]any{"cluster": cluster, "timeouts": map[string]any{"create": "2s", "update": "2s"}})
			r, text := p.Apply(typ, nil, config)
			if r == nil || strings.Contains(text, "ERROR") {
				t.Fatal(text)
			}
			g.Cluster.WebhookDown("kueue-webhook-service", "kueue-system")
			if r, text = p.Refresh(r); r == nil || text != "" {
				t.Fatalf("refresh: %v, %s", r, text)
			}
			change := with(config, tt.change)
			for attr := range tt.change {
				if plan := p.Plan(typ, r, change); plan.Text != "" || !slices.Contains(plan.Changed, attr) {
					t.Errorf("plan: %v, %s", plan.Changed, plan.Text)
				}
			}
			const down = "Service kueue-webhook-service in namespace kueue-system is down"
			kept, text := p.Apply(typ, r, change)
			if kept == nil || !strings.Contains(text, "Cannot apply") || !strings.Contains(text, down) {
				t.Errorf("apply: %v, %s", kept, text)
			}
			if none, text := g.Protocol(t, "").Apply(typ, nil, with(change, map[string]any{"name": "another"})); none != nil || !strings.Contains(text, down) {
				t.Errorf("another one: %v, %s", none, text)
			}
			g.Cluster.WebhookDown("", "")
			if r, text = p.Apply(typ, kept, change); r == nil || strings.Contains(text, "ERROR") {
				t.Errorf("afterwards: %v, %s", r, text)
			}
		})
	}
}
