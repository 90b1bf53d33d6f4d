package gke

import (
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/grpc/codes"
)

// What GKE and Compute Engine really said, each with where it was published,
// becomes a cause, a few words that name the zone, quota, permission, and a
// next step.
func TestWordsOfGKE(t *testing.T) {
	const pool = "projects/acme/locations/us-west4-a/clusters/main/nodePools/v5e-0"
	for name, c := range map[string]struct {
		code  codes.Code
		words string
		cause Cause
		brief string
		next  []string
	}{
		// https://github.com/akka/akka-core/issues/32992
		"stockout": {codes.Internal, `Google Compute Engine: Not all instances running in IGM after 35m4.033429035s. Expected 5, running 2, transitioning 3. Current errors: [GCE_STOCKOUT]: Instance 'gke-akka-multi-node-3479-default-pool-97da88a9-8gmv' creation failed: The zone 'projects/acme/zones/us-central1-c' does not have enough resources available to fulfill the request. '(resource type:compute)'.`,
			Stockout, "no capacity in us-central1-c", []string{"Apply again later", "choose another zone", "reservation, spot or flex_start"}},
		// https://github.com/kubernetes/k8s.io/issues/9834
		"stockout with details": {codes.Unavailable, `ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: A n1-standard-4 VM instance with 1 nvidia-tesla-t4 accelerator(s) is currently unavailable in the us-central1-b zone. Consider trying your request in the us-central1-a, us-central1-f zone(s), which currently has capacity to accommodate your request. Alternatively, you can try your request again with a different VM hardware configuration or at a later time.`,
			Stockout, "no capacity for n1-standard-4 in us-central1-b", []string{"known to have it: us-central1-a, us-central1-f"}},
		// https://github.com/m-lab/etl/issues/798
		"quota": {codes.PermissionDenied, `Insufficient regional quota to satisfy request: resource "CPUS": request requires '144.0' and is short '109.0'. project has a quota of '128.0' with '35.0' available. View and manage quotas at https://console.cloud.google.com/iam-admin/quotas?usage=USED&project=mlab-staging.`,
			Quota, "quota CPUS exceeded in us-west4: limit 128, 35 free, 144 asked for, 109 short", []string{"quotas?project=acme"}},
		// https://github.com/kaiwaehner/hivemq-mqtt-tensorflow-kafka-realtime-iot-machine-learning-training-inference/issues/48
		"two quotas": {codes.PermissionDenied, "\n\t(1) insufficient regional quota to satisfy request: resource \"CPUS\": request requires '72.0' and is short '48.0'. project has a quota of '24.0' with '24.0' available. View and manage quotas at https://console.cloud.google.com/iam-admin/quotas?usage=USED&project=x\n\t(2) insufficient regional quota to satisfy request: resource \"IN_USE_ADDRESSES\": request requires '9.0' and is short '1.0'. project has a quota of '8.0' with '8.0' available.",
			Quota, "quota CPUS exceeded in us-west4: limit 24, 24 free, 72 asked for, 48 short; quota IN_USE_ADDRESSES exceeded in us-west4: limit 8, 8 free, 9 asked for, 1 short", nil},
		// https://github.com/kubeflow/examples/issues/597
		"quota of all regions": {codes.PermissionDenied, `Insufficient project quota to satisfy request: resource "CPUS_ALL_REGIONS": request requires '16.0' and is short '4.0'. project has a quota of '12.0' with '12.0' available.`,
			Quota, "quota CPUS_ALL_REGIONS exceeded: limit 12, 12 free, 16 asked for, 4 short", nil},
		// https://github.com/kubeflow/kubeflow/issues/842
		"quota, older words": {codes.PermissionDenied, `Insufficient regional quota to satisfy request for resource: "IN_USE_ADDRESSES". The request requires '2.0' and is short '1.0'. The regional quota is '32.0' with '1.0' available.`,
			Quota, "quota IN_USE_ADDRESSES exceeded in us-west4: limit 32, 1 free, 2 asked for, 1 short", nil},
		// https://github.com/kubernetes-sigs/sig-storage-local-static-provisioner/pull/526
		"quota, late": {codes.ResourceExhausted, `Insufficient quota to satisfy the request: Not all instances running in IGM after 26.633785888s. Expected 3, running 0, transitioning 3. Current errors: [GCE_QUOTA_EXCEEDED]: Instance 'gke-e2e-default-pool-eed1856c-xwl9' creation failed: Quota 'IN_USE_ADDRESSES' exceeded.  Limit: 8.0 in region europe-central2.`,
			Quota, "quota IN_USE_ADDRESSES exceeded in europe-central2: limit 8", nil},
		// https://github.com/GoogleCloudPlatform/gsutil/issues/1000
		"reservation": {codes.ResourceExhausted, `Reservation does not have enough resources for the request: specific reservation "reservation" is insufficient for node pool "np4" at zone "us-central1-c": required 1 and short of 1 VM count of machine type n2-standard-2.`,
			Reservation, "reservation reservation has too few free machines: 1 n2-standard-2 needed, 1 short", []string{"gcloud compute reservations describe reservation --zone us-central1-c --project acme"}},
		// https://github.com/skypilot-org/skypilot/issues/4579
		"reserved capacity": {codes.ResourceExhausted, `Insufficient reserved capacity. Contact customer support to increase your reservation. [EID: 0x7adf6d58c08b0aa4]`,
			Reservation, "reservation has too few free machines", []string{"Free some, enlarge it"}},
		// https://github.com/GoogleCloudPlatform/cluster-toolkit/pull/5043
		"no reservation": {codes.NotFound, `Google Compute Engine: reservation "h4d-reservation/reservationBlocks/h4d-reservation-block-0001" not found for node pool "h4d-highmem-192-lssd-h4d-pool" at zone "us-central1-b".`,
			NoReservation, "reservation h4d-reservation/reservationBlocks/h4d-reservation-block-0001 is not there or not usable in us-central1-b",
			[]string{"gcloud compute reservations describe h4d-reservation --zone us-central1-b", "shared with this project"}},
		// https://github.com/AI-Hypercomputer/xpk/issues/476
		"unfit reservation": {codes.InvalidArgument, `Invalid value for field 'resource.reservationAffinity': '{ "consumeReservationType": "SPECIFIC_ALLOCATION", "key": "compute.googleapis.com/reservation-name`,
			NoReservation, "reservation not usable", []string{"machine type it is for"}},
		// https://github.com/hashicorp/terraform-provider-google/issues/4989
		"policy": {codes.Internal, `Current errors: [CONDITION_NOT_MET]: Instance 'gke-xxxx-gke-cluster-default-pool-c31c32c3-pmp1' creation failed: Constraint constraints/compute.vmCanIpForward violated for projects/xxxxxxx. Enabling IP forwarding is not allowed for projects/xxxxxx/zones/europe-west2-a/instances/gke-xxxxx.`,
			Policy, "forbidden by organization policy constraints/compute.vmCanIpForward", []string{"gcloud org-policies describe compute.vmCanIpForward --effective --project acme"}},
		// https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/2008
		"policy of keys": {codes.FailedPrecondition, "Failed precondition: Constraint `constraints/gcp.restrictNonCmekServices` violated for `projects/427955863992` attempting to create a resource without specifying a KMS CryptoKey.",
			Policy, "forbidden by organization policy constraints/gcp.restrictNonCmekServices", []string{"bootDiskKmsKey"}},
		// https://github.com/2i2c-org/infrastructure/issues/488
		"permission": {codes.PermissionDenied, `Required "container.clusters.get" permission(s) for "projects/two-eye-two-see/zones/us-central1-b/clusters/low-touch-hubs-cluster".`,
			Permission, "permission denied: container.clusters.get on projects/two-eye-two-see/zones/us-central1-b/clusters/low-touch-hubs-cluster", []string{"roles/container.admin on project acme", "tpuctl version --verbose"}},
		// https://github.com/hashicorp/terraform-provider-google/issues/8262
		"permission on a network": {codes.PermissionDenied, `Google Compute Engine: Required 'compute.networks.get' permission for 'projects/host/global/networks/default'`,
			Permission, "permission denied: compute.networks.get on projects/host/global/networks/default", []string{"roles/compute.networkUser on projects/host"}},
		// https://github.com/GoogleCloudPlatform/healthcare/issues/475
		"location": {codes.PermissionDenied, `Permission denied on 'locations/us-west9' (or it may not exist).`,
			Permission, "permission denied on locations/us-west9", []string{"Check the location"}},
		// https://github.com/GoogleCloudPlatform/cluster-toolkit (docs, resume.log of a refused start)
		"acting as the node's account": {codes.PermissionDenied, `The user does not have access to service account 'nodes'.  User: ''.  Ask a project owner to grant you the iam.serviceAccountUser role on the service account`,
			Permission, "permission denied: iam.serviceAccounts.actAs on service account nodes", []string{"add-iam-policy-binding nodes --role roles/iam.serviceAccountUser"}},
		// https://github.com/hashicorp/terraform-provider-google/issues/15415
		"key": {codes.Internal, `Cloud KMS error when using key projects/acme/locations/us-east1/keyRings/ring/cryptoKeys/disk: Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource 'projects/acme/locations/us-east1/keyRings/ring/cryptoKeys/disk' (or it may not exist).`,
			Key, "encryption key projects/acme/locations/us-east1/keyRings/ring/cryptoKeys/disk is not usable", []string{"roles/cloudkms.cryptoKeyEncrypterDecrypter"}},
		// https://github.com/GoogleCloudPlatform/k8s-config-connector/issues/492
		"API": {codes.PermissionDenied, `Kubernetes Engine API has not been used in project 538440108421 before or it is disabled. Enable it by visiting https://console.developers.google.com/apis/api/container.googleapis.com/overview?project=538440108421 then retry. If you enabled this API recently, wait a few minutes for the action to propagate to our systems and retry.`,
			APINotEnabled, "API not enabled: container.googleapis.com", []string{"gcloud services enable container.googleapis.com --project acme"}},
		// https://github.com/jenkins-x/terraform-google-jx/issues/115
		"API, other words": {codes.PermissionDenied, `Kubernetes Engine API is not enabled for this project. Please ensure it is enabled in Google Cloud Console and try again: visit https://console.cloud.google.com/apis/api/container.googleapis.com/overview?project=jx-20200617144145 to do so.`,
			APINotEnabled, "API not enabled: container.googleapis.com", nil},
		// https://github.com/hashicorp/terraform-cdk/issues/1964
		"addresses": {codes.ResourceExhausted, `requested resource is exhausted: Not all instances running in IGM after 24.159253228s. Expected 1, running 0, transitioning 1. Current errors: [IP_SPACE_EXHAUSTED]: Instance 'gke-cluster-dev-default-pool-4813919b-4f9v' creation failed: IP space of 'projects/project-name-xxxxxx/regions/europe-west1/subnetworks/subnet-dev-services-range-49c037f0c13a0320' is exhausted.`,
			NoAddresses, "no free IP addresses in subnetwork subnet-dev-services-range-49c037f0c13a0320", []string{"node.max_pods", "--additional-pod-ipv4-ranges"}},
		// https://github.com/Privatehive/gcp-hosted-github-runner/pull/7
		"addresses with details": {codes.InvalidArgument, `IP_SPACE_EXHAUSTED_WITH_DETAILS: IP space of 'projects/acme/regions/us-central1/subnetworks/spot-runner-subnetwork' is exhausted. Insufficient free IP addresses in the IP range '10.0.1.0/24'. Consider expanding the current IP range or selecting an alternative IP range.`,
			NoAddresses, "no free IP addresses in subnetwork spot-runner-subnetwork in 10.0.1.0/24", nil},
		// https://github.com/sassoftware/viya4-iac-gcp/issues/148
		"service account": {codes.InvalidArgument, `Service account "nodes" does not exist.`,
			ServiceAccount, "node service account nodes is not usable", []string{"node.service_account", "roles/container.defaultNodeServiceAccount"}},
		// https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/1418
		"default service account": {codes.NotFound, `Generic::not_found: Not found; Gaia id not found for email default., notFound`, ServiceAccount, "node service account default is not usable", nil},
		// https://cloud.google.com/kubernetes-engine/docs/troubleshooting/node-pools
		"machine type": {codes.InvalidArgument, `Machine type with name 'ct5p-hightpu-4t' does not exist in zone 'us-west4-a'.`,
			NotOffered, "ct5p-hightpu-4t is not offered in us-west4-a", []string{`gcloud compute machine-types list --filter="name=ct5p-hightpu-4t"`}},
		// https://google.aip.dev/154, https://github.com/GoogleCloudPlatform/magic-modules/pull/18677
		"etag": {codes.Aborted, `Etag mismatch`, Stale, "changed in the meantime", []string{"Apply again"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := operationError("creating node pool", pool, "us-west4-a", int32(c.code), c.words)
			if e.Cause != c.cause || e.Brief() != c.brief {
				t.Errorf("cause %q, brief %q\nwant %q, %q", e.Cause, e.Brief(), c.cause, c.brief)
			}
			for _, w := range append(c.next, c.words, "creating node pool "+pool+" in us-west4-a") {
				if !strings.Contains(e.Error(), w) {
					t.Errorf("%q lacks %q", e, w)
				}
			}
		})
	}
}

