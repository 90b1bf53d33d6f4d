package jobfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/similar"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// variable begins an alias that stands for an environment variable.
const variable = "env:"

// CheckAlias says what is wrong with a short name for a setting, or with what it
// stands for, or "".
func CheckAlias(name, alias string) string {
	target := strings.TrimPrefix(alias, variable)
	if strings.Trim(name, "-") == "" || target == "" || strings.ContainsAny(alias, "= \t\n") {
		return fmt.Sprintf("%q stands for %q; want an argument such as --train.lr or train.lr, or a variable such as env:LR", name, alias)
	}
	return ""
}

// settings puts the settings of the program where their aliases say: --a.b is
// an argument --a.b=VALUE, a.b an argument a.b=VALUE, env:A the variable A. A
// setting without an alias is an argument --NAME=VALUE. They come last and in
// the order of their names, over what the command says.
func (j Job) settings(s *training.Spec, bad func(string, string, ...any)) {
	for _, name := range slices.Sorted(maps.Keys(j.Settings)) {
		value := j.Settings[name]
		alias, known := j.Aliases[name]
		if !known {
			alias = "--" + strings.TrimLeft(name, "-")
			if near := similar.Among(name, slices.Sorted(maps.Keys(j.Aliases))); len(near) > 0 && !strings.HasPrefix(name, "-") {
				bad("set", "%s is no alias; did you mean %s? For an argument of that name write --set --%s=%s", name, strings.Join(near, " or "), name, value)
				continue
			}
		}
		target, isVariable := strings.CutPrefix(alias, variable)
		problem := CheckAlias(name, alias)
		switch {
		case problem != "":
			bad("set", "%s", problem)
		case isVariable:
			if s.Env == nil {
				s.Env = map[string]string{}
			}
			s.Env[target] = value
		case s.Shell != "":
			bad("set", "%s: a script takes no arguments: give it an alias to a variable (env:NAME), which the script reads, or a command instead of the script", name)
		default:
			s.Args = append(slices.Clip(s.Args), alias+"="+value)
		}
	}
}
