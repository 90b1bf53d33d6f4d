package sandbox

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/googleapis/gax-go/v2/apierror"

	"github.com/tpu-training/terraform-provider-tpu/internal/faults"
)

// Rules that are set from outside reach the API, and outlive the process.
func TestFaultRulesOfARunningSandbox(t *testing.T) {
	dir := t.TempDir()
	s := start(t, WithDir(dir))
	added, err := AddFaults(t.Context(), dir, faults.Rule{Method: "ListClusters", Kind: faults.Status, Code: http.StatusForbidden, Message: "not today"})
	if err != nil || len(added) != 1 {
		t.Fatalf("%+v, %v", added, err)
	}
	_, err = client(t, s).ListClusters(t.Context(), &containerpb.ListClustersRequest{Parent: parent})
	var refused *apierror.APIError
	if !errors.As(err, &refused) || refused.HTTPCode() != http.StatusForbidden || !strings.Contains(err.Error(), "not today") {
		t.Errorf("the rule does not hold: %v", err)
	}
	stop(t, s)
	s = start(t, WithDir(dir))
	rules, err := FaultsOf(t.Context(), dir)
	if err != nil || len(rules) != 1 || rules[0].ID != added[0].ID {
		t.Fatalf("after a restart: %+v, %v", rules, err)
	}
	if _, err := RemoveFaults(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, s).ListClusters(t.Context(), &containerpb.ListClustersRequest{Parent: parent}); err != nil {
		t.Errorf("after the rule is gone: %v", err)
	}
}

func TestFaultRulesThatAreRefused(t *testing.T) {
	s := start(t)
	if _, err := AddFaults(t.Context(), s.Dir(), faults.Rule{Kind: "typo"}); err == nil || !strings.Contains(err.Error(), `kind "typo"`) {
		t.Errorf("a wrong rule: %v", err)
	}
	if _, err := RemoveFaults(t.Context(), s.Dir(), "7"); err == nil || !strings.Contains(err.Error(), `no fault rule "7", nor any other`) {
		t.Errorf("an unknown rule: %v", err)
	}
	resp, err := http.Get(s.Endpoint() + faultsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token: %s", resp.Status)
	}
	var stopped *NotRunningError
	if _, err := FaultsOf(t.Context(), t.TempDir()); !errors.As(err, &stopped) {
		t.Errorf("where no sandbox runs: %v", err)
	}
}
