package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

const template = "../../../../templates/resources/training_cluster.md.tmpl"

// The documentation says of every attribute what the code does.
func TestTheDocumentationIsWhatTheCodeSays(t *testing.T) {
	if err := run([]string{template}, true); err != nil {
		t.Error(err)
	}
	for _, s := range gke.ClusterSettings() {
		if !strings.Contains(Table(), "`"+s.Name+"`") {
			t.Errorf("%s is not in the table", s.Name)
		}
	}
}

// A table that is out of date is written anew, around it nothing changes, and
// --check says so.
func TestInsert(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md.tmpl")
	if err := os.WriteFile(file, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{file}, true); err == nil || !strings.Contains(err.Error(), "make docs") {
		t.Errorf("--check: %v", err)
	}
	if err := run([]string{file}, false); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != "before\n"+begin+Table()+end+"after\n" {
		t.Errorf("%s", got)
	}
	if _, err := insert("no marks", ""); err == nil {
		t.Error("a page without marks is no error")
	}
}
