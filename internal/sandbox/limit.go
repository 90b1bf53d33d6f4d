package sandbox

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// LimitKind says what there is not enough of.
type LimitKind string

// The kinds of limits.
const (
	Stockout    LimitKind = "stockout"    // machines of a zone
	Quota       LimitKind = "quota"       // chips that a project may have
	Reservation LimitKind = "reservation" // machines that a project has set aside
)

// Limit is TPU capacity that has an end. Fields that a kind does not use are
// empty.
type Limit struct {
	ID      string    `json:"id,omitempty"`
	Kind    LimitKind `json:"kind"`
	Project string    `json:"project,omitempty"` // "" for every project; of a stockout and a reservation
	Zone    string    `json:"zone,omitempty"`    // of a stockout "" for every zone
	Region  string    `json:"region,omitempty"`  // of a quota; "" for every region
	Pool    string    `json:"pool,omitempty"`    // of a stockout: one node pool by its name
	// Trouble of a stockout: GCE_STOCKOUT or another one of fakegke.Troubles.
	Trouble fakegke.Trouble `json:"trouble,omitempty"`
	Metric  string          `json:"metric,omitempty"` // of a quota; "" is Compute Engine's own
	Name    string          `json:"name,omitempty"`   // of a reservation
	// Machine is the machine type of a reservation; of a quota the beginning of
	// those that count, "" for all TPUs.
	Machine string `json:"machine,omitempty"`
	// Count is how much there is, what is in use included: slices of a stockout,
	// chips of a quota, hosts of a reservation.
	Count int `json:"count"`
}

// ErrLimit is what every error of Limit.Check wraps.
var ErrLimit = errors.New("not a limit of capacity")

var (
	zonePattern   = regexp.MustCompile(`^[a-z]+-[a-z]+\d+-(ai\d)?[a-z]$`)
	regionPattern = regexp.MustCompile(`^[a-z]+-[a-z]+\d+$`)
	namePattern   = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
)

// Check refuses what would never hold anything back.
func (l Limit) Check() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrLimit, fmt.Sprintf(format, args...))
	}
	if l.Count < 0 {
		return wrong("%d is less than nothing: want 0 or more", l.Count)
	}
	if l.Zone != "" && !zonePattern.MatchString(l.Zone) {
		return wrong("%q is not a zone: want one such as us-west4-a", l.Zone)
	}
	switch l.Kind {
	case Stockout:
		if l.Trouble != "" && !slices.Contains(fakegke.Troubles, l.Trouble) {
			return wrong("trouble %q: want one of %s", l.Trouble, troubleNames())
		}
	case Quota:
		if l.Region != "" && !regionPattern.MatchString(l.Region) {
			return wrong("%q is not a region: want one such as us-west4", l.Region)
		}
		if l.Machine != "" && !slices.ContainsFunc(machineTypes(), func(m string) bool { return strings.HasPrefix(m, l.Machine) }) {
			return wrong("no TPU machine type begins with %q: want one of %s", l.Machine, strings.Join(machineTypes(), ", "))
		}
	case Reservation:
		if !namePattern.MatchString(l.Name) {
			return wrong("reservation %q: want its name alone, lowercase letters, digits and hyphens", l.Name)
		}
		if l.Zone == "" {
			return wrong("reservation %s: want the zone it is in", l.Name)
		}
		if !slices.Contains(machineTypes(), l.Machine) {
			return wrong("machine type %q: want one of %s", l.Machine, strings.Join(machineTypes(), ", "))
		}
	default:
		return wrong("kind %q: want %s, %s or %s", l.Kind, Stockout, Quota, Reservation)
	}
	return nil
}

func troubleNames() string {
	var names []string
	for _, t := range fakegke.Troubles {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

func machineTypes() []string {
	var names []string
	for _, g := range accelerator.Generations() {
		f, _ := g.Facts()
		for _, m := range f.Machines {
			names = append(names, m.Name)
		}
	}
	return names
}

// same tells whether l is about the same thing as m, which it then replaces.
func (l Limit) same(m Limit) bool {
	m.ID, m.Count, m.Trouble = l.ID, l.Count, l.Trouble
	if l.Kind == Reservation {
		m.Machine = l.Machine
	}
	return l == m
}
