package gke

import (
	"strings"
	"unicode/utf8"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/grpc/codes"
)

// conditions name their cause by a code of their own.
var conditions = map[containerpb.StatusCondition_Code]Cause{
	containerpb.StatusCondition_GCE_STOCKOUT:                             Stockout,
	containerpb.StatusCondition_GCE_QUOTA_EXCEEDED:                       Quota,
	containerpb.StatusCondition_GKE_SERVICE_ACCOUNT_DELETED:              ServiceAccount,
	containerpb.StatusCondition_NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS: ServiceAccount,
	containerpb.StatusCondition_CLOUD_KMS_KEY_ERROR:                      Key,
	containerpb.StatusCondition_CLOUD_KMS_KEY_DESTROYED:                  Key,
}

// troubleOf is what a node pool says is wrong with it, in its status message
// and its conditions; nil if it says nothing.
func troubleOf(verb, object string, np *containerpb.NodePool) *Error {
	var first *containerpb.StatusCondition
	for _, c := range np.GetConditions() {
		if c.GetCode() == containerpb.StatusCondition_SET_BY_OPERATOR {
			continue
		}
		if first == nil || conditions[first.GetCode()] == Other && conditions[c.GetCode()] != Other {
			first = c
		}
	}
	words := np.GetStatusMessage()
	if words == "" {
		words = first.GetMessage()
	}
	zone := ""
	if l := np.GetLocations(); len(l) > 0 {
		zone = l[0]
	}
	if words == "" && first == nil {
		return &Error{Verb: verb, Object: object, Zone: zone, Message: "node pool " + np.GetName() + " is in status " + np.GetStatus().String()}
	}
	e := operationError(verb, object, zone, int32(codes.Code(first.GetCanonicalCode())), words)
	if named := conditions[first.GetCode()]; named != Other && e.Cause != named && !strings.Contains(words, "[") { // the words may name a code themselves: [GCE_STOCKOUT]
		e.Cause, e.Facts = named, factsOf(named, words, noDetails)
	}
	if e.Facts.Machine == "" {
		e.Facts.Machine = np.GetConfig().GetMachineType()
	}
	return e
}

// longestBrief is how much of words that nobody could read a table may show.
const longestBrief = 200

// briefTrouble is what is wrong with a node pool, in a few words; "" if it says
// nothing. It does not repeat what changes from one look to the next.
func briefTrouble(np *containerpb.NodePool) string {
	if np.GetStatusMessage() == "" && len(np.GetConditions()) == 0 {
		return ""
	}
	e := troubleOf("", "", np)
	switch e.Cause {
	case Other, Invalid, Unavailable, Throttled:
	default:
		return e.Brief()
	}
	text := strings.Join(strings.Fields(e.Message), " ")
	if utf8.RuneCountInString(text) > longestBrief {
		text = string([]rune(text)[:longestBrief-1]) + "…"
	}
	return text
}

// explain adds to a failure of one slice what the request tells and GKE does
// not repeat.
func (p SlicePool) explain(err error) error {
	return amend(err, func(e *Error) {
		if e.Facts.Machine == "" {
			e.Facts.Machine = p.Shape.MachineType
		}
		if e.Facts.Reservation == "" && (e.Cause == Reservation || e.Cause == NoReservation) {
			e.Facts.Reservation = p.Provisioning.Reservation
		}
		if e.Facts.Account == "" && e.Cause == ServiceAccount {
			e.Facts.Account = p.ServiceAccount
		}
		e.Facts.Model = p.Provisioning.Model
	})
}
