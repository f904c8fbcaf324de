// Package seeded holds servers, drivers and clients that are wrong on purpose, with one
// realistic bug each. They prove that the checkers of histories find such bugs.
package seeded

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/boardd/boardd/internal/faults/workload"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest/seeded"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// Where a bug is.
const (
	Driver = "driver"
	Server = "server" // as everybody sees it
	Client = "client" // as those who work see it
)

// Bug is something that is wrong.
type Bug struct {
	Name    string
	Where   string
	Doc     string // what it does wrong
	Checker string // the one that has to find it
	Limit   int    // of open jobs, where the bug needs one

	open     func(context.Context, driver.Config) (driver.Driver, error) // nil: a right driver
	tenants  bool                                                        // it shows only where two tenants are served
	hosts    bool                                                        // it shows only where two hosts have one store
	busy     bool                                                        // it shows only where two hosts hear of many changes
	policies bool                                                        // it shows only where policies change
	moves    moveStep                                                    // it shows only where a board moves, of which drivers take steps so
	webhooks bool                                                        // it shows only where webhooks are told
	courier  func(http.Handler) http.Handler                             // stands between servers and their webhooks' receiver; nil: nothing
	hooks    map[string]hook

	receiver *workload.Receiver // of webhooks; nil: none is told
}

// All returns every bug.
func All() []Bug {
	var all []Bug
	for _, known := range []struct{ name, checker string }{
		{"drops-writes", "posts"},
		{"stale-token", "fencing"},
		{"reuses-epochs", "fencing"},
		{"extends-unchecked", "linear"},
		{"never-expires", "stuck"},
		{"forgets-answers", "repetitions"},
		{"post-not-idempotent", "linear"},
		{"ignores-digest", "repetitions"},
		{"no-tombstone", "linear"},
		{"forgets-release", "linear"},
		{"watch-loses", "watchers"},
		{"trash-loses-details", "posts"},
		{"keeps-buffers", "posts"},
		{"skips-slow", "watchers"},
		{"sequence-positions", "watchers"},
		{"buries-restored", "linear"},
		{"keys-for-good", "keys"},
		{"keys-in-trash", "keys"},
		{"one-trash", "linear"},
	} {
		bug, _ := seeded.Find(known.name)
		all = append(all, Bug{Name: bug.Name, Where: Driver, Doc: bug.Doc, Checker: known.checker, open: bug.Open, hosts: bug.Hosts})
	}
	return slices.Concat(all, driverBugs(), moveBugs(), watchBugs(), webhookBugs(), serverBugs(), fleetBugs(), clientBugs())
}

// on makes Open of what goes wrong with an op of a kind, every nth time.
func on(kind driver.OpKind, nth int64, wrong func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result) func(context.Context, driver.Config) (driver.Driver, error) {
	return func(ctx context.Context, c driver.Config) (driver.Driver, error) {
		d, err := memdriver.Open(ctx, c)
		return &wrongOp{Driver: d, kind: kind, nth: nth, wrong: wrong}, err
	}
}

type wrongOp struct {
	driver.Driver
	kind  driver.OpKind
	nth   int64
	n     atomic.Int64
	wrong func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result
}

// Apply does each op, and some of them wrongly.
func (w *wrongOp) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	return driver.Each(ctx, ops, func(ctx context.Context, op *driver.Op) driver.Result {
		if op.Kind == w.kind && w.n.Add(1)%w.nth == 0 {
			return w.wrong(ctx, w.Driver, board, *op)
		}
		return w.Driver.Apply(ctx, board, []driver.Op{*op})[0]
	})
}
