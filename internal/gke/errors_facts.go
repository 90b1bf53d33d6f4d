package gke

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
)

// Facts are what an answer says besides its cause. Each may be missing.
type Facts struct {
	Zone      string   // that has no capacity, or does not offer the machine type
	Machine   string   // machine type
	Elsewhere []string // zones that Compute Engine says have capacity
	Model     ProvisioningModel
	CPU       bool // the machines are a CPU pool's, without TPUs

	Quotas []QuotaFacts // one request may exceed several

	Reservation     string
	Required, Short int // machines; 0 where GKE does not say

	Constraint string // constraints/compute.vmExternalIpAccess

	Permission, Resource string
	Account              string // service account
	API                  string // container.googleapis.com
	Subnet, Range        string // subnetwork's name; CIDR
	Key                  string // projects/P/locations/L/keyRings/R/cryptoKeys/K
}

// QuotaFacts are those of one quota that was exceeded; -1 is unknown.
type QuotaFacts struct {
	Metric, Region                     string
	Limit, Available, Requested, Short float64
}

const number = `'?(\d+(?:\.\d+)?)'?`

var (
	zoneWords    = regexp.MustCompile(`(?i)(?:the zone|in zone|at zone|in the) ['"]?(?:projects/[^/'"]+/zones/)?([a-z]+-[a-z]+\d+-[a-z0-9]+)\b`)
	machineWords = regexp.MustCompile(`(?i)(?:machine type(?: with name)? '?"?|vmType: |\bAn? )((?:ct|tpu|[a-z]\d)[a-z0-9]*-[a-z]+-[a-z0-9]+)`)
	otherZones   = regexp.MustCompile(`(?i)your request in the ([-a-z0-9, ]+) zone\(s\), which`)

	quotaAsked = regexp.MustCompile(`(?i)quota to satisfy request(?: for resource)?: (?:resource )?"([^"]+)"[:.] (?:the )?request requires ` + number + ` and is short ` + number +
		`\. (?:project has a quota of|the regional quota is) ` + number + ` with ` + number + ` available`)
	quotaLimit  = regexp.MustCompile(`(?i)Quota '([^']+)' exceeded\.\s+Limit: (\d+(?:\.\d+)?)(?: in region ([a-z0-9-]+))?`)
	reservation = regexp.MustCompile(`(?i)reservation "([^"]+)"`)
	shortWords  = regexp.MustCompile(`(?i)required (\d+) and short of (\d+)`)
	constraint  = regexp.MustCompile(`constraints/[A-Za-z0-9._]+`)
	required    = regexp.MustCompile(`(?:Required |Permission )['"]?([a-zA-Z]+(?:\.[a-zA-Z]+)+)['"]?`)
	onResource  = regexp.MustCompile(`(?:permission\(?s?\)? for|on resource:?|denied on) ['"]?(?://[^/]+/)?([^'"\s]*[^'"\s.])`)
	actingAs    = regexp.MustCompile(`does not have access to service account ['"]([^'"]+)['"]`)
	gone        = regexp.MustCompile(`(?i)Service account "([^"]+)" does not exist|Gaia id not found for email ([^\s,]+[^\s,.])`)
	apiWords    = regexp.MustCompile(`/apis/api/([a-z0-9.-]+)/`)
	subnet      = regexp.MustCompile(`IP space of '[^']*/subnetworks/([^'/]+)'`)
	ipRange     = regexp.MustCompile(`(?:IP range '|private IP space in |reserve a )([0-9.]*/\d+)`)
	key         = regexp.MustCompile(`projects/[^/\s]+/locations/[^/\s]+/keyRings/[^/\s]+/cryptoKeys/[^/\s:']+`)
)

// factsOf reads an answer. Its details, where GKE sends them, say the same as
// the words and more surely.
func factsOf(c Cause, message string, d apierror.ErrDetails) (f Facts) {
	meta := d.ErrorInfo.GetMetadata()
	switch c {
	case Stockout, NotOffered:
		f.Zone, f.Machine = cmp.Or(meta["zone"], first(zoneWords, message)), cmp.Or(meta["vmType"], first(machineWords, message))
		f.Elsewhere = listed(cmp.Or(meta["zonesAvailable"], first(otherZones, message)))
	case Quota:
		f.Quotas = quotasOf(message, d)
	case Reservation, NoReservation:
		f.Reservation, f.Zone, f.Machine = first(reservation, message), first(zoneWords, message), first(machineWords, message)
		if m := shortWords.FindStringSubmatch(message); m != nil {
			f.Required, f.Short = atoi(m[1]), atoi(m[2])
		}
	case Policy:
		f.Constraint = strings.TrimRight(constraint.FindString(message), ".")
	case Permission:
		f.Permission, f.Resource = cmp.Or(meta["permission"], first(required, message)), cmp.Or(meta["resource"], first(onResource, message))
		if f.Account = first(actingAs, message); f.Account != "" {
			f.Permission = cmp.Or(f.Permission, "iam.serviceAccounts.actAs")
		}
	case APINotEnabled:
		f.API = cmp.Or(meta["service"], first(apiWords, message))
	case NoAddresses:
		f.Subnet, f.Range = first(subnet, message), first(ipRange, message)
	case ServiceAccount:
		f.Account = first(gone, message)
	case Key:
		f.Key, f.Permission = key.FindString(message), first(required, message)
	}
	return f
}

// quotasOf reads every quota that the answer names, once.
func quotasOf(message string, d apierror.ErrDetails) (out []QuotaFacts) {
	add := func(q QuotaFacts) {
		if q.Metric != "" && !slices.ContainsFunc(out, func(o QuotaFacts) bool { return o.Metric == q.Metric }) {
			out = append(out, q)
		}
	}
	for _, m := range quotaAsked.FindAllStringSubmatch(message, -1) {
		add(QuotaFacts{Metric: m[1], Requested: atof(m[2]), Short: atof(m[3]), Limit: atof(m[4]), Available: atof(m[5])})
	}
	for _, m := range quotaLimit.FindAllStringSubmatch(message, -1) {
		add(QuotaFacts{Metric: m[1], Limit: atof(m[2]), Region: m[3], Available: -1, Requested: -1, Short: -1})
	}
	for _, v := range d.QuotaFailure.GetViolations() {
		add(violation(v))
	}
	meta := d.ErrorInfo.GetMetadata()
	add(QuotaFacts{Metric: meta["quota_metric"], Limit: -1, Available: -1, Requested: -1, Short: -1})
	return out
}

func violation(v *errdetails.QuotaFailure_Violation) QuotaFacts {
	return QuotaFacts{Metric: cmp.Or(v.GetQuotaMetric(), v.GetSubject()), Region: v.GetQuotaDimensions()["region"], Limit: float64(v.GetQuotaValue()),
		Available: -1, Requested: -1, Short: -1}
}

// first is the first group of a match that is not empty.
func first(r *regexp.Regexp, s string) string {
	m := r.FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	return cmp.Or(m[1:]...)
}

func listed(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func atoi(s string) int     { n, _ := strconv.Atoi(s); return n }
func atof(s string) float64 { f, _ := strconv.ParseFloat(s, 64); return f }

// noDetails are those of an answer that has none: an operation's, a node pool's.
var noDetails = apierror.ErrDetails{}
