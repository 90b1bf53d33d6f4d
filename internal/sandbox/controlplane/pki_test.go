package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Keys are made once, belong to their owner, and a cut-off start leaves none.
func TestKeysAreMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if err := os.MkdirAll(dir+".new", 0o700); err != nil { // cut off
		t.Fatal(err)
	}
	one, err := loadOrMakePKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	two, err := loadOrMakePKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(one.cluster.certPEM), string(two.cluster.certPEM)); diff != "" {
		t.Errorf("another authority after a restart:\n%s", diff)
	}
	onlyOurs(t, dir)
	if err := os.WriteFile(one.cert("ca"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadOrMakePKI(dir); err == nil || !strings.Contains(err.Error(), "start afresh") {
		t.Errorf("a destroyed certificate: %v", err)
	}
}
