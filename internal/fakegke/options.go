package fakegke

import (
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
)

// defaultTimeScale lets a node pool (2.5 minutes at Google's) take 30 ms.
const defaultTimeScale = 1.0 / 5000

// defaultOperationQuota is the limit GKE's published messages name.
const defaultOperationQuota = 5

// defaultKept is how many finished operations are remembered. How long GKE
// keeps them, it does not say.
const defaultKept = 1000

type options struct {
	token       string
	planes      ControlPlanes
	scale       float64
	stateFile   string
	writeState  func(path string, data []byte) error
	quota       int
	kept        int // finished operations
	lateReads   int
	stockouts   []Stockout
	access      access
	subnetworks []Subnetwork
	scarcity
	log hclog.Logger
}

// Option configures New.
type Option func(*options)

// WithToken makes every call need this bearer token. "" accepts any caller.
func WithToken(token string) Option { return func(o *options) { o.token = token } }

// WithControlPlanes puts real API servers behind the clusters.
func WithControlPlanes(p ControlPlanes) Option { return func(o *options) { o.planes = p } }

// WithTimeScale multiplies GKE's durations: 1 is GKE's own pace (a node pool
// takes 2.5 minutes), 0.01 makes that 1.5 s, 0 makes operations take only as
// long as the work behind them.
func WithTimeScale(scale float64) Option { return func(o *options) { o.scale = scale } }

// WithStateFile keeps clusters, pools and operations in a file (0600, replaced
// atomically), and starts with what it holds.
func WithStateFile(path string) Option { return func(o *options) { o.stateFile = path } }

// WithStateWriter replaces how the state file is written; for tests of what
// happens when that fails.
func WithStateWriter(write func(path string, data []byte) error) Option {
	return func(o *options) { o.writeState = write }
}

// WithOperationQuota sets how many operations may be in flight per cluster.
func WithOperationQuota(n int) Option { return func(o *options) { o.quota = n } }

// WithOperationsKept sets how many finished operations are remembered; without
// it a thousand. Lists hold them all.
func WithOperationsKept(n int) Option { return func(o *options) { o.kept = n } }

// WithLateReads makes the first n reads of each new node pool answer
// NOT_FOUND, as GKE does for a moment after a create.
func WithLateReads(n int) Option { return func(o *options) { o.lateReads = n } }

// WithStockout starts with capacity missing; see Server.SetStockout.
func WithStockout(s ...Stockout) Option {
	return func(o *options) { o.stockouts = append(o.stockouts, s...) }
}

// WithQuota starts with quotas; see Server.SetQuotas.
func WithQuota(q ...Quota) Option { return func(o *options) { o.quotas = append(o.quotas, q...) } }

// WithReservation starts with reservations; see Server.SetReservations.
func WithReservation(r ...Reservation) Option {
	return func(o *options) { o.reservations = append(o.reservations, r...) }
}

// WithLogger logs one line per call and per operation. Bodies and headers are
// never logged.
func WithLogger(l hclog.Logger) Option { return func(o *options) { o.log = l } }

// replaceFile writes data beside path and renames it over path. It does not
// sync: the state has to survive a crash of the process, not of the machine.
func replaceFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		_ = f.Close()
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
