package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// limits are those in force, kept in a file for the next start.
type limits struct {
	mu   sync.Mutex
	file string
	all  []Limit
}

func loadLimits(file string) (*limits, error) {
	l := &limits{file: file}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &l.all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the limits of capacity: %w: remove %s to start without any", err, file)
	}
	return l, nil
}

func (l *limits) list() []Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Limit{}, l.all...)
}

// set puts a limit into force, in the place of one for the same thing.
func (l *limits) set(limit Limit, fake *fakegke.Server) (Limit, error) {
	if err := limit.Check(); err != nil {
		return limit, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next := slices.Clone(l.all)
	if i := slices.IndexFunc(next, limit.same); i >= 0 {
		limit.ID = next[i].ID
		next[i] = limit
	} else {
		last := 0
		for _, other := range next {
			n, _ := strconv.Atoi(other.ID)
			last = max(last, n)
		}
		limit.ID = strconv.Itoa(last + 1)
		next = append(next, limit)
	}
	return limit, l.enforce(next, fake)
}

// UnknownLimitError says that there is no such limit.
type UnknownLimitError struct{ ID string }

func (e *UnknownLimitError) Error() string { return fmt.Sprintf("there is no limit %s", e.ID) }

// remove ends limits by id, all of them or none; without an id it ends every
// limit. It returns those that it ended.
func (l *limits) remove(ids []string, fake *fakegke.Server) ([]Limit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if !slices.ContainsFunc(l.all, func(m Limit) bool { return m.ID == id }) {
			return nil, &UnknownLimitError{id}
		}
	}
	gone, next := []Limit{}, []Limit{}
	for _, m := range l.all {
		if len(ids) == 0 || slices.Contains(ids, m.ID) {
			gone = append(gone, m)
		} else {
			next = append(next, m)
		}
	}
	return gone, l.enforce(next, fake)
}

// enforce writes limits down and tells the fake of them. The caller holds mu.
func (l *limits) enforce(next []Limit, fake *fakegke.Server) error {
	b, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = writeFile(l.file, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the limits of capacity down: %w", err)
	}
	l.all = next
	l.tell(fake)
	return nil
}

// tell makes the fake heed the limits, and no others.
func (l *limits) tell(fake *fakegke.Server) {
	var stockouts []fakegke.Stockout
	var quotas []fakegke.Quota
	var reservations []fakegke.Reservation
	for _, m := range l.all {
		switch m.Kind {
		case Stockout:
			stockouts = append(stockouts, fakegke.Stockout{Project: m.Project, Zone: m.Zone, Pool: m.Pool, TPUs: true, Trouble: m.Trouble, Room: m.Count})
		case Quota:
			quotas = append(quotas, fakegke.Quota{Region: m.Region, Metric: m.Metric, Family: m.Machine, Limit: m.Count})
		case Reservation:
			reservations = append(reservations, fakegke.Reservation{Project: m.Project, Name: m.Name, Zone: m.Zone, Machine: m.Machine, Count: m.Count})
		}
	}
	fake.SetStockout(stockouts...)
	fake.SetQuotas(quotas...)
	fake.SetReservations(reservations...)
}
