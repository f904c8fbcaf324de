package driver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestCheckFollowing goes through the ops that have an imported job follow another store.
func TestCheckFollowing(t *testing.T) {
	t.Parallel()
	id, move := job.ID{1}, [16]byte{2}
	following := func(kind driver.OpKind) driver.Op {
		return driver.Op{Kind: kind, Job: id, Import: &driver.Import{Move: move}}
	}
	with := func(kind driver.OpKind, change func(op *driver.Op)) driver.Op {
		op := following(kind)
		change(&op)
		return op
	}
	ended := func(op *driver.Op) {
		op.Import.EndedAt = time.Unix(1, 0)
		op.Import.Then = &driver.Op{Kind: driver.Remove, Job: id}
	}
	moves := driver.CapabilityAll()
	moves.Moves = true
	for name, tc := range map[string]struct {
		op   driver.Op
		caps driver.Capabilities
		want string // "": none
	}{
		"an update":                 {following(driver.Update), moves, ""},
		"a trash":                   {following(driver.Trash), moves, ""},
		"a restore":                 {following(driver.Restore), moves, ""},
		"a purge":                   {following(driver.Purge), moves, ""},
		"an update that ends a job": {with(driver.Update, ended), moves, ""},
		"a release":                 {following(driver.Release), moves, "has an import: want"},
		"no moves":                  {following(driver.Update), driver.CapabilityAll(), "boards do not move here"},
		"no move":                   {with(driver.Update, func(op *driver.Op) { op.Import.Move = [16]byte{} }), moves, "want a move alone"},
		"a post's time":             {with(driver.Update, func(op *driver.Op) { op.Import.CreatedAt = time.Unix(1, 0) }), moves, "want a move alone"},
		"a precondition":            {with(driver.Update, func(op *driver.Op) { op.Precondition = driver.Free }), moves, "want no precondition"},
		"a version":                 {with(driver.Update, func(op *driver.Op) { op.Version = 1 }), moves, "want no precondition"},
		"a trash that ends a job":   {with(driver.Trash, ended), moves, "says what the job went through"},
		"another job's end": {with(driver.Update, func(op *driver.Op) {
			ended(op)
			op.Import.Then.Job = job.ID{9}
		}), moves, "want the same job"},
		"no time of the end": {with(driver.Update, func(op *driver.Op) {
			ended(op)
			op.Import.EndedAt = time.Time{}
		}), moves, "does not say when the job ended"},
	} {
		err := tc.op.Check(tc.caps)
		if tc.want == "" && err != nil || tc.want != "" && (job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}
