// Package seeded holds drivers that are wrong on purpose: memdriver with one
// realistic bug each. They prove that the conformance suite finds such bugs.
package seeded

import (
	"context"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// Bug is a wrong driver.
type Bug struct {
	Name  string
	Doc   string // what it does wrong
	Check string // the check of drivertest that has to find it
	Open  func(ctx context.Context, c driver.Config) (driver.Driver, error)

	// Hosts is set where the bug shows only if several drivers have one store open:
	// each call of Open opens one more on the same.
	Hosts bool

	// Lasting is set where the bug shows only after a restart: its drivers share
	// one store, which outlives them.
	Lasting bool
}

// Program returns the wrong driver as a plugin's main serves it.
func (b Bug) Program() driver.Program {
	p := memdriver.Program()
	p.Info.Name, p.Info.Summary = "seeded-"+b.Name, "Is wrong on purpose: "+b.Doc
	p.Open = b.Open
	return p
}

// All returns every wrong driver.
func All() []Bug {
	return slices.Concat(tokenBugs(), claimBugs(), jobBugs(), moveBugs(), streamBugs(), hostBugs())
}

// Find returns the bug with a name.
func Find(name string) (Bug, bool) {
	for _, b := range All() {
		if b.Name == name {
			return b, true
		}
	}
	return Bug{}, false
}

// wrap makes Open of what goes wrong with a driver.
func wrap(wrong func(d driver.Driver) driver.Driver) func(context.Context, driver.Config) (driver.Driver, error) {
	return memdriver.Program().Wrapped(wrong).Open
}

// A perOp is a driver that is wrong in how it does one op.
type perOp struct {
	driver.Driver
	do func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result
}

func (p perOp) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	return driver.Each(ctx, ops, func(ctx context.Context, op *driver.Op) driver.Result {
		return p.do(ctx, p.Driver, board, *op)
	})
}

// eachOp makes Open of what goes wrong with one op.
func eachOp(do func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result) func(context.Context, driver.Config) (driver.Driver, error) {
	return wrap(func(d driver.Driver) driver.Driver { return perOp{d, do} })
}

// one does one op rightly.
func one(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return d.Apply(ctx, board, []driver.Op{op})[0]
}

// read returns a job as it stands.
func read(ctx context.Context, d driver.Driver, board string, id job.ID) driver.Record {
	records, err := d.Read(ctx, board, []job.ID{id}, 0)
	if err != nil || len(records) != 1 {
		return driver.Record{}
	}
	return records[0]
}
