package fakegke

import (
	"fmt"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/genproto/googleapis/rpc/code"
)

// Trouble is why the instances of a node pool do not come up, as Compute Engine
// tells GKE.
type Trouble string

// The troubles. The zero value is the first.
const (
	OutOfStock     Trouble = "GCE_STOCKOUT"
	OverQuota      Trouble = "GCE_QUOTA_EXCEEDED"
	Forbidden      Trouble = "CONDITION_NOT_MET"  // by organization policy
	OutOfAddresses Trouble = "IP_SPACE_EXHAUSTED" // of the subnetwork
	KeyDenied      Trouble = "CLOUD_KMS_KEY_ERROR"
)

// time that GKE tries: for capacity that may come, long; for the rest until it
// sees that no instance will start.
func (t Trouble) time() time.Duration {
	if t == "" || t == OutOfStock {
		return stockoutTime
	}
	return 26 * time.Second
}

// words of Compute Engine about one instance.
func (t Trouble) words(instance, project, zone string) string {
	region := place{location: zone}.region()
	said := ""
	switch t {
	case OverQuota:
		said = fmt.Sprintf("Quota 'TPUS_PER_TPU_FAMILY' exceeded.  Limit: 0.0 in region %s.", region)
	case Forbidden:
		said = fmt.Sprintf("Constraint constraints/compute.vmExternalIpAccess violated for project %s. Add instance projects/%s/zones/%s/instances/%s to the constraint to use external IP with it.", project, project, zone, instance)
	case OutOfAddresses:
		said = fmt.Sprintf("IP space of 'projects/%s/regions/%s/subnetworks/default' is exhausted.", project, region)
	case KeyDenied:
		key := fmt.Sprintf("projects/%s/locations/%s/keyRings/ring/cryptoKeys/disk", project, region)
		said = fmt.Sprintf("Cloud KMS error when using key %s: Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource '%s' (or it may not exist).", key, key)
	default:
		t, said = OutOfStock, fmt.Sprintf("The zone 'projects/%s/zones/%s' does not have enough resources available to fulfill the request. '(resource type:compute)'.", project, zone)
	}
	return fmt.Sprintf("[%s]: Instance '%s' creation failed: %s", t, instance, said)
}

// condition of a node pool and of its operation.
func (t Trouble) condition(text string) *containerpb.StatusCondition {
	c := &containerpb.StatusCondition{CanonicalCode: code.Code_RESOURCE_EXHAUSTED, Message: text}
	switch t {
	case "", OutOfStock:
		c.Code = containerpb.StatusCondition_GCE_STOCKOUT
	case OverQuota:
		c.Code = containerpb.StatusCondition_GCE_QUOTA_EXCEEDED
	case KeyDenied:
		c.Code, c.CanonicalCode = containerpb.StatusCondition_CLOUD_KMS_KEY_ERROR, code.Code_FAILED_PRECONDITION
	case Forbidden:
		c.CanonicalCode = code.Code_FAILED_PRECONDITION
	case OutOfAddresses:
	}
	return c
}

// Troubles are all of them.
var Troubles = []Trouble{OutOfStock, OverQuota, Forbidden, OutOfAddresses, KeyDenied}

func shortText(after time.Duration, expected, up int, cause string) string {
	return fmt.Sprintf("Not all instances running in IGM after %s. Expected %d, running %d, transitioning %d. Current errors: %s", after, expected, up, expected-up, cause)
}

func instanceOf(pool, zone string, i int) string {
	return groupName(pool, zone) + "-" + nodeSuffix(pool, zone, 0, i)
}
