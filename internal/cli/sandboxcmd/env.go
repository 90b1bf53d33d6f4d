package sandboxcmd

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

type envOptions struct {
	streams *term.Streams
	dir     string
	format  output.Format
}

func newEnv(s *term.Streams) *cobra.Command {
	o := &envOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print what points a shell at the sandbox",
		Long: `Print the environment variables that point Terraform, tpuctl and kubectl at the
sandbox, for eval. KUBECONFIG names the sandbox's own file, once a cluster
exists; your own is never touched. The output holds the sandbox's token, which
opens nothing but this sandbox.`,
		Example: `  eval "$(tpuctl sandbox env)"
  tpuctl sandbox env -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	addDir(cmd, &o.dir)
	output.AddFlag(cmd, &o.format)
	return cmd
}

func (o *envOptions) run() error {
	dir, err := folder(o.dir)
	if err != nil {
		return err
	}
	env, err := sandbox.EnvironmentOf(dir)
	if err != nil {
		return hint(err, o.dir)
	}
	header := ""
	if o.streams.Width > 0 { // read by a person, not by eval
		header = "# To point this shell at the sandbox:  eval \"$(" + command("env", o.dir) + ")\"\n"
	}
	return output.Print(o.streams, o.format, envView(env, header))
}

func envView(env sandbox.Environment, header string) output.View {
	return output.View{
		Data:  env.Map(),
		Names: env.List(),
		Page: func(w io.Writer, _ bool) error {
			var b strings.Builder
			b.WriteString(header)
			for _, v := range env {
				b.WriteString("export " + v.Name + "=" + quote(v.Value) + "\n")
			}
			_, err := io.WriteString(w, b.String())
			return err
		},
	}
}

// quote makes s one word of a POSIX shell.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
