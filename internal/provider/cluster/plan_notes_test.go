package cluster

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// What cluster_overrides sets no more is told, unless nobody knows yet.
func TestDroppedOverridesAreTold(t *testing.T) {
	const one, two = `{"description": "x"}`, `{"description": "x", "costManagementConfig": {"enabled": true}}`
	for name, c := range map[string]struct {
		was, now types.String
		want     string
	}{
		"all of it": {types.StringValue(two), types.StringNull(), "GKE keeps costManagementConfig, description"},
		"one key":   {types.StringValue(two), types.StringValue(one), "GKE keeps costManagementConfig"},
		"nothing":   {types.StringValue(one), types.StringValue(two), ""},
		"never any": {types.StringNull(), types.StringNull(), ""},
		"not known": {types.StringValue(two), types.StringUnknown(), ""},
	} {
		var diags diag.Diagnostics
		dropped(model{shared: shared{Name: types.StringValue("main")}, Overrides: c.was}, model{Overrides: c.now}, &diags)
		got := ""
		for _, d := range diags {
			got += d.Summary()
			if !strings.Contains(d.Detail(), "Of cluster main that stays as GKE has it") || d.Severity() != diag.SeverityWarning {
				t.Errorf("%s: %v", name, d)
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Whoever needs the cluster in this run learns that it comes: a new one, and
// one that an earlier run began.
func TestAnnounce(t *testing.T) {
	const path = "projects/p/locations/l/clusters/c"
	id := shared{ID: types.StringValue(path)}
	for name, c := range map[string]struct {
		state *model
		want  bool
	}{
		"new":       {nil, true},
		"begun":     {&model{shared: shared{Status: types.StringValue(statusProvisioning)}}, true},
		"there":     {&model{shared: shared{Status: types.StringValue(statusRunning)}}, false},
		"in repair": {&model{shared: shared{Status: types.StringValue("DEGRADED")}}, false},
	} {
		r := &Resource{data: &conn.Data{}}
		r.announce(c.state, model{shared: id})
		if got := r.data.Coming.Has(path); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		r.data.Coming.Done(path)
		if r.data.Coming.Has(path) {
			t.Errorf("%s: still to come", name)
		}
	}
	(&Resource{}).announce(nil, model{shared: id})
	r := &Resource{data: &conn.Data{}}
	r.announce(nil, model{shared: shared{ID: types.StringUnknown()}})
	if r.data.Coming.Has("") {
		t.Error("nothing was announced as a cluster")
	}
}
