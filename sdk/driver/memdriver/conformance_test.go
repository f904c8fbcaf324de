package memdriver_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.RunIn(t, synctest.Test, drivertest.Harness{
		Open:  func(t drivertest.T) driver.Driver { return lasting(t)() },
		Store: lasting,
		Hosts: func(t drivertest.T) func() (driver.Driver, error) {
			open := lasting(t)
			return func() (driver.Driver, error) { return open(), nil }
		},
		Forgetful: func(name string) (driver.BoardSpec, int) {
			return driver.BoardSpec{Name: name, Settings: []byte(`{"events":16}`)}, 16
		},
		Programs: 100,
	})
}

// lasting is a store in memory that closing does not end, to see that the
// suite's restarts ask for nothing that the reference does not do.
func lasting(t drivertest.T) func() driver.Driver {
	d, err := memdriver.Open(t.Context(), driver.Config{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return func() driver.Driver { return unclosed{d, d.(driver.Mover)} } //nolint:forcetypeassert // it is one
}

type unclosed struct {
	driver.Driver
	driver.Mover
}

func (unclosed) Close() error { return nil }

func (u unclosed) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := u.Driver.OpenBoard(ctx, spec)
	status.Durability = driver.Delayed
	return status, err
}
