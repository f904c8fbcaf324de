package seeded

import (
	"context"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// moveBugs are of drivers that are right as long as their boards stay where they are.
func moveBugs() []Bug {
	return []Bug{
		{Name: "freezes-not", Doc: "takes changes on a frozen board", Check: "moves/freeze", Open: moving(leavesOut(driver.Freeze), nil)},
		{Name: "thaws-for-anybody", Doc: "ends the freeze of another move", Check: "moves/others", Open: moving(thawsForAnybody(), nil)},
		{Name: "stays-frozen", Doc: "does not end a freeze", Check: "moves/thaw", Open: moving(leavesOut(driver.Thaw), nil)},
		{Name: "stays-readable", Doc: "tells how jobs stood on a board that has gone", Check: "moves/leave", Open: moving(leavesOut(driver.Leave), nil)},
		{Name: "comes-back", Doc: "thaws a board that was emptied", Check: "moves/empty", Open: moving(leavesOut(driver.Empty), nil)},
		{Name: "empties-early", Doc: "empties a board that was not left", Check: "moves/empty", Open: moving(func(ctx context.Context, d mover, board string, m driver.Move) error {
			err := d.MoveBoard(ctx, board, m)
			if m.Step == driver.Empty && job.KindOf(err) == job.Precondition {
				return nil
			}
			return err
		}, nil)},
		{Name: "old-generation", Doc: "goes on in the old generation in the new store", Check: "moves/admit", Open: moving(func(ctx context.Context, d mover, board string, m driver.Move) error {
			m.Generation = 0
			return d.MoveBoard(ctx, board, m)
		}, nil)},
		{Name: "receives-once", Doc: "stays where it was when it is to receive from further on", Check: "moves/again", Open: moving(receivesOnce(), nil)},
		{Name: "stands-still", Doc: "does not let imported jobs follow the other store", Check: "moves/follows", Open: moving(nil, standsStill)},
		{Name: "follows-anybody", Doc: "lets jobs follow for another move", Check: "moves/follows", Open: moving(nil, followsAnybody)},
		{Name: "follows-halfway", Doc: "brings a job up to date, and not what it went through", Check: "moves/follows-claims", Open: moving(nil, followsHalfway)},
		{Name: "keeps-documents-shut", Doc: "refuses documents while the board receives", Check: "moves/receive", Open: keepsDocumentsShut},
		{Name: "imports-late", Doc: "takes imports of a move that has ended", Check: "moves/admit", Open: moving(nil, importsLate)},
		{Name: "loses-claims", Doc: "imports jobs without their claims", Check: "moves/claims", Open: moving(nil, losesClaims)},
		{Name: "keeps-no-tokens", Doc: "gives an imported claim a token of its own", Check: "moves/claims", Open: moving(nil, keepsNoTokens)},
		{Name: "counts-no-claims", Doc: "does not count the limits of imported claims", Check: "moves/limits", Open: moving(nil, countsNoClaims)},
	}
}

// leavesOut acknowledges a step and does not take it.
func leavesOut(step driver.MoveStep) func(ctx context.Context, d mover, board string, m driver.Move) error {
	return func(ctx context.Context, d mover, board string, m driver.Move) error {
		if m.Step == step {
			return nil
		}
		return d.MoveBoard(ctx, board, m)
	}
}

// mover is a driver whose boards move.
type mover interface {
	driver.Driver
	driver.Mover
}

// astray is a driver that is wrong in a step, or in an op.
type astray struct {
	mover
	step func(ctx context.Context, d mover, board string, m driver.Move) error
	do   func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result
}

// moving makes Open of what goes wrong with a step of a move, or with an op; nil: nothing.
func moving(step func(context.Context, mover, string, driver.Move) error,
	do func(context.Context, driver.Driver, string, driver.Op) driver.Result,
) func(context.Context, driver.Config) (driver.Driver, error) {
	return func(ctx context.Context, c driver.Config) (driver.Driver, error) {
		d, err := memdriver.Open(ctx, c)
		if err != nil {
			return nil, err
		}
		return astray{d.(mover), step, do}, nil //nolint:forcetypeassert // memdriver is one
	}
}

func (a astray) MoveBoard(ctx context.Context, board string, m driver.Move) error {
	if a.step != nil {
		return a.step(ctx, a.mover, board, m)
	}
	return a.mover.MoveBoard(ctx, board, m)
}

func (a astray) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	if a.do == nil {
		return a.mover.Apply(ctx, board, ops)
	}
	return perOp{a.mover, a.do}.Apply(ctx, board, ops)
}

