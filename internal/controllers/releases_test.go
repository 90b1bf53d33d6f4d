package controllers

import (
	"strings"
	"testing"
)

// Only pairs that were tried together can be asked for; a release that somebody
// else installs is theirs to fit.
func TestPairs(t *testing.T) {
	with := func(jobSet, kueue string) Config {
		return Config{JobSet: JobSetConfig{Version: jobSet}, Kueue: KueueConfig{Version: kueue}}
	}
	alone := with("", "v0.15.2")
	alone.JobSet.Disabled = true
	for name, tt := range map[string]struct {
		c    Config
		want string
	}{
		"the newest":            {with("", ""), ""},
		"the older":             {with("v0.10.1", "v0.15.2"), ""},
		"an older Kueue":        {with("", "v0.15.2"), "JobSet v0.12.0 and Kueue v0.15.2 do not fit each other: want JobSet v0.12.0 with Kueue v0.19.0, or JobSet v0.10.1 with Kueue v0.15.2"},
		"an older JobSet":       {with("v0.10.1", ""), "do not fit each other"},
		"an older Kueue, alone": {alone, ""},
		"unknown":               {with("", "v0.18.0"), "Kueue v0.18.0 is not one that can be installed: want v0.19.0 or v0.15.2"},
		"without its v":         {with("0.12.0", ""), "JobSet 0.12.0 is not one that can be installed"},
		"no path":               {with("", "../SHA256SUMS"), "is not one that can be installed"},
	} {
		t.Run(name, func(t *testing.T) { says(t, tt.c.Validate(), tt.want) })
	}
}

// What would lose objects is refused; what cannot be told is let through.
func TestChangesOfRelease(t *testing.T) {
	for name, tt := range map[string]struct {
		c             Config
		jobSet, kueue string
		want          string
	}{
		"nothing there":         {Config{}, "", "", ""},
		"the same":              {Config{}, JobSetVersion, KueueVersion, ""},
		"the upgrade":           {Config{}, "v0.10.1", "v0.15.2", ""},
		"from one in between":   {Config{}, "v0.11.1", "v0.16.2", ""},
		"back":                  {olderPair(), "v0.10.1", KueueVersion, "Kueue v0.19.0 cannot be replaced by the older v0.15.2"},
		"back, JobSet":          {olderPair(), JobSetVersion, "v0.15.2", "JobSet v0.12.0 cannot be replaced by the older v0.10.1"},
		"a newer one of theirs": {Config{}, JobSetVersion, "v0.20.0", "Ask for v0.20.0, or remove the controllers first"},
		"too old":               {Config{}, "v0.8.1", "v0.14.8", "cannot be upgraded to v0.19.0 in one step"},
		"a build of their own":  {Config{}, "main", "sha256", ""},
		"not ours to say":       {Config{Kueue: KueueConfig{Disabled: true}}, JobSetVersion, "v0.14.8", ""},
	} {
		t.Run(name, func(t *testing.T) { says(t, tt.c.CheckUpgrade(tt.jobSet, tt.kueue), tt.want) })
	}
}

// says checks that an error says want; "" wants none.
func says(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got %v, want no error", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want an error with %q", err, want)
	}
}
