package store

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// An attempt is one op on one job, tried until it is decided.
type attempt struct {
	board *board
	id    job.ID
	begin func() bool
	view  *view // what to begin with; nil: what is known
	fresh bool  // view was read after the op began
	doubt bool  // a change was tried, and nobody knows whether it was made

	mark   [16]byte // of the record that this attempt writes
	known  bool     // that the op was done before is seen even after others' changes
	search search   // when the posting is looked for
}

func newAttempt(b *board, id job.ID, begin func() bool) *attempt {
	a := &attempt{board: b, id: id, begin: begin}
	_, _ = rand.Read(a.mark[:]) // never fails
	return a
}

type (
	decision = func(v *view, at instant) (*change, *driver.Result, error)
	reply    = func(v *view, w written) driver.Result
)

// run decides by what is known of the job, and by what ZooKeeper says where that
// is not enough: a refusal is only given after the job was read. A transaction
// that was built on old news is refused by ZooKeeper and decided anew. So is one
// whose answer was lost: each checks the version of the job's record, so that of
// two tries only one can be made, and the record says by which.
func (a *attempt) run(ctx context.Context, decide decision, reply reply) driver.Result {
	b := a.board
	if a.view == nil {
		a.view = b.known(a.id)
	}
	for range maxTries {
		if a.view == nil || a.view.slim {
			if err := a.read(ctx); err != nil {
				return a.failed(err)
			}
			if a.view.slim {
				continue // others were faster: it is read again
			}
		}
		v := a.view
		if a.wrote(v) {
			return reply(v, written{zxid: v.rec.position, at: v.rec.changedAt, offset: b.now().offset})
		}
		ch, r, err := decide(v, b.now())
		switch {
		case err == nil && r != nil:
			return *r
		case err == nil && ch == nil:
			a.view = nil
			continue
		case err == nil:
			if !a.begin() {
				return driver.Result{Kind: job.Interrupted, Message: "the op was not begun in time"}
			}
			var next *view
			var w written
			ch.rec.mark = a.mark
			if next, w, err = b.commit(ctx, v, ch); err == nil {
				return reply(next, w)
			}
		}
		if err := a.reconsider(ctx, v, err); err != nil {
			return a.failed(err)
		}
	}
	return a.failed(job.Errorf(job.Unavailable, "others change job %v all the time", a.id))
}

// reconsider looks at what became of a change that failed with failure. It returns nil
// if the change may be tried again, should it not have been made.
func (a *attempt) reconsider(ctx context.Context, v *view, failure error) error {
	b := a.board
	_, taken := errors.AsType[*takenError](failure)
	_, grouped := errors.AsType[*groupError](failure)
	switch {
	case (taken || grouped) && !a.fresh: // the op may have been done before
		a.view = nil
	case session.Conflict(failure):
		if err := b.checkRoot(ctx); err != nil {
			return err
		}
		if err := b.ready(ctx); err != nil { // of a new generation it is read anew first
			return err
		}
		a.view, a.fresh = nil, false
	case job.KindOf(failure) == job.OutcomeUnknown && ctx.Err() == nil:
		a.doubt = true
		a.look(ctx)
		if !a.known && !a.wrote(a.view) && (a.view == nil || a.view.recZxid != v.recZxid) {
			return failure // it was changed since, and by whom it was before nobody can say
		}
	default:
		return failure
	}
	return nil
}

// read reads the job as it stands.
func (a *attempt) read(ctx context.Context) error {
	v, err := a.board.fetch(ctx, a.id, a.search)
	a.view, a.fresh = v, err == nil
	return err
}

func (a *attempt) failed(err error) driver.Result {
	if taken, ok := errors.AsType[*takenError](err); ok && !a.doubt {
		r := driver.Result{Kind: job.AlreadyExists, Message: taken.name, Taken: taken.by}
		if v := a.board.known(taken.by); v != nil && !v.slim {
			r.Record = v.show(a.board.now(), 0)
		}
		return r
	}
	if a.doubt && job.KindOf(err) != job.OutcomeUnknown {
		return driver.Failed(&job.Error{Kind: job.OutcomeUnknown, Message: "the connection was lost while the change was made", Err: err})
	}
	if errors.Is(err, context.DeadlineExceeded) && job.KindOf(err) == job.Interrupted {
		return driver.Failed(&job.Error{Kind: job.Unavailable, Message: "ZooKeeper does not answer", Err: err})
	}
	return driver.Failed(err)
}

// look reads the job after a change whose answer was lost. If it cannot be read now it is
// read before the next try.
func (a *attempt) look(ctx context.Context) {
	a.view, a.fresh = nil, false
	if err := a.board.client().Ready(ctx); err != nil {
		return
	}
	if err := a.read(ctx); err != nil {
		a.view = nil
	}
}

// wrote reports whether a change of this attempt whose answer was lost was made: then the
// job's record has its mark. Watchers are told of the change by the log, or where it has
// no line by whoever read the record first.
func (a *attempt) wrote(v *view) bool {
	return a.doubt && v != nil && v.rec != nil && v.rec.mark == a.mark
}