// Ten slices without the same quota are told of once, two quotas twice.
func TestKindsOfErrors(t *testing.T) {
	quota := func(metric, short string) string {
		return operationError("creating node pool", "x", "us-west4-a", 7, `Insufficient regional quota to satisfy request: resource "`+metric+`": request requires '4.0' and is short '`+short+`.0'. project has a quota of '4.0' with '1.0' available.`).Kind()
	}
	if quota("CPUS", "1") != quota("CPUS", "2") || quota("CPUS", "1") == quota("TPUS", "1") {
		t.Error("a quota's amount is not what tells kinds apart, its metric is")
	}
}

// A slice's message is short, names the machine, and stays the same while GKE
// goes on counting the time.
func TestTroubleOfANodePool(t *testing.T) {
	words := func(s string) *containerpb.NodePool {
		return &containerpb.NodePool{Name: "v5e-0", Status: containerpb.NodePool_ERROR, Locations: []string{"us-west4-a"}, StatusMessage: s,
			Config: &containerpb.NodeConfig{MachineType: "ct5lp-hightpu-4t"}}
	}
	condition := func(c containerpb.StatusCondition_Code, s string) *containerpb.NodePool {
		np := words("")
		np.Conditions = []*containerpb.StatusCondition{{Message: "something else"}, {Code: c, Message: s}}
		return np
	}
	for name, c := range map[string]struct {
		np   *containerpb.NodePool
		want string
	}{
		"nothing":            {words(""), ""},
		"a stockout":         {words("Google Compute Engine: Atomic resize failed with [GCE_STOCKOUT]"), "no capacity for ct5lp-hightpu-4t in us-west4-a"},
		"told early":         {condition(containerpb.StatusCondition_GCE_STOCKOUT, "still looking"), "no capacity for ct5lp-hightpu-4t in us-west4-a"},
		"a quota":            {condition(containerpb.StatusCondition_GCE_QUOTA_EXCEEDED, "Instance 'i' creation failed: Quota 'TPUS_PER_TPU_FAMILY' exceeded.  Limit: 0.0 in region us-west4."), "quota TPUS_PER_TPU_FAMILY exceeded in us-west4: limit 0"},
		"a deleted account":  {condition(containerpb.StatusCondition_GKE_SERVICE_ACCOUNT_DELETED, "gone"), "node service account is not usable"},
		"a destroyed key":    {condition(containerpb.StatusCondition_CLOUD_KMS_KEY_DESTROYED, "gone"), "encryption key is not usable"},
		"words of no kind":   {words("Something\n  odd  happened."), "Something odd happened."},
		"far too many words": {words(strings.Repeat("long ", 100)), strings.Repeat("long ", 39) + "long…"},
		"an operator's doing": {func() *containerpb.NodePool {
			np := words("")
			np.Conditions = []*containerpb.StatusCondition{{Code: containerpb.StatusCondition_SET_BY_OPERATOR}}
			return np
		}(), "node pool v5e-0 is in status ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sliceOf(c.np).Message; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