func thawsForAnybody() func(context.Context, mover, string, driver.Move) error {
	frozen := map[string][16]byte{}
	return func(ctx context.Context, d mover, board string, m driver.Move) error {
		if m.Step == driver.Freeze && frozen[board] == [16]byte{} {
			frozen[board] = m.ID
		}
		if m.Step == driver.Thaw {
			m.ID = frozen[board]
		}
		return d.MoveBoard(ctx, board, m)
	}
}

func importsLate(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	r := one(ctx, d, board, op)
	if op.Import != nil && r.Kind == job.Precondition {
		i := *op.Import
		i.Move, op.Import = [16]byte{}, &i
		r = one(ctx, d, board, op)
	}
	return r
}

// importing does an import of a claimed job with another claim.
func importing(ctx context.Context, d driver.Driver, board string, op driver.Op, change func(i *driver.Import, then *driver.Op)) driver.Result {
	if op.Import != nil && op.Import.Then != nil && op.Import.Then.Kind == driver.Claim {
		i := *op.Import
		then := *i.Then
		i.Then, op.Import = &then, &i
		change(&i, &then)
	}
	return one(ctx, d, board, op)
}

func losesClaims(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return importing(ctx, d, board, op, func(i *driver.Import, _ *driver.Op) { i.Then = nil })
}

func keepsNoTokens(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return importing(ctx, d, board, op, func(_ *driver.Import, then *driver.Op) { then.Token.Epoch++ })
}

func countsNoClaims(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return importing(ctx, d, board, op, func(_ *driver.Import, then *driver.Op) { then.Limits = nil })
}

func receivesOnce() func(context.Context, mover, string, driver.Move) error {
	receiving := map[string]bool{}
	return func(ctx context.Context, d mover, board string, m driver.Move) error {
		if m.Step == driver.Receive && receiving[board] {
			return nil
		}
		receiving[board] = m.Step == driver.Receive
		return d.MoveBoard(ctx, board, m)
	}
}

// follows reports whether an op has an imported job follow the other store.
func follows(op *driver.Op) bool { return op.Import != nil && op.Kind != driver.Post }

func standsStill(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if follows(&op) && op.Kind == driver.Update {
		op.Status = nil
	}
	return one(ctx, d, board, op)
}

// followsAnybody answers as if it had changed a job that another move would have follow.
func followsAnybody(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	r := one(ctx, d, board, op)
	if !follows(&op) || r.Kind != job.Precondition {
		return r
	}
	records, err := d.Read(ctx, board, []job.ID{op.Job}, 0)
	if err != nil {
		return driver.Failed(err)
	}
	return driver.Result{Position: records[0].Position, Version: records[0].Version, At: records[0].ModifiedAt}
}

func followsHalfway(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if follows(&op) && op.Import.Then != nil {
		i := *op.Import
		i.Then, op.Import = nil, &i
	}
	return one(ctx, d, board, op)
}

// shut is a driver that changes no document of a board that receives.
type shut struct {
	mover
	documents *shutDocuments
}

type shutDocuments struct {
	driver.Documents
	receiving map[string]bool
}

func keepsDocumentsShut(ctx context.Context, c driver.Config) (driver.Driver, error) {
	d, err := memdriver.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return shut{d.(mover), &shutDocuments{d.Documents(), map[string]bool{}}}, nil //nolint:forcetypeassert // memdriver is one
}

func (s shut) MoveBoard(ctx context.Context, board string, m driver.Move) error {
	s.documents.receiving[board] = m.Step == driver.Receive
	return s.mover.MoveBoard(ctx, board, m)
}

func (s shut) Documents() driver.Documents { return s.documents }

func (s *shutDocuments) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	if s.receiving[space.Board] {
		return 0, job.Errorf(job.Unavailable, "the board receives")
	}
	return s.Documents.Put(ctx, space, doc, ifVersion)
}
