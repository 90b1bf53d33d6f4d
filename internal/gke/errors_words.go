package gke

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Brief is the cause in a few words, with the zone, machine, quota or
// permission it is about: for a summary, a table, the message of a slice.
func (e *Error) Brief() string {
	f := e.Facts
	switch e.Cause {
	case Stockout:
		return "no capacity" + with(" for ", f.Machine) + " in " + cmp.Or(f.Zone, zoneOf(e.Zone), "the zone")
	case NotOffered:
		return cmp.Or(f.Machine, "the machine type") + " is not offered in " + cmp.Or(f.Zone, zoneOf(e.Zone), "the zone")
	case Quota:
		parts := make([]string, 0, len(f.Quotas))
		for _, q := range f.Quotas {
			parts = append(parts, q.say(e.Zone))
		}
		return cmp.Or(strings.Join(parts, "; "), string(e.Cause))
	case Reservation:
		text := "reservation" + with(" ", f.Reservation) + " has too few free machines"
		if f.Short > 0 {
			text += fmt.Sprintf(": %d%s needed, %d short", f.Required, with(" ", f.Machine), f.Short)
		}
		return text
	case NoReservation:
		if f.Reservation == "" {
			return string(e.Cause)
		}
		return "reservation " + f.Reservation + " is not there or not usable" + with(" in ", f.Zone)
	case Policy:
		return string(e.Cause) + with(" ", f.Constraint)
	case NoAddresses:
		return string(e.Cause) + with(" in subnetwork ", f.Subnet) + with(" in ", f.Range)
	case ServiceAccount:
		return "node service account" + with(" ", f.Account) + " is not usable"
	case Key:
		return "encryption key" + with(" ", f.Key) + " is not usable"
	case Permission:
		if f.Account != "" {
			return string(e.Cause) + ": " + f.Permission + " on service account " + f.Account
		}
		if f.Permission == "" && f.Resource != "" {
			return string(e.Cause) + " on " + f.Resource
		}
		return string(e.Cause) + with(": ", f.Permission+with(" on ", f.Resource))
	case APINotEnabled:
		return string(e.Cause) + with(": ", f.API)
	}
	return string(e.Cause)
}

// Kind tells errors apart of which each deserves a message of its own: two
// slices that lack the same quota by different amounts are of one kind.
func (e *Error) Kind() string {
	f := e.Facts
	parts := []string{string(e.Cause), e.Verb, f.Zone, f.Reservation, f.Constraint, f.Permission, f.API, f.Subnet, f.Key, f.Account}
	for _, q := range f.Quotas {
		parts = append(parts, q.Metric)
	}
	if e.Cause == Other || e.Cause == Invalid {
		parts = append(parts, e.Message)
	}
	return strings.Join(parts, "\x00")
}

