package gke

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// GKE's rules for when it may not work on a cluster, as its documentation of
// maintenance windows and exclusions has them.
const (
	mostExclusions  = 20
	mostNoUpgrades  = 3
	longestNoChange = 90 * 24 * time.Hour
	leastWindow     = 4 * time.Hour  // shorter ones do not count
	leastOpen       = 48 * time.Hour // in every 32 days
	rollingDays     = 32
)

var (
	dailyStart    = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)
	exclusionName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
)

func (t TrainingCluster) checkMaintenance(say sayer) {
	v := t.Settings
	daily := v.text("maintenance.daily_start")
	if daily != "" && !dailyStart.MatchString(daily) {
		say("maintenance.daily_start", "%q is not a time of day: want HH:MM in UTC, such as 03:00", daily)
	}
	var missing []string
	for _, name := range []string{"window_start", "window_end", "recurrence"} {
		if v.text("maintenance."+name) == "" && !t.unknown("maintenance."+name) {
			missing = append(missing, name)
		}
	}
	switch {
	case daily != "" && len(missing) < 3:
		say("maintenance.daily_start", "a daily window and a recurring one exclude each other: leave out daily_start, or window_start, window_end and recurrence")
	case len(missing) > 0 && len(missing) < 3:
		say("maintenance."+missing[0], "a recurring window is window_start, window_end and recurrence together; %s is missing", strings.Join(missing, " and "))
	case len(missing) == 0:
		t.checkWindow(say)
	}
	t.checkExclusions(say)
}

func (t TrainingCluster) checkWindow(say sayer) {
	start, ok := t.time("maintenance.window_start", t.Settings.text("maintenance.window_start"), say)
	end, ok2 := t.time("maintenance.window_end", t.Settings.text("maintenance.window_end"), say)
	if !ok || !ok2 {
		return
	}
	length := end.Sub(start)
	switch {
	case length <= 0:
		say("maintenance.window_end", "the window ends before it begins")
		return
	case length < leastWindow:
		say("maintenance.window_end", "a window of %s is too short: GKE wants at least 4 hours in a row", length)
		return
	case length > 24*time.Hour:
		say("maintenance.window_end", "a window of %s is too long: window_start and window_end are those of the first one, at most a day; recurrence repeats it", length)
		return
	}
	rule := t.Settings.text("maintenance.recurrence")
	if rule == "" {
		return
	}
	times, known, bad := occurrences(rule)
	switch {
	case bad != "":
		say("maintenance.recurrence", "%q is not a recurrence: %s; want one such as FREQ=DAILY or FREQ=WEEKLY;BYDAY=SA,SU (RFC 5545)", rule, bad)
	case known && time.Duration(times)*length < leastOpen:
		say("maintenance.recurrence", "GKE wants at least 48 hours of maintenance windows in 32 days; %q opens a window of %s %d times", rule, length, times)
	}
}

// occurrences is how often a rule recurs in 32 days at least; known is false
// for rules that it does not count.
func occurrences(rule string) (times int, known bool, bad string) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(rule, "RRULE:"), ";") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return 0, false, `it has no "=" in ` + part
		}
		parts[key] = value
	}
	days := strings.Split(parts["BYDAY"], ",")
	for _, d := range days {
		if parts["FREQ"] == "WEEKLY" && parts["BYDAY"] != "" && !slices.Contains([]string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"}, d) {
			return 0, false, d + " is no day of the week"
		}
	}
	_, interval := parts["INTERVAL"]
	switch parts["FREQ"] {
	case "DAILY":
		return rollingDays, !interval, ""
	case "WEEKLY":
		return rollingDays / 7 * len(days), !interval, ""
	case "MONTHLY", "YEARLY", "HOURLY":
		return 0, false, ""
	case "":
		return 0, false, "FREQ is missing"
	}
	return 0, false, "FREQ=" + parts["FREQ"] + " is unknown"
}

func (t TrainingCluster) checkExclusions(say sayer) {
	const at = "maintenance.exclusions"
	all, _ := t.Settings[at].(map[string]map[string]any)
	if len(all) > mostExclusions {
		say(at, "%d exclusions; GKE takes %d", len(all), mostExclusions)
	}
	full := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := all[name]
		text := func(key string) string { s, _ := e[key].(string); return s }
		if !exclusionName.MatchString(name) {
			say(at, "%q is not a name of an exclusion: want lowercase letters, digits and dashes", name)
		}
		start, ok := t.time(at, text("start"), say)
		end, ok2 := t.time(at, text("end"), say)
		scope := text("scope")
		if scope == "NO_UPGRADES" {
			full++
		} else if scope != "" && t.Settings.text("release_channel") == "UNSPECIFIED" {
			say(at, "%s: scope %s needs a release channel", name, scope)
		}
		switch {
		case !ok || !ok2 || text("start") == "" || text("end") == "":
		case !end.After(start):
			say(at, "%s ends before it begins", name)
		case scope == "NO_UPGRADES" && end.Sub(start) > longestNoChange:
			say(at, "%s lasts %d days; GKE goes without any upgrade for at most %d: choose another scope or a shorter time", name, int(end.Sub(start).Hours()/24), int(longestNoChange.Hours()/24))
		}
	}
	if full > mostNoUpgrades {
		say(at, "%d exclusions of scope NO_UPGRADES; GKE takes %d", full, mostNoUpgrades)
	}
}

// time reads a text; "" is not known and no problem.
func (t TrainingCluster) time(at, s string, say sayer) (time.Time, bool) {
	if s == "" {
		return time.Time{}, true
	}
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		say(at, "%q is not a time: want one such as 2026-11-21T03:00:00Z (RFC 3339)", s)
		return v, false
	}
	return v, true
}
