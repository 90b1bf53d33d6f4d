// Command schemadoc writes the JSON schema of job files out of the type that
// they are read into. `make docs` runs it.
//
// usage: schemadoc [--check] FILE
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
)

func main() {
	args, check := os.Args[1:], false
	if len(args) > 0 && args[0] == "--check" {
		args, check = args[1:], true
	}
	if err := run(args, check); err != nil {
		fmt.Fprintln(os.Stderr, "schemadoc:", err)
		os.Exit(1)
	}
}

func run(args []string, check bool) error {
	if len(args) != 1 {
		return fmt.Errorf("want one file, got %d", len(args))
	}
	old, err := os.ReadFile(args[0])
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	schema, err := jobfile.Schema()
	switch {
	case err != nil:
		return err
	case bytes.Equal(old, schema):
		return nil
	case check:
		return fmt.Errorf("%s is not what the code says: run 'make docs' and commit the result", args[0])
	}
	return os.WriteFile(args[0], schema, 0o644) //nolint:gosec // documentation, for everybody
}
