// Package output prints what a command found in the format the user chose. It
// knows formats, never what is in them.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"sigs.k8s.io/yaml"
)

// Format is a value of --output.
type Format string

// The formats.
const (
	TableFormat Format = "table"
	Wide        Format = "wide"
	JSON        Format = "json"
	YAML        Format = "yaml"
	Name        Format = "name"
	HCL         Format = "hcl" // of the commands that add it
)

var formats = []Format{TableFormat, Wide, JSON, YAML, Name}

// flag is a Format as a flag's value.
type flag struct {
	*Format
	formats []Format
}

// String is the value.
func (f flag) String() string {
	if f.Format == nil { // as pflag asks for the default of the type
		return ""
	}
	return string(*f.Format)
}

// Set accepts the formats in any case.
func (f flag) Set(s string) error {
	if v := Format(strings.ToLower(s)); slices.Contains(f.formats, v) {
		*f.Format = v
		return nil
	}
	return fmt.Errorf("want one of %s", names(f.formats))
}

// Type names the value in help texts.
func (f flag) Type() string { return names(f.formats) }

func names(formats []Format) string {
	s := make([]string, len(formats))
	for i, f := range formats {
		s[i] = string(f)
	}
	return strings.Join(s, "|")
}

// Structured tells whether the format is for programs.
func (f Format) Structured() bool { return f == JSON || f == YAML }

// AddFlag adds -o/--output to cmd, table by default. more are formats that the
// command has beside the usual ones.
func AddFlag(cmd *cobra.Command, f *Format, more ...Format) {
	*f = TableFormat
	all := append(slices.Clone(formats), more...)
	cmd.Flags().VarP(flag{f, all}, "output", "o", "output format")
	_ = cmd.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return strings.Split(names(all), "|"), cobra.ShellCompDirectiveNoFileComp
	})
}

// View is something that can be printed.
type View struct {
	Data  any      // for json and yaml, by its json tags
	Names []string // for name, one a line
	Table Table    // for table and wide
	// Page replaces the table for a person, when set.
	Page func(w io.Writer, wide bool) error
}

// Print writes v to the streams' output in format f. Errors are those of
// writing or encoding.
func Print(s *term.Streams, f Format, v View) error {
	var b bytes.Buffer
	var err error
	switch {
	case f == JSON:
		err = encodeJSON(&b, v.Data)
	case f == YAML:
		var y []byte
		if y, err = yaml.Marshal(v.Data); err == nil {
			b.Write(y)
		}
	case f == Name:
		for _, n := range v.Names {
			fmt.Fprintln(&b, n)
		}
	case v.Page != nil:
		err = v.Page(&b, f == Wide)
	default:
		err = v.Table.write(&b, s, f == Wide)
	}
	if err != nil {
		return fmt.Errorf("printing as %s: %w", f, err)
	}
	if _, err := s.Out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the result to standard output: %w", err)
	}
	return nil
}

func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
