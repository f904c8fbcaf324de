package board

import (
	"context"
	"slices"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// What an ending does depends on the job as it stands: to abandon its last attempt
// sets it aside, and to abandon one that is to be canceled ends it. So a call that
// comes again, when the job has changed since, may plan another op than the one that
// it made the first time, and the store recognises only the very same op by its
// token. An op that the store refuses is therefore followed by the others that the
// same call may have been: by a token whose claim has ended none of them can do
// anything but be recognised.

// endingOp is one of the ops that a call may have made.
type endingOp struct {
	kind    driver.OpKind
	outcome job.Outcome // NoOutcome: without Op.Ending
}

func endingOf(op *driver.Op) endingOp {
	switch {
	case op.Ending != nil:
		return endingOp{op.Kind, op.Ending.Outcome}
	case op.Kind == driver.Remove:
		return endingOp{op.Kind, job.Consumed}
	}
	return endingOp{kind: op.Kind}
}

// gaveUp is the outcome by which the store tells a last attempt that was given up from a job
// that was trashed; NoOutcome: it does not, and the job's record does as far as it goes back.
func (b *Board) gaveUp() job.Outcome {
	if opened := b.readiness.opened.Load(); opened != nil && opened.Capabilities.Endings {
		return job.Failed
	}
	return job.NoOutcome
}

// abandonments are the endings that an abandon by a token may have been.
func (b *Board) abandonments(p *proof, s *currentJob) []endingOp {
	list := []endingOp{{kind: driver.Release}, {driver.Remove, job.Canceled}}
	gaveUp := b.gaveUp()
	if gaveUp == job.NoOutcome && s != nil && s.status.HasEnded(record.Ended{By: p.token, Trashed: true}) {
		return list
	}
	return append(list, endingOp{driver.Trash, gaveUp})
}

// consumptions are the endings that a consumption may have been.
func consumptions() []endingOp {
	return []endingOp{{driver.Remove, job.Consumed}, {driver.Remove, job.Canceled}, {driver.Remove, job.Failed}}
}

// heldBy reports whether the claim that op would end stands, as far as is known.
func (s *currentJob) heldBy(op *driver.Op) bool {
	claim := s.entry.Claim
	return s.state == job.Claimed && claim != nil && (!op.Precondition.ByToken() || claim.Token == op.Token)
}

// recognise asks whether refused ops are repetitions of endings that were planned in
// another way the first time, and replaces those that are, with their results. which
// says for an op what its call may have been.
func (b *Board) recognise(ctx context.Context, opened *driver.BoardStatus, ops []driver.Op, results []driver.Result, which func(n int) []endingOp) {
	for k := 0; ; k++ { // a batch names no job twice
		var again []driver.Op
		var of []int
		for n := range ops {
			op, kind := &ops[n], results[n].Kind
			if op.Precondition != driver.HeldByToken || kind != job.LeaseLost && kind != job.NotFound {
				continue
			}
			planned := endingOf(op)
			others := slices.DeleteFunc(which(n), func(e endingOp) bool { return e == planned })
			if k < len(others) {
				again, of = append(again, others[k].by(op)), append(of, n)
			}
		}
		if len(again) == 0 {
			return
		}
		for i, r := range b.send(ctx, opened, again) {
			if r.Kind == job.NoKind {
				ops[of[i]], results[of[i]] = again[i], r
			}
		}
	}
}

// recall answers refused ops that gave claims up in another store, from which the board has
// moved since: what that store knew by tokens stayed there, and is in the jobs' own records.
func recall(ops []driver.Op, results []driver.Result, how func(n int) How) {
	for n := range ops {
		op, r := &ops[n], &results[n]
		if op.Precondition != driver.HeldByToken || r.Kind != job.LeaseLost && r.Kind != job.NotFound || r.Record == nil || how(n) == ToConsume {
			continue
		}
		s, err := record.ReadStatus(r.Record.Status)
		if err == nil && s.HasEnded(record.Ended{By: op.Token, Trashed: how(n) == ToTrash}) {
			*r = driver.Result{Repeated: true, Version: r.Record.Version, Position: r.Record.Position, Record: r.Record}
		}
	}
}

// by makes an op of the ending that is recognised by the token of another one.
func (e endingOp) by(op *driver.Op) driver.Op {
	other := driver.Op{Kind: e.kind, Job: op.Job, Request: op.Request, Precondition: op.Precondition, Token: op.Token}
	if e.outcome != job.NoOutcome {
		other.Ending = &driver.Ending{Outcome: e.outcome}
	}
	return other
}
