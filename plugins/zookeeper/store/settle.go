package store

import (
	"context"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/job"
)

// What a board for which other programs may look is not frozen or left for.
const (
	changedFrozen = "another program has changed %s since the board was frozen: stop it before the board moves"
	justTaken     = "another program took job %v off the board just as that was frozen: move it again"
	notSettled    = "the board was frozen as one that boardd alone writes to: it cannot be left as another one"
)

// froze is a node whose making says when a board was frozen for which other programs may look.
func (l layout) froze() string { return l.own + "/froze" }

// settleOthers has what is known, and what is kept, follow all that other programs have done to the
// board until now.
func (b *board) settleOthers(ctx context.Context) error {
	if err := b.relist(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	var work []func(context.Context) error
	for _, v := range b.jobs { // another lock may stand where one was
		if v.lock != nil {
			work = append(work, b.checkLock(v))
		}
	}
	b.mu.Unlock()
	if err := together(ctx, work); err != nil {
		return err
	}
	return b.bury(ctx)
}

// relist reads the folder as it is now for everybody.
func (b *board) relist(ctx context.Context) error {
	if err := b.client().Sync(ctx, b.at.Board); err != nil {
		return err
	}
	return b.listFolder(ctx, b.lists.Load())
}

// unheld refuses to freeze a board of which another program holds a job, or has ended one that
// is not written down yet.
func (b *board) unheld() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, v := range b.jobs {
		switch {
		case v.stranger() != nil:
			return job.Errorf(job.Precondition, heldByOthers, id)
		case v.gone():
			return job.Errorf(job.Precondition, justTaken, id)
		}
	}
	return nil
}

// addFroze adds to the transaction that freezes a board, or thaws it, the node that says when
// that was.
func (b *board) addFroze(ctx context.Context, m *session.Multi, frozen bool) error {
	stat, err := b.client().Exists(ctx, b.at.froze())
	switch {
	case err != nil:
		return err
	case frozen && stat == nil:
		m.Create(b.at.froze(), nil, session.Persistent)
	case !frozen && stat != nil:
		m.Delete(b.at.froze(), -1)
	}
	return nil
}

// frozenAt returns the transaction that froze the board.
func (b *board) frozenAt(ctx context.Context) (uint64, error) {
	stat, err := b.client().Exists(ctx, b.at.froze())
	if err != nil {
		return 0, err
	}
	if stat == nil {
		return 0, job.Errorf(job.Precondition, notSettled)
	}
	return uint64(stat.Czxid), nil
}

// untouched refuses to leave a board that another program has changed since it was frozen.
// Whatever TaskFlow does there makes or deletes a node in its folder, and boardd does neither.
func (b *board) untouched(ctx context.Context) error {
	froze, err := b.frozenAt(ctx)
	if err != nil {
		return err
	}
	folder, err := b.client().List(ctx, b.at.Board) // the root was read as it is for everybody
	if err != nil && !session.NoNode(err) {
		return err
	}
	if err == nil && uint64(folder.Stat.Pzxid) <= froze {
		return nil
	}
	if err := b.relist(ctx); err != nil {
		return err
	}
	which, _ := b.changedAfter(froze)
	return job.Errorf(job.Precondition, changedFrozen, which)
}

// changedAfter names a job that another program has changed after a transaction, as far as that
// can be seen, and says how many those are.
func (b *board) changedAfter(froze uint64) (which string, n int) {
	which = "the board"
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, v := range b.jobs {
		if v.gone() || v.czxid > froze && v.node != "" || v.stranger() != nil {
			which = "job " + id.String()
			n++
		}
	}
	return which, n
}