func with(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// zoneOf is the location if it is a zone.
func zoneOf(location string) string {
	if (ClusterName{Location: location}).Zonal() {
		return location
	}
	return ""
}

func (q QuotaFacts) say(location string) string {
	text := "quota " + q.Metric + " exceeded"
	if region := cmp.Or(q.Region, ClusterName{Location: location}.Region()); region != "" && !strings.Contains(q.Metric, "ALL_REGIONS") {
		text += " in " + region
	}
	var parts []string
	for _, p := range []struct {
		before string
		value  float64
		after  string
	}{{"limit ", q.Limit, ""}, {"", q.Available, " free"}, {"", q.Requested, " asked for"}, {"", q.Short, " short"}} {
		if p.value >= 0 {
			parts = append(parts, p.before+strconv.FormatFloat(p.value, 'f', -1, 64)+p.after)
		}
	}
	return text + with(": ", strings.Join(parts, ", "))
}

// tokenOf is the token that credentials gave, which may be a token themselves.
func tokenOf(credentials string) string {
	if strings.HasPrefix(credentials, givenToken) {
		return credentials
	}
	return "the token that came from " + credentials
}

// Next says what to do, or "".
func (e *Error) Next() string {
	if _, _, next, ok := TokenFailure(e.Err); ok {
		return next
	}
	project := projectOf(e.Object)
	f := e.Facts
	switch e.Cause {
	case Stockout:
		// A cluster is made with CPU pools alone.
		f.CPU = f.CPU || !strings.Contains(e.Object, "/nodePools/")
		return f.nextOfStockout()
	case Reservation:
		return "The reservation has fewer free machines than the slice needs. Free some, enlarge it, or ask for fewer slices: " + describeReservation(f, e)
	case NoReservation:
		return "Check its name, its zone, the machine type it is for, and that it is shared with this project: " + describeReservation(f, e)
	case Quota:
		return "Ask for more of it (https://console.cloud.google.com/iam-admin/quotas?project=" + project + "), or use less: fewer or smaller slices, or another region."
	case Policy:
		return nextOfPolicy(f.Constraint, project)
	case NoAddresses:
		return "Each node takes one address of the subnetwork and a block for its pods (twice max_pods, rounded up to a power of two). Lower node.max_pods, widen the range, or add a pod range to the cluster " +
			"(gcloud container clusters update CLUSTER --additional-pod-ipv4-ranges=RANGE)."
	case NotOffered:
		return "See where it is: gcloud compute machine-types list --filter=\"name=" + cmp.Or(f.Machine, "MACHINE_TYPE") + "\" --project " + project + "; then choose another zone, or another accelerator or machine type."
	case ServiceAccount:
		return "Create it, undelete it, or name another in node.service_account. It needs roles/container.defaultNodeServiceAccount on project " + project + "."
	case Key:
		return "The Compute Engine service agent (service-PROJECT_NUMBER at compute-system.iam.gserviceaccount.com) needs roles/cloudkms.cryptoKeyEncrypterDecrypter on the key, which has to be enabled and in the cluster's region."
	case Stale:
		return "Somebody else changed it at the same time. Apply again."
	case Permission:
		return e.nextOfPermission(project)
	case Unauthenticated:
		if e.Account != "" {
			return "Google does not accept " + tokenOf(e.Account) + ": it has expired or was revoked. Log in again (gcloud auth application-default login), get a new token, or use other credentials."
		}
		return "Google does not accept the token. Log in again (gcloud auth application-default login), or renew GOOGLE_OAUTH_ACCESS_TOKEN or the key file in use."
	case NoCredentials:
		missing := &credentialsError{}
		_ = errors.As(e.Err, &missing)
		return missing.next()
	case APINotEnabled:
		return "Enable it: gcloud services enable " + cmp.Or(f.API, "container.googleapis.com") + " --project " + project
	case NotFound:
		if strings.Contains(e.Object, "/clusters/") {
			return "Check project, location and name. If the cluster is made in the same configuration, refer to its id, so that it is made first."
		}
	case Incompatible, TooManyOps, Throttled:
		return "This passes by itself; apply again later."
	case Unavailable:
		return "The service had a problem; apply again."
	case Unreachable:
		return "Check the network, the proxy (HTTPS_PROXY) and gke_endpoint (TPU_GKE_ENDPOINT)."
	case NotSecure:
		return "Check gke_endpoint (TPU_GKE_ENDPOINT): whether it begins with https:// or http:// (http only on this machine), and whether its certificate is one that this machine trusts, for that name."
	case TimedOut:
		return "Apply again to go on waiting, or raise the timeout."
	}
	return ""
}

func (f Facts) nextOfStockout() string {
	text := "Apply again later"
	if len(f.Elsewhere) > 0 {
		text += ", choose another zone (known to have it: " + strings.Join(f.Elsewhere, ", ") + ")"
	} else {
		text += ", choose another zone"
	}
	if f.CPU {
		return text + ", or another machine type."
	}
	switch f.Model {
	case FromReservation:
		return text + ", or check that the reservation's machines are healthy and not held by node pools that were given up."
	case Spot:
		return text + ", or use a reservation, flex_start or on_demand."
	case FlexStart, Queued:
		return text + ", or use a reservation."
	}
	return text + ", or use a reservation, spot or flex_start."
}

func describeReservation(f Facts, e *Error) string {
	name, project := cmp.Or(f.Reservation, "RESERVATION"), projectOf(e.Object)
	if parts := strings.Split(name, "/"); len(parts) > 3 && parts[0] == "projects" { // projects/P/reservations/NAME
		project, name = parts[1], parts[3]
	} else {
		name = parts[0] // NAME/reservationBlocks/BLOCK
	}
	return "gcloud compute reservations describe " + name + " --zone " + cmp.Or(f.Zone, zoneOf(e.Zone), "ZONE") + " --project " + project
}

// settings by which the configuration itself can satisfy a constraint.
var complies = map[string]string{
	"constraints/compute.vmExternalIpAccess":           "Set node.private = true: the nodes then have no external addresses.",
	"constraints/compute.requireShieldedVm":            "Set node_pool_overrides = jsonencode({ config = { shieldedInstanceConfig = { enableSecureBoot = true, enableIntegrityMonitoring = true } } }).",
	"constraints/gcp.restrictNonCmekServices":          "Set node_pool_overrides = jsonencode({ config = { bootDiskKmsKey = \"projects/P/locations/L/keyRings/R/cryptoKeys/K\" } }).",
	"constraints/compute.requireOsLogin":               "GKE nodes need an exception from it.",
	"constraints/compute.vmCanIpForward":               "GKE nodes forward packets and need an exception from it.",
	"constraints/compute.restrictSharedVpcSubnetworks": "Choose a subnetwork of the cluster that the policy allows.",
}

func nextOfPolicy(name, project string) string {
	ask := "ask whoever administers the organization for an exception"
	if name != "" {
		ask += ": gcloud org-policies describe " + strings.TrimPrefix(name, "constraints/") + " --effective --project " + project
	}
	if own := complies[name]; own != "" {
		return own + " Or " + ask
	}
	return "Change the configuration so that it complies, or " + ask
}

// roles that hold a permission, by its beginning; any other is in
// roles/container.admin.
var roles = []struct{ prefix, role string }{
	{"compute.subnetworks.", "roles/compute.networkUser"}, {"compute.networks.", "roles/compute.networkUser"}, {"compute.resourcePolicies.", "roles/compute.instanceAdmin.v1"},
	{"compute.reservations.", "roles/compute.viewer"}, {"serviceusage.services.use", "roles/serviceusage.serviceUsageConsumer"}, {"iam.serviceAccounts.getAccessToken", "roles/iam.serviceAccountTokenCreator"},
}

func (e *Error) nextOfPermission(project string) string {
	f := e.Facts
	who, whose := "The account in use", "; `tpuctl version --verbose` shows which account that is."
	if e.Account != "" {
		who, whose = "In use is "+e.Account+". It", "."
	}
	if strings.HasPrefix(f.Resource, "locations/") {
		return "Check the location: there may be none of that name, or a policy hides it. " + who + " needs roles/container.admin on project " + project + whose
	}
	if f.Account != "" {
		return who + " needs roles/iam.serviceAccountUser on it: gcloud iam service-accounts add-iam-policy-binding " + f.Account +
			" --role roles/iam.serviceAccountUser --member ACCOUNT --project " + project + whose
	}
	for _, r := range roles {
		if !strings.HasPrefix(f.Permission, r.prefix) {
			continue
		}
		if strings.HasPrefix(r.prefix, "compute.") { // a network of another project
			return who + ", or GKE's service agent where the network is another project's, needs " + r.role + " on " + cmp.Or(f.Resource, "project "+project) + whose
		}
		return who + " needs " + r.role + " on " + cmp.Or(f.Resource, "project "+project) + whose
	}
	return who + " needs roles/container.admin on project " + project + " (and roles/iam.serviceAccountUser on the node service account)" + whose
}

func projectOf(path string) string {
	if rest, ok := strings.CutPrefix(path, "projects/"); ok {
		project, _, _ := strings.Cut(rest, "/")
		return project
	}
	return "PROJECT"
}
