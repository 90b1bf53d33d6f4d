package compute

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// The name is a function of the pool, its cluster, its configuration and the
// topology, and one that Compute Engine accepts.
func TestPolicyNames(t *testing.T) {
	valid := regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	longest := Owner{Config: "o", Cluster: cluster, Pool: "a" + strings.Repeat("-b", 40)}
	far := owner
	far.Cluster.Location = "europe-west4"
	seen := map[string]bool{}
	for _, p := range []Policy{cube, PolicyFor(owner, "4x4x8"), PolicyFor(longest, "16x16x36"), PolicyFor(far, "4x4x4")} {
		if !valid.MatchString(p.Name) || seen[p.Name] {
			t.Errorf("name %q is not valid, or used twice", p.Name)
		}
		seen[p.Name] = true
	}
	renamed := owner
	renamed.Config = "the configuration got another name"
	if again := PolicyFor(renamed, "4x4x4"); again.Name != cube.Name {
		t.Errorf("the same pool gets another policy: %v, %v", cube, again)
	}
	if cube.Region != "us-central1" || cube.Project != "acme" || !strings.HasPrefix(cube.Name, "v7x-4x4x4-") {
		t.Errorf("got %+v", cube)
	}
}

func TestOwnershipIsInTheDescription(t *testing.T) {
	for _, o := range []Owner{owner, {Cluster: gke.ClusterName{Project: "example.com:p", Location: "us-central1", Cluster: "c"}, Pool: "p"}} {
		got, ok := ownerOf(o.description())
		if diff := cmp.Diff(o, got); !ok || diff != "" {
			t.Error("owner (-want +got):\n", diff)
		}
	}
	for _, text := range []string{"", "for my slices", madeBy + "x", madeBy + "x of y"} {
		if o, ok := ownerOf(text); ok {
			t.Errorf("%q names an owner: %v", text, o)
		}
	}
}
