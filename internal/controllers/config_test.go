package controllers

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		c    Config
		want string // part of the error; "" means valid
	}{
		"defaults":           {Config{}, ""},
		"everything":         {everything(), ""},
		"upstream's port":    {Config{WebhookPort: 9443}, ""},
		"privileged port":    {Config{WebhookPort: 443}, "webhook port 443: want 1024 to 65535"},
		"no port":            {Config{WebhookPort: 70000}, "webhook port 70000"},
		"the metrics' port":  {Config{WebhookPort: 8443}, "webhook port 8443 is taken by metrics"},
		"negative replicas":  {Config{Kueue: KueueConfig{Replicas: -1}}, "Kueue replicas -1: want at least 1"},
		"negative timeout":   {Config{Kueue: KueueConfig{RecoveryTimeout: metav1.Duration{Duration: -time.Second}}}, "must not be negative"},
		"disabled is silent": {Config{Kueue: KueueConfig{Disabled: true, Replicas: -1}}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.c.Validate()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// A configuration survives being stored on the cluster.
func TestConfigRoundTrip(t *testing.T) {
	for _, c := range []Config{Config{}.WithDefaults(), everything().WithDefaults()} {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var got Config
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Defaults written out are the same configuration; any change is another.
func TestHash(t *testing.T) {
	hash := func(c Config) string {
		t.Helper()
		h, err := c.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	base := hash(Config{})
	if got := hash(Config{}.WithDefaults()); got != base {
		t.Errorf("defaults written out hash to %s, left out to %s", got, base)
	}
	seen := map[string]string{base: "defaults"}
	for name, c := range map[string]Config{
		"port": {WebhookPort: 9443}, "image": {ImageRepository: "mirror"}, "replicas": {JobSet: JobSetConfig{Replicas: 2}},
		"one part": {Kueue: KueueConfig{Disabled: true}}, "fair": {Kueue: KueueConfig{FairSharing: true}},
		"nodes": {NodeSelector: map[string]string{"a": "b"}},
	} {
		h := hash(c)
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have the same hash", name, other)
		}
		seen[h] = name
	}
}
