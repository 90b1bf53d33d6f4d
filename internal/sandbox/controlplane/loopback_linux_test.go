package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// onlyLoopback checks that no process of a cluster listens to the network.
func onlyLoopback(t *testing.T, dir string) {
	t.Helper()
	listening := map[string]string{} // socket inode -> hexadecimal address
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" {
				listening[f[9]] = f[1]
			}
		}
	}
	found := 0
	for _, p := range process.List(dir) {
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.Pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			link, err := os.Readlink(fd)
			if err != nil {
				continue // closed meanwhile
			}
			addr, ok := listening[strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")]
			if !ok {
				continue
			}
			found++
			if !strings.HasPrefix(addr, "0100007F:") {
				t.Errorf("%s listens on %s", p.Name, addr)
			}
		}
	}
	if found < 3 {
		t.Errorf("found only %d listening sockets", found)
	}
}
