package output

import (
	"fmt"
	"io"
)

// Checked remembers that something could not be written, for writers that do
// not look.
type Checked struct {
	io.Writer
	err error
}

// Write writes, and remembers the first error.
func (c *Checked) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}

// Err is what went wrong, or nil.
func (c *Checked) Err() error {
	if c.err == nil {
		return nil
	}
	return fmt.Errorf("writing to standard output: %w", c.err)
}
