package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Ctrl-C is heard before the libraries take their time.
func TestInterruptsAreHeardFirst(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	first, slow := strings.Index(string(out), "/cmd/tpuctl/interrupt @"), strings.Index(string(out), "\ninit k8s.io/client-go/kubernetes/scheme @")
	if first < 0 || slow < 0 || first > slow {
		t.Errorf("interrupts are heard at byte %d of this, Kubernetes' kinds are made at %d:\n%s", first, slow, out)
	}
}
