package slicepool

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

// The default timeout follows the number of slices, which are made a few at a
// time, and of hosts.
func TestDefaultTimeout(t *testing.T) {
	for _, c := range []struct {
		slices, hosts int64
		want          time.Duration
	}{
		{0, 4, 90 * time.Minute},
		{1, 4, 91 * time.Minute},
		{1, 1024, 155 * time.Minute},
		{400, 4, 590 * time.Minute},
	} {
		m := model{SliceCount: types.Int64Value(c.slices), HostsPerSlice: types.Int64Value(c.hosts)}
		if got := m.defaultTimeout(applyTimeout); got != c.want {
			t.Errorf("%d slices of %d hosts: %s, want %s", c.slices, c.hosts, got, c.want)
		}
	}
}
