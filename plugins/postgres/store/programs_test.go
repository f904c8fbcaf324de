package store

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
)

// TestKilledPrograms runs random programs by four drivers while PostgreSQL is killed with all
// of its processes, or one of them, after which it ends the others and recovers by itself.
// BOARDD_TEST_PROGRAMS says how many, and BOARDD_TEST_SEED which one comes first.
func TestKilledPrograms(t *testing.T) {
	t.Parallel()
	h := drivertest.Harness{
		Open: func(dt drivertest.T) driver.Driver {
			d, err := opened(dt, testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true}))
			return must(dt, d, err)
		},
		Killable: func(dt drivertest.T) (func() (driver.Driver, error), func()) {
			p := testserver.StartPostgres(t, testserver.PostgresOptions{})
			kills := 0
			return func() (driver.Driver, error) { return opened(dt, p) }, func() {
				if kills++; kills%3 == 0 {
					p.Crash(rand.IntN)
					return
				}
				p.Kill()
				p.Restart()
			}
		},
		Programs: int(numberOf(t, "BOARDD_TEST_PROGRAMS")), //nolint:gosec // a test's own
		Seed:     numberOf(t, "BOARDD_TEST_SEED"),
		Only:     []string{"random/killed"},
	}
	drivertest.Run(t, h)
}

// numberOf reads a number of the environment; 0: it has none.
func numberOf(t *testing.T, name string) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s is %q: want a number", name, text)
	}
	return n
}
