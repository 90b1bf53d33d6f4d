package gke

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// LabelPrefix starts every label that says who made an object. They are Google
// Cloud resource labels: GKE returns them as they were written, and pods and
// nodes do not see them.
const LabelPrefix = "tpu-provider-"

// The labels of ownership.
const (
	LabelOwner   = LabelPrefix + "owner"   // the configuration's name, if it has one
	LabelSpec    = LabelPrefix + "spec"    // versioned hash of what cannot change in place
	LabelKind    = LabelPrefix + "kind"    // "cluster", "cpu-pool" or "slice"
	LabelPool    = LabelPrefix + "pool"    // the slice pool that a node pool belongs to, or the CPU pool that it stands in for
	LabelCreated = LabelPrefix + "created" // unix seconds of the create request
	LabelObject  = LabelPrefix + "object"  // which of the owner's objects holds it, where two may
	// LabelTopology is that of the slice, where the node pool itself does not say it:
	// its workload policy does.
	LabelTopology = LabelPrefix + "topology"
)

// The values of LabelKind.
const (
	KindCluster = "cluster"
	KindCPUPool = "cpu-pool"
	KindSlice   = "slice"
)

// adoptionAge is how old an object without an owner may be to count as what a
// killed run of the same configuration left behind.
const adoptionAge = 24 * time.Hour

// specVersion is part of every hash; it changes when the meaning of a hashed
// field does, so that an old hash is never taken for a new one.
const specVersion = "v1-"

// SpecHash digests a specification into a label value.
func SpecHash(spec any) string {
	data, err := json.Marshal(spec) // map keys are sorted
	if err != nil {
		panic(fmt.Sprintf("hashing a specification: %v", err)) // a type that JSON cannot express: a programming error
	}
	sum := sha256.Sum256(data)
	return specVersion + hex.EncodeToString(sum[:10])
}

// Ownership is what the labels of an object say, or should say.
type Ownership struct {
	Kind, Owner, Spec, Pool, Object string
	Created                         time.Time
}

// Labels merges the ownership into other labels.
func (o Ownership) Labels(others ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range others {
		maps.Copy(out, m)
	}
	out[LabelKind], out[LabelSpec] = o.Kind, o.Spec
	out[LabelCreated] = strconv.FormatInt(o.Created.Unix(), 10)
	if o.Owner != "" {
		out[LabelOwner] = o.Owner
	}
	if o.Pool != "" {
		out[LabelPool] = o.Pool
	}
	if o.Object != "" {
		out[LabelObject] = o.Object
	}
	return out
}

// OwnershipOf reads labels; what is not there is empty.
func OwnershipOf(labels map[string]string) Ownership {
	o := Ownership{Kind: labels[LabelKind], Owner: labels[LabelOwner], Spec: labels[LabelSpec], Pool: labels[LabelPool], Object: labels[LabelObject]}
	if s, err := strconv.ParseInt(labels[LabelCreated], 10, 64); err == nil {
		o.Created = time.Unix(s, 0)
	}
	return o
}

// Adopts decides whether an object that is already there is what an earlier,
// killed run of this configuration made: same kind, pool and specification,
// and the same owner; without an owner, only when it is less than a day old.
// The answer is nil or the reason against it.
func (o Ownership) Adopts(found Ownership, now time.Time) error {
	switch {
	case found.Kind == "":
		return fmt.Errorf("it was not made by this provider")
	case found.Kind != o.Kind || found.Pool != o.Pool:
		return fmt.Errorf("it belongs to something else (%s %s)", found.Kind, found.Pool)
	case found.Owner != o.Owner && found.Owner == "":
		return fmt.Errorf("it was made by a configuration without an owner, and this one is %q", o.Owner)
	case found.Owner != o.Owner:
		return fmt.Errorf("its owner is %q, and this configuration's is %q", found.Owner, o.Owner)
	case found.Spec != o.Spec:
		return fmt.Errorf("it was made from another specification")
	case o.Owner == "" && now.Sub(found.Created) > adoptionAge:
		return fmt.Errorf("it is more than %s old, and without an `owner` in the provider's configuration nothing says that it is yours", adoptionAge)
	}
	return nil
}

// TakenOver says of what was adopted ("v5e-0, v5e-1") what is known of
// who made them: a killed run of this configuration leaves the same labels as
// another configuration that goes by the same owner, or by none.
func TakenOver(what, owner string) string {
	by, safe := fmt.Sprintf("a configuration with the owner %q", owner), "Give each configuration an `owner` of its own in the provider's configuration."
	if owner == "" {
		by = fmt.Sprintf("a configuration without an `owner`, less than %d hours ago", int(adoptionAge.Hours()))
		safe = "To tell them apart, set `owner` in the provider's configuration, to another name in each."
	}
	return fmt.Sprintf("This state did not know %s, and the labels fit. This was made by %s: by an earlier run of this one that did not finish, or by another one, which manages it too and deletes it when it is destroyed. "+
		"If it is another one's, take it out of this state (terraform state rm ADDRESS) and choose another name.\n\n%s", what, by, safe)
}

// UserLabels are the resource labels without those of ownership and those
// that Google adds (goog-...).
func UserLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		if !strings.HasPrefix(k, LabelPrefix) && !strings.HasPrefix(k, "goog-") {
			out[k] = v
		}
	}
	return out
}

// UserNodeLabels are the Kubernetes labels without those that GKE adds.
func UserNodeLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		domain, _, _ := strings.Cut(k, "/")
		if domain != "cloud.google.com" && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io") && !strings.HasSuffix(domain, ".gke.io") {
			out[k] = v
		}
	}
	return out
}
