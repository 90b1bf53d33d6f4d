package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/version"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

var (
	span   = regexp.MustCompile("`([^`]+)`")
	typeAt = regexp.MustCompile(`^(?:data\.)?(tpu_[a-z_]+)(?:\.|$)`)
	// ofSandbox is how the sandbox's guide writes its commands in tables.
	ofSandbox = regexp.MustCompile(`^(capacity|disrupt|exit|fault|print) [a-zA-Z]`)
	dotted    = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$`)
)

// names is what guides may name: the provider's types with their attributes,
// the keys of job files, and tpuctl's commands with their flags.
type names struct {
	types map[string][]tftypes.Type // by name: a resource, a data source, an action
	job   map[string]any            // the schema of job files
}

func allNames(t *testing.T) names {
	t.Helper()
	all, err := provider.Server(provider.New("test")()).GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	n := names{types: map[string][]tftypes.Type{}}
	for _, schemas := range []map[string]*tfprotov6.Schema{all.ResourceSchemas, all.DataSourceSchemas, all.EphemeralResourceSchemas} {
		for name, s := range schemas {
			n.types[name] = append(n.types[name], s.ValueType())
		}
	}
	for name, s := range all.ActionSchemas {
		n.types[name] = append(n.types[name], s.Schema.ValueType())
	}
	text, err := jobfile.Schema()
	if err == nil {
		err = json.Unmarshal(text, &n.job)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// attribute tells whether a type has an attribute, by its path through objects,
// and the elements of maps and lists.
func attribute(typ tftypes.Type, path []string) bool {
	for {
		switch of := typ.(type) {
		case tftypes.Map:
			typ = of.ElementType
			continue
		case tftypes.List:
			typ = of.ElementType
			continue
		case tftypes.Set:
			typ = of.ElementType
			continue
		case tftypes.Object:
			if len(path) == 0 {
				return true
			}
			inner, ok := of.AttributeTypes[path[0]]
			return ok && attribute(inner, path[1:])
		}
		return len(path) == 0
	}
}

// key tells whether a job file has a key.
func key(schema map[string]any, path []string) bool {
	for _, below := range []string{"additionalProperties", "items"} {
		if inner, ok := schema[below].(map[string]any); ok {
			return key(inner, path)
		}
	}
	if len(path) == 0 {
		return true
	}
	properties, _ := schema["properties"].(map[string]any)
	inner, ok := properties[path[0]].(map[string]any)
	return ok && key(inner, path[1:])
}

// has tells whether a path is an attribute of one of the types, or a key of job
// files where that is what is spoken of.
func (n names) has(types []string, job bool, path string) bool {
	parts := strings.Split(path, ".")
	for _, name := range types {
		if slices.ContainsFunc(n.types[name], func(t tftypes.Type) bool { return attribute(t, parts) }) {
			return true
		}
	}
	return job && key(n.job, parts)
}

// paths are those that an attribute with its value sets, as HCL has it.
func paths(text string) ([]string, error) {
	file, diags := hclsyntax.ParseConfig([]byte(text), "guide", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	var all []string
	var walk func(at string, e hclsyntax.Expression)
	walk = func(at string, e hclsyntax.Expression) {
		all = append(all, at)
		if object, ok := e.(*hclsyntax.ObjectConsExpr); ok {
			for _, item := range object.Items {
				walk(at+"."+hcl.ExprAsKeyword(item.KeyExpr), item.ValueExpr)
			}
		}
	}
	for name, a := range file.Body.(*hclsyntax.Body).Attributes {
		walk(name, a.Expr)
	}
	return all, nil
}

// words splits a command line as a shell does.
func words(line string) (all []string) {
	var b strings.Builder
	quote, word := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, word = r, true
		case quote == 0 && r == ' ':
			if word {
				all = append(all, b.String())
			}
			b.Reset()
			word = false
		default:
			b.WriteRune(r)
			word = true
		}
	}
	if word {
		all = append(all, b.String())
	}
	return all
}

// command finds the command of a line and reads its flags. A whole line has
// their values and its arguments, too.
func command(line string, whole bool) error {
	root := cli.New(&term.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, version.Build{})
	root.InitDefaultCompletionCmd("tpuctl")
	cmd, rest, err := root.Find(words(line)[1:])
	if err != nil {
		return err
	}
	if cmd == root || cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("there is no such command")
	}
	switch err := cmd.ParseFlags(rest); {
	case err != nil && (whole || !errors.As(err, new(*pflag.ValueRequiredError))):
		return err
	case whole:
		return cmd.ValidateArgs(cmd.Flags().Args())
	}
	return nil
}

// anywhere tells whether some command has the flags.
func anywhere(flags string) bool {
	root := cli.New(&term.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, version.Build{})
	var look func(*cobra.Command) bool
	look = func(c *cobra.Command) bool {
		return c.Runnable() && command(c.CommandPath()+" "+flags, false) == nil || slices.ContainsFunc(c.Commands(), look)
	}
	return look(root)
}

// pages are the guides, the example jobs and the README.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../templates/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = string(text)
	}
	return all
}

// Every command line that a guide or the README shows is one that tpuctl takes.
func TestGuidesShowCommandsThatThereAre(t *testing.T) {
	seen := 0
	for page, text := range pages(t) {
		code := false
		for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
				continue
			}
			var lines []string
			if code {
				line, _, _ = strings.Cut(line, " #")
				line, _, _ = strings.Cut(line, " > ")
				for _, one := range strings.Split(line, " && ") {
					if _, own, ok := strings.Cut(one, "bin/tpuctl "); ok && !strings.Contains(one, "$(") {
						one = "tpuctl " + own
					}
					lines = append(lines, strings.TrimSpace(one))
				}
			} else {
				for _, m := range span.FindAllStringSubmatch(line, -1) {
					if page == "sandbox.md" && ofSandbox.MatchString(m[1]) {
						m[1] = "tpuctl sandbox " + m[1]
					}
					lines = append(lines, m[1])
				}
			}
			for _, one := range lines {
				if !strings.HasPrefix(one, "tpuctl ") || strings.HasPrefix(one, "tpuctl COMMAND") || strings.Contains(one, "──") { // a drawing
					continue
				}
				seen++
				if err := command(one, code); err != nil {
					t.Errorf("%s: %s: %v", page, one, err)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d command lines were looked at", seen)
	}
}

// Every type of the provider that a guide or the README names is there.
func TestGuidesNameTypesThatThereAre(t *testing.T) {
	n := allNames(t)
	for page, text := range pages(t) {
		for _, m := range span.FindAllStringSubmatch(text, -1) {
			if at := typeAt.FindStringSubmatch(m[1]); at != nil && n.types[at[1]] == nil {
				t.Errorf("%s: there is no %s", page, at[1])
			}
		}
	}
}

// other is what the guide from xpk may name that is neither the provider's nor
// tpuctl's.
var other = []string{"terraform plan", "terraform destroy", "terraform apply -auto-approve", "terraform destroy -auto-approve", "GOOGLE_PROJECT", "GOOGLE_ZONE"}

// Whatever the guide for xpk's users names as ours is there: each attribute in a
// type, or in job files, of which the row or the head of its table speaks, each
// flag in such a command.
func TestTheGuideFromXpkNamesWhatThereIs(t *testing.T) {
	n := allNames(t)
	var states []string
	for _, s := range training.States {
		states = append(states, string(s))
	}
	head, seen := "", 0
	for line := range strings.SplitSeq(pages(t)["from-xpk.md"], "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 2 {
			head = ""
			continue
		}
		if head == "" {
			head = cells[1]
			continue
		}
		var types, commands []string
		job := strings.Contains(head+cells[1], "job file")
		for _, m := range span.FindAllStringSubmatch(cells[1]+" "+head, -1) {
			if at := typeAt.FindStringSubmatch(m[1]); at != nil {
				types = append(types, at[1])
			}
			if strings.HasPrefix(m[1], "tpuctl ") {
				commands = append(commands, m[1])
			}
		}
		for _, m := range span.FindAllStringSubmatch(cells[1], -1) {
			one := m[1]
			seen++
			var err error
			switch {
			case slices.Contains(other, one) || typeAt.MatchString(one) || strings.HasPrefix(one, "tpuctl ") || strings.HasPrefix(one, "-- "): // see above
			case strings.HasPrefix(one, "-"):
				fits := slices.ContainsFunc(commands, func(c string) bool { return command(strings.Join(words(c), " ")+" "+one, false) == nil })
				if !fits && (len(commands) > 0 || !anywhere(one)) {
					err = fmt.Errorf("no flag of %q", commands)
				}
			case strings.HasPrefix(one, "jsonencode("):
				_, diags := hclsyntax.ParseExpression([]byte(one), "guide", hcl.InitialPos)
				if diags.HasErrors() {
					err = diags
				}
			case dotted.MatchString(one):
				if !n.has(types, job, one) {
					err = fmt.Errorf("nothing that %v has, or a job file: %t", types, job)
				}
			case strings.Contains(one, " = "):
				var all []string
				if all, err = paths(one); err == nil {
					for _, path := range all {
						if !n.has(types, job, path) {
							err = fmt.Errorf("%s is nothing that %v has, or a job file: %t", path, types, job)
						}
					}
				}
			default:
				for state := range strings.SplitSeq(one, ",") {
					if !slices.Contains(states, state) {
						err = fmt.Errorf("it is not known what this is")
					}
				}
			}
			if err != nil {
				t.Errorf("%s\n%s: %v", line, one, err)
			}
		}
	}
	if seen < 150 {
		t.Errorf("only %d names were looked at", seen)
	}
}
