package sandboxcmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/faults"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

// newFault is the command `sandbox fault` with its children.
func newFault(s *term.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fault",
		Short: "Make requests to the sandbox go wrong, to see what then happens",
		Long: `Make requests to the sandbox go wrong: refused, cut off before or after they
took effect, answered late, never, or with what was true before. Rules hold for
the GKE API, Compute Engine and Cloud Storage, and for what reaches a cluster
through the endpoint that the GKE API names (Terraform, tpuctl); the kubeconfig of
the sandbox goes past them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := newListed(s, "List the rules, and how many requests each has seen and hit", sandbox.FaultsOf, faultView)
	ended := newEnded(s, "clear [ID...]", "End rules by their id, or all of them", sandbox.RemoveFaults, func(gone []faults.Rule) string {
		hits := 0
		for _, r := range gone {
			hits += r.Hits
		}
		return fmt.Sprintf("Ended %s, which hit %s.", count(len(gone), "rule", "rules"), count(hits, "request", "requests"))
	})
	cmd.AddCommand(newFaultAdd(s), list, ended)
	return cmd
}

type faultAddOptions struct {
	streams           *term.Streams
	dir               string
	format            output.Format
	rule              faults.Rule
	kind              string
	delay, retryAfter time.Duration
}

func newFaultAdd(s *term.Streams) *cobra.Command {
	o := &faultAddOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "add KIND",
		Short: "Add a rule",
		Long: `Add a rule. KIND says what happens:

  status        the request is refused with --code; it has no effect
  status-after  it is carried out, and answered with --code all the same
  reset         the connection is reset; it has no effect
  reset-after   it is carried out, then the connection is reset
  lost          it is carried out, and not answered for --delay (default: until
                the caller gives up), then the connection closes
  slow          it is carried out, and answered after --delay
  stale         a read is answered with what it was answered before; the first
                one of each kind after the rule came is not, and is no hit

Methods are named as GKE's definition names them (CreateNodePool,
ListOperations), for Compute Engine compute.COLLECTION.ACTION, for clusters
"kube VERB RESOURCE" with the HTTP verb or WATCH. Of Cloud Storage there is
storage.buckets.testIamPermissions. * stands for any part. Of several rules that
hit a request the oldest decides.`,
		Example: `  tpuctl sandbox fault add status --method CreateNodePool --call 2 --code 503
  tpuctl sandbox fault add reset-after --method CreateNodePool --object clusters/train
  tpuctl sandbox fault add status --code 429 --retry-after 2s --probability 0.1 --seed 7
  tpuctl sandbox fault add slow --method "kube *" --delay 500ms
  tpuctl sandbox fault add stale --method ListNodePools --times 3`,
		Args:      exactlyOneKind,
		ValidArgs: kindNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kind = args[0]
			if cmd.Flags().Changed("probability") && o.rule.Probability == 0 {
				return exit.Usagef("--probability 0 would hit nothing: want more than 0, at most 1, or no --probability to hit every call that fits")
			}
			return o.run(cmd.Context())
		},
	}
	addDir(cmd, &o.dir)
	f := cmd.Flags()
	f.StringVar(&o.rule.Method, "method", "", "only calls of these methods (default: every method)")
	f.StringVar(&o.rule.Object, "object", "", "only requests with this in their path: a project, cluster, namespace, name")
	f.IntVar(&o.rule.Call, "call", 0, "only the nth call that fits, from now on (default: every one)")
	f.Float64Var(&o.rule.Probability, "probability", 0, "only this share of the calls that fit: more than 0, at most 1 (default: all)")
	f.Uint64Var(&o.rule.Seed, "seed", 0, "with --probability: the same seed hits the same calls, counted from when the rule is added")
	f.IntVar(&o.rule.Times, "times", 0, "at most so often (default: without end)")
	f.IntVar(&o.rule.Code, "code", 0, "HTTP status of status and status-after, such as 429 or 503")
	f.StringVar(&o.rule.Message, "message", "", "text of the refusal (default: what the API says)")
	f.DurationVar(&o.retryAfter, "retry-after", 0, "ask the caller to wait so long")
	f.DurationVar(&o.delay, "delay", 0, "hold the answer back so long")
	output.AddFlag(cmd, &o.format)
	return cmd
}

func kindNames() []string {
	names := make([]string, len(faults.Kinds))
	for i, k := range faults.Kinds {
		names[i] = string(k)
	}
	return names
}

func exactlyOneKind(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return exit.Usagef("want one KIND of %s", strings.Join(kindNames(), ", "))
	}
	return nil
}

func (o *faultAddOptions) run(ctx context.Context) error {
	o.rule.Kind = faults.Kind(o.kind)
	o.rule.Delay, o.rule.RetryAfter = faults.Duration(o.delay), faults.Duration(o.retryAfter)
	if err := o.rule.Check(); err != nil {
		return &exit.UsageError{Err: err}
	}
	added, err := ask(ctx, o.dir, func(ctx context.Context, dir string, rule faults.Rule) ([]faults.Rule, error) {
		return sandbox.AddFaults(ctx, dir, rule)
	}, o.rule)
	if err != nil {
		return err
	}
	return output.Print(o.streams, o.format, faultView(added))
}

func faultView(rules []faults.Rule) output.View {
	v := output.View{Data: rules}
	v.Table = output.Table{
		Columns: []output.Column{
			{Name: "id"}, {Name: "kind"}, {Name: "method"}, {Name: "object", Yield: 2}, {Name: "when"}, {Name: "answer", Yield: 1}, {Name: "seen"}, {Name: "hit"},
		},
		Empty: "No fault rules.",
	}
	for _, r := range rules {
		v.Names = append(v.Names, r.ID)
		v.Table.Rows = append(v.Table.Rows, []string{
			r.ID, string(r.Kind), orAny(r.Method), r.Object, faultWhen(r), faultAnswer(r), strconv.Itoa(r.Seen), strconv.Itoa(r.Hits),
		})
	}
	return v
}

func orAny(s string) string {
	if s == "" {
		return "*"
	}
	return s
}

// faultWhen says which of the calls that fit are hit.
func faultWhen(r faults.Rule) string {
	when := "always"
	switch {
	case r.Call > 0:
		when = "call " + strconv.Itoa(r.Call)
	case r.Probability > 0:
		when = strconv.FormatFloat(100*r.Probability, 'g', 3, 64) + " %, seed " + strconv.FormatUint(r.Seed, 10)
	}
	if r.Times > 0 {
		when += ", " + strconv.Itoa(r.Times) + " x at most"
	}
	return when
}

// faultAnswer says what the caller gets.
func faultAnswer(r faults.Rule) string {
	var parts []string
	if r.Code != 0 {
		parts = append(parts, strconv.Itoa(r.Code))
	}
	if r.RetryAfter > 0 {
		parts = append(parts, "retry after "+r.RetryAfter.String())
	}
	if r.Delay > 0 {
		parts = append(parts, "delay "+r.Delay.String())
	}
	return strings.Join(parts, ", ")
}
