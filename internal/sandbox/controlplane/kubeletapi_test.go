package controlplane

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestSkipToTail(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"a\nb\nc\n", -1, "a\nb\nc\n"}, {"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc\n", 3, "a\nb\nc\n"},
		{"a\nb\nc\n", 9, "a\nb\nc\n"}, {"a\nb\nc\n", 0, ""}, {"a\nb", 1, "b"}, {"", 3, ""}, {"one\n", 1, "one\n"},
	} {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := skipToTail(f, c.n); err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(f); string(b) != c.want {
			t.Errorf("last %d lines of %q: %q, want %q", c.n, c.text, b, c.want)
		}
		f.Close()
	}
}
