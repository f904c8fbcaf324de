package embedded

import (
	"context"
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
)

// rememberedChanges is how many changes a board of the conformance suite
// remembers: few enough that a check can run over the end.
const rememberedChanges = 3000

func TestConformance(t *testing.T) {
	t.Parallel()
	openAt := func(t drivertest.T, path string) driver.Driver {
		s, err := open(context.Background(), path, options{limits: storageLimits{changes: rememberedChanges, journalBytes: 64 << 10}})
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return s
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(t drivertest.T) driver.Driver { return openAt(t, t.TempDir()) },
		Store: func(t drivertest.T) func() driver.Driver {
			path := t.TempDir()
			return func() driver.Driver { return openAt(t, path) }
		},
		OneHost: Program().Info.OneHost,
		Hosts: func(t drivertest.T) func() (driver.Driver, error) {
			path := t.TempDir()
			return func() (driver.Driver, error) {
				s, err := open(context.Background(), path, options{})
				if err != nil {
					return nil, err
				}
				return s, nil
			}
		},
		Forgetful: func(name string) (driver.BoardSpec, int) {
			return driver.BoardSpec{Name: name}, rememberedChanges
		},
	})
}
