package chaos

import (
	"flag"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/faults"
)

var (
	full  = flag.Bool("chaos.full", false, "every cell of every matrix instead of a sample")
	only  = flag.String("chaos.scenario", "", "only the scenario of this name")
	every = flag.Int("chaos.every", 0, "one in so many cells instead of the usual sample")
)

func TestMain(m *testing.M) { acctest.Main(m) }

// workers is how many cells run at a time: a command line and its provider
// keep about one core busy.
const workers = 3

// kills are the cells of a kill matrix over n calls. GKE's operations stay under
// way in every other one, so that each stage and each end meets both.
func kills(n int) []cell {
	var cells []cell
	for i := 1; i <= n; i++ {
		for a, at := range []faults.Stage{faults.Before, faults.After, faults.Replied} {
			for b, by := range []end{killProvider, killAll} {
				cells = append(cells, cell{n: i, at: at, by: by, held: (i+a+b)%2 == 0})
			}
		}
		cells = append(cells, cell{n: i, at: faults.After, by: killCLI, held: i%2 == 0})
	}
	return cells
}

// Whenever the provider, or the command line with it, is killed: the next apply
// passes, and then there is what the configuration says, once, and Terraform
// knows of all of it.
func TestKilledAtEveryCall(t *testing.T) {
	matrix(t, "kill -9", kills, 1)
}

// interrupts are the cells of an interrupt matrix over n calls, always in the
// middle of operations that take longer than anybody waits.
func interrupts(n int) []cell {
	var cells []cell
	for i := 1; i <= n; i++ {
		for _, at := range []faults.Stage{faults.Before, faults.After} {
			cells = append(cells, cell{n: i, at: at, by: interrupt, held: true})
		}
	}
	return cells
}

// Ctrl-C at any call: the command returns within two seconds, and the next
// apply goes on from there.
func TestInterruptedAtEveryCall(t *testing.T) {
	matrix(t, "interrupt", interrupts, 1)
}
