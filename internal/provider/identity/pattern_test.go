package identity

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	cluster Pattern = "projects/{project}/locations/{location}/clusters/{name}"
	pool    Pattern = "projects/{project}/locations/{location}/clusters/{cluster}/nodePools/{name}"
	job     Pattern = "projects/{project}/locations/{location}/clusters/{cluster}/namespaces/{namespace}/jobsets/{name}"
	single  Pattern = "projects/{project}/locations/{location}/clusters/{cluster}/jobControllers"
)

// Every way to write an id means the same object, or says what to write.
func TestExpand(t *testing.T) {
	both := map[string]string{project: "p", location: "us-west4-a"}
	for _, tt := range []struct {
		pattern  Pattern
		id       string
		defaults map[string]string
		want     string // the whole id, or a part of the error
	}{
		{cluster, "projects/q/locations/us-west4/clusters/c", nil, "projects/q/locations/us-west4/clusters/c"},
		{cluster, "q/us-west4/c", both, "projects/q/locations/us-west4/clusters/c"},
		{cluster, "us-west4/c", both, "projects/p/locations/us-west4/clusters/c"},
		{cluster, "c", both, "projects/p/locations/us-west4-a/clusters/c"},
		{pool, "projects/q/locations/us-west4/clusters/c/nodePools/v5e", nil, "projects/q/locations/us-west4/clusters/c/nodePools/v5e"},
		{pool, "q/us-west4/c/v5e", nil, "projects/q/locations/us-west4/clusters/c/nodePools/v5e"},
		{pool, "us-west4/c/v5e", both, "projects/p/locations/us-west4/clusters/c/nodePools/v5e"},
		{pool, "c/v5e", both, "projects/p/locations/us-west4-a/clusters/c/nodePools/v5e"},
		{job, "c/research/train", both, "projects/p/locations/us-west4-a/clusters/c/namespaces/research/jobsets/train"},
		{single, "us-west4/c", both, "projects/p/locations/us-west4/clusters/c/jobControllers"},
		{single, "projects/q/locations/l/clusters/c/jobControllers", both, "projects/q/locations/l/clusters/c/jobControllers"},

		{pool, "us-west4/c/v5e", map[string]string{location: "l"}, "says no project, and the provider's configuration has none: set project there, or import\n  projects/PROJECT/locations/LOCATION/clusters/CLUSTER/nodePools/NAME"},
		{pool, "c/v5e", map[string]string{project: "p"}, "says no location"},
		{pool, "v5e", both, `"v5e" is not the id`},
		{pool, "", both, "is not the id"},
		{pool, "c/", both, "LOCATION/CLUSTER/NAME (with project in"},
		{pool, "projects/q/locations/us-west4/clusters/c", both, "is not the id"},
		{pool, "projects/q/zones/us-west4/clusters/c/nodePools/v5e", both, "is not the id"},
		{cluster, "a/b/c/d", both, "  PROJECT/LOCATION/NAME\n"},
	} {
		values, err := tt.pattern.Expand(tt.id, tt.defaults)
		if err != nil {
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want %q", tt.id, err, tt.want)
			}
			continue
		}
		if got := tt.pattern.ID(values); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.id, got, tt.want)
		}
	}
}

// What an identity says is what the id says, and back.
func TestParse(t *testing.T) {
	id := "projects/p/locations/l/clusters/c/namespaces/n/jobsets/j"
	values, ok := job.Parse(id)
	if !ok {
		t.Fatal("not understood")
	}
	if diff := cmp.Diff(map[string]string{"project": "p", "location": "l", "cluster": "c", "namespace": "n", "name": "j"}, values); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := job.ID(values); got != id {
		t.Errorf("got %s", got)
	}
	for _, bad := range []string{"", "projects/p", "projects/p/locations/l/clusters/c/namespaces//jobsets/j", "projects/p/locations/l/clusters/c/namespaces/n/jobs/j"} {
		if _, ok := job.Parse(bad); ok {
			t.Errorf("%q was understood", bad)
		}
	}
}
