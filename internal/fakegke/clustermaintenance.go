package fakegke

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/encoding/protojson"
)

// Limits of maintenance policies: "Maintenance windows and exclusions" in
// GKE's documentation.
const (
	maxExclusions     = 20
	maxFullExclusions = 3 // those that stop all upgrades
	maxFullExclusion  = 30 * 24 * time.Hour
	maintenancePeriod = 32 * 24 * time.Hour
	minMaintenance    = 48 * time.Hour // in each such period
	minWindow         = 4 * time.Hour  // shorter ones do not count
)

// fillMaintenance writes what the service adds to a policy.
func fillMaintenance(c *containerpb.Cluster) {
	p := ensure(&c.MaintenancePolicy)
	if d := p.Window.GetDailyMaintenanceWindow(); d != nil {
		d.Duration = "PT4H0M0S"
	}
	p.ResourceVersion = ""
	b, _ := protojson.Marshal(p)
	// protojson varies its blanks on purpose; the version must not.
	p.ResourceVersion = digest(8, strings.ReplaceAll(string(b), " ", ""))
}

var clock = regexp.MustCompile(`^([01]\d|2[0-3]):[0-5]\d$`)

// checkMaintenance refuses a policy that leaves GKE too little time.
func checkMaintenance(c *containerpb.Cluster) error {
	w := c.MaintenancePolicy.GetWindow()
	if d := w.GetDailyMaintenanceWindow(); d != nil && !clock.MatchString(d.StartTime) {
		return invalid("Invalid maintenance window start time %q: want HH:MM in UTC.", d.StartTime)
	}
	if r := w.GetRecurringWindow(); r != nil {
		start, end := r.Window.GetStartTime(), r.Window.GetEndTime()
		if start == nil || end == nil {
			return invalid("Start time and end time of the recurring maintenance window must be specified.")
		}
		if err := checkRecurrence(r.Recurrence, end.AsTime().Sub(start.AsTime())); err != nil {
			return err
		}
	}
	if r := w.GetRecurringMaintenanceWindow(); r != nil {
		if err := checkRecurrence(r.Recurrence, r.WindowDuration.AsDuration()); err != nil {
			return err
		}
	}
	return checkExclusions(c)
}

// checkRecurrence refuses a window that gives less than 48 hours in 32 days.
func checkRecurrence(rule string, length time.Duration) error {
	if length <= 0 {
		return invalid("The end time of the maintenance window must be after its start time.")
	}
	if length > 24*time.Hour {
		return invalid("The maintenance window must not be longer than 24 hours.")
	}
	times, ok := occurrences(rule)
	if !ok {
		return invalid("Invalid recurrence %q: want an RRULE of RFC 5545 with FREQ=DAILY, WEEKLY or MONTHLY.", rule)
	}
	if length < minWindow || time.Duration(times)*length < minMaintenance {
		return invalid("maintenance policy would go longer than 32d without 48h maintenance availability")
	}
	return nil
}

var days = []string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"}

// occurrences is how often a rule applies in 32 days, at least.
func occurrences(rule string) (int, bool) {
	parts := map[string]string{"INTERVAL": "1"}
	for part := range strings.SplitSeq(strings.TrimPrefix(rule, "RRULE:"), ";") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || value == "" {
			return 0, false
		}
		parts[name] = value
	}
	interval, err := strconv.Atoi(parts["INTERVAL"])
	if err != nil || interval < 1 {
		return 0, false
	}
	perWeek := len(days)
	if by := parts["BYDAY"]; by != "" {
		chosen := map[string]bool{}
		for day := range strings.SplitSeq(by, ",") {
			day = strings.TrimLeft(day, "+-0123456789") // the first Monday of a month is 1MO
			if !slices.Contains(days, day) {
				return 0, false
			}
			chosen[day] = true
		}
		perWeek = len(chosen)
	} else if parts["FREQ"] == "WEEKLY" {
		perWeek = 1
	}
	period := int(maintenancePeriod / (24 * time.Hour))
	switch parts["FREQ"] {
	case "DAILY":
		return period * perWeek / len(days) / interval, true
	case "WEEKLY":
		return period / len(days) / interval * perWeek, true
	case "MONTHLY":
		if byMonthDay := parts["BYMONTHDAY"]; byMonthDay != "" {
			return (1 + strings.Count(byMonthDay, ",")) / interval, true
		}
		return 1 / interval, true
	}
	return 0, false
}

func checkExclusions(c *containerpb.Cluster) error {
	exclusions := c.MaintenancePolicy.GetWindow().GetMaintenanceExclusions()
	if len(exclusions) > maxExclusions {
		return invalid("Cluster has %d maintenance exclusions, the limit is %d.", len(exclusions), maxExclusions)
	}
	full := 0
	for _, name := range slices.Sorted(maps.Keys(exclusions)) {
		e := exclusions[name]
		o := e.GetMaintenanceExclusionOptions()
		untilEnd := o.GetEndTimeBehavior() == containerpb.MaintenanceExclusionOptions_UNTIL_END_OF_SUPPORT
		length := e.GetEndTime().AsTime().Sub(e.GetStartTime().AsTime())
		switch {
		case e.GetStartTime() == nil:
			return invalid("Start time of maintenance exclusion %q must be specified.", name)
		case untilEnd && e.EndTime != nil:
			return invalid("Maintenance exclusion %q cannot have an end time: it lasts until the end of support.", name)
		case untilEnd:
		case e.EndTime == nil:
			return invalid("End time of maintenance exclusion %q must be specified.", name)
		case length <= 0:
			return invalid("The end time of maintenance exclusion %q must be after its start time.", name)
		}
		if o.GetScope() == containerpb.MaintenanceExclusionOptions_NO_UPGRADES {
			full++
			if untilEnd {
				return invalid("Maintenance exclusion %q of scope NO_UPGRADES cannot last until the end of support.", name)
			}
			if length > maxFullExclusion {
				return invalid("Maintenance exclusion %q of scope NO_UPGRADES is longer than 30 days.", name)
			}
			continue
		}
		if c.ReleaseChannel.GetChannel() == containerpb.ReleaseChannel_UNSPECIFIED {
			return invalid("Maintenance exclusion %q of scope %s needs a release channel.", name, o.GetScope())
		}
	}
	if full > maxFullExclusions {
		return invalid("Cluster has %d maintenance exclusions of scope NO_UPGRADES, the limit is %d.", full, maxFullExclusions)
	}
	return nil
}
