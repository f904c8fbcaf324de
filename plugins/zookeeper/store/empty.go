package store

import (
	"context"
	"slices"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// What Empty is answered with where another program has done something since the board was left.
const (
	heldSince    = "another program has claimed job %v (and %d more) since the board was left: it is waited for until the claim ends"
	changedSince = "another program has changed %s (and %d more) since the board was left: that stays as it is in TaskFlow's folders"
)

// emptyAtOnce is how many jobs one transaction takes out of TaskFlow's folder.
const emptyAtOnce = 20

// emptyTries is how often a job is tried to be taken out that is changed meanwhile.
const emptyTries = 5

// An emptying takes the jobs of a board that has gone to another store out of TaskFlow's
// folders. What boardd keeps of them is there until the board is dropped.
type emptying struct {
	*board

	passage transition.Passage // how the board stands between stores
	version int32              // of the root that says so
	froze   uint64             // what came later did not come along

	held   int
	aHeld  job.ID
	late   int
	aLate  string
	locked []byte // the data of a lock that is made to see that there is none
}

// empty takes them out. fresh says that nobody has begun to: then a job that is gone was taken
// away by another program.
func (b *board) empty(ctx context.Context, fresh bool) error {
	froze, err := b.frozenAt(ctx)
	if err != nil {
		return err
	}
	if err := b.relist(ctx); err != nil {
		return err
	}
	e := &emptying{board: b, froze: froze}
	if fresh {
		b.mu.Lock()
		b.late = ""
		b.mu.Unlock()
		if err := e.ended(ctx); err != nil {
			return err
		}
	}
	b.mu.Lock()
	e.passage, e.version = b.root.passage, b.root.version
	var open []*view
	var aside []string
	for id, v := range b.jobs {
		switch {
		case v.node != "" && v.czxid > froze:
			e.late, e.aLate = e.late+1, "job "+id.String()
		case v.node != "":
			open = append(open, v)
		case v.rec != nil && v.rec.place == inTrash && v.rec.trash != "":
			aside = append(aside, v.rec.trash)
		}
	}
	late := b.late
	b.mu.Unlock()
	for part := range slices.Chunk(open, emptyAtOnce) {
		if err := e.take(ctx, part); err != nil {
			return err
		}
	}
	if err := b.store.deleteAll(ctx, aside); err != nil {
		return err
	}
	switch {
	case e.held > 0:
		return job.Errorf(job.Unavailable, heldSince, e.aHeld, e.held-1)
	case e.late > 0:
		return job.Errorf(job.AlreadyExists, changedSince, e.aLate, e.late-1)
	case late != "":
		return job.Errorf(job.AlreadyExists, changedSince, late, 0)
	}
	return nil
}

// ended keeps in mind that another program has ended a job since the board was left, if this
// host can see that: nothing of it is left once others are taken out.
func (e *emptying) ended(ctx context.Context) error {
	folder, err := e.client().List(ctx, e.at.Board)
	if err != nil || uint64(folder.Stat.Pzxid) <= e.froze {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.board.late = "the board"
	for id, v := range e.jobs {
		switch {
		case v.gone():
			e.board.late = "job " + id.String()
			return nil
		case v.node != "" && (v.czxid > e.froze || v.stranger() != nil):
			e.board.late = "" // that is what was seen, unless a job is gone as well
		}
	}
	return nil
}

// take takes some jobs out, together if none of them was changed.
func (e *emptying) take(ctx context.Context, part []*view) error {
	err := e.delete(ctx, part)
	if err == nil || !session.Conflict(err) && !session.Lost(err) {
		return err
	}
	for _, v := range part {
		if err := e.takeOne(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes the postings of jobs, with boardd's own locks. Where there is no lock one is made
// and deleted before the posting, so that nobody claims the job in between.
func (e *emptying) delete(ctx context.Context, part []*view) error {
	m := e.client().Multi(e.lockACL())
	m.Check(e.at.own, e.version)
	for _, v := range part {
		lock := e.at.Lock(v.node)
		if v.ours() {
			m.Delete(lock, v.lock.version)
		} else {
			m.Create(lock, e.locked, session.Persistent)
			m.Delete(lock, 0)
		}
		m.Delete(e.at.Job(v.node), 0) // nobody has changed it
	}
	_, err := m.Do(ctx)
	return err
}

func (e *emptying) lockACL() []session.ACL {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.acl
}

// takeOne takes out one job, as it is now, unless another program holds it.
func (e *emptying) takeOne(ctx context.Context, v *view) error {
	for range emptyTries {
		if err := e.client().Ready(ctx); err != nil {
			return err
		}
		if same, err := e.latestRoot(ctx); err != nil || !same {
			if err == nil {
				err = job.Errorf(job.Unavailable, "the board is to be read anew")
			}
			return err
		}
		e.mu.Lock()
		passage, version := e.root.passage, e.root.version
		e.mu.Unlock()
		if passage != e.passage {
			return job.Errorf(job.Aborted, "somebody else has moved the board on meanwhile")
		}
		e.version = version
		now, err := e.refresh(ctx, v.id, never)
		switch {
		case err != nil:
			return err
		case now.node == "":
			return nil
		case now.stranger() != nil:
			e.held, e.aHeld = e.held+1, v.id
			return nil
		}
		if err := e.delete(ctx, []*view{now}); err == nil || !session.Conflict(err) && !session.Lost(err) {
			return err
		}
	}
	return job.Errorf(job.Unavailable, "job %v is changed all the time in TaskFlow's folder", v.id)
}
