package store

import (
	"container/heap"
	"context"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/job"
)

// choreTime is how often a board looks at what is due.
const choreTime = 500 * time.Millisecond

// chores do what is due, and nothing on a board where nothing is.
func (b *board) chores(ctx context.Context) error {
	if b.hosts.dirty.Load() {
		if err := b.meet(ctx); err != nil {
			return err
		}
	}
	b.mu.Lock()
	unwatched := b.rootEvent == nil && b.root.there
	b.mu.Unlock()
	if unwatched { // it could not be read
		if err := b.heedRoot(ctx); err != nil && job.KindOf(err) != job.Corrupt {
			return err
		}
	}
	if b.rests() { // what is due is done when it goes on
		return b.nudge(ctx)
	}
	if err := b.bury(ctx); err != nil {
		return err
	}
	if err := b.keepSightings(ctx); err != nil {
		return err
	}
	if err := b.mendBroken(ctx); err != nil {
		return err
	}
	if err := b.trim(ctx); err != nil {
		return err
	}
	if err := b.tidyCounters(ctx); err != nil {
		return err
	}
	if err := b.nudge(ctx); err != nil {
		return err
	}
	if err := b.endTerms(ctx); err != nil {
		return err
	}
	return b.sweepLocks(ctx)
}

// rests reports whether the board does nothing by itself now, as it moves.
func (b *board) rests() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.root.rests()
}

// A sweep looks at locks one after another. The list of names does not tell when
// one took the place of another between two looks at it.
type sweep struct {
	wanted bool
	queue  []job.ID
}

// sweepAtOnce is how many locks are looked at every choreTime.
const sweepAtOnce = 100

func (s *sweep) again(changed bool) { s.wanted = s.wanted || changed }

func (b *board) sweepLocks(ctx context.Context) error {
	b.mu.Lock()
	s := &b.sweep
	if len(s.queue) == 0 && s.wanted {
		s.wanted = false
		for id, v := range b.jobs {
			if v.lock != nil {
				s.queue = append(s.queue, id)
			}
		}
	}
	n := min(len(s.queue), sweepAtOnce)
	var work []func(context.Context) error
	for _, id := range s.queue[:n] {
		if v := b.jobs[id]; v != nil && v.lock != nil {
			work = append(work, b.checkLock(v))
		}
	}
	s.queue = s.queue[n:]
	b.mu.Unlock()
	return together(ctx, work)
}

func (b *board) checkLock(v *view) func(context.Context) error {
	return func(ctx context.Context) error {
		stat, err := b.client().Exists(ctx, b.at.Lock(v.node))
		if err == nil && (stat == nil || uint64(stat.Czxid) != v.lock.czxid || stat.Version != v.lock.version) {
			_, err = b.refresh(ctx, v.id, recorded)
		}
		return err
	}
}

// A holdQueue has the jobs that may run from some time on, the soonest first. An
// entry that is no longer true is passed over when its time comes.
type holdQueue []hold

type hold struct {
	until int64
	id    job.ID
}

// Len, Less, Swap, Push and Pop are for package heap.
func (q holdQueue) Len() int           { return len(q) }
func (q holdQueue) Less(i, k int) bool { return q[i].until < q[k].until }
func (q holdQueue) Swap(i, k int)      { q[i], q[k] = q[k], q[i] }

// Push adds to the end.
func (q *holdQueue) Push(x any) { *q = append(*q, x.(hold)) }

// Pop takes the end away.
func (q *holdQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// add queues the job if a lock of boardd's holds it for a time.
func (q *holdQueue) add(v *view) {
	if v.onBoard() && v.ours() && v.rec.claim == nil && !v.rec.holdAlways {
		heap.Push(q, hold{v.rec.holdUntil, v.id})
	}
}

// due returns when the first job may run.
func (q holdQueue) due() (time.Time, bool) {
	if len(q) == 0 {
		return time.Time{}, false
	}
	return atMillis(max(q[0].until, 1)), true
}

// grace is how much later than the first host this one lifts a hold, or ends a claim
// that has lapsed. A host that was killed is among those before it until its session
// has ended.
func (h *hosts) grace(subject string) time.Duration {
	return min(time.Duration(h.rank(subject))*graceStep, maxGrace)
}

// The grace of each host over the one before, and of the last ones at most.
const (
	graceStep = 200 * time.Millisecond
	maxGrace  = 600 * time.Millisecond
)

// release takes the locks away that held jobs back until now, so that TaskFlow
// may have them too.
func (b *board) release(ctx context.Context) error {
	var work []func(context.Context) error
	b.mu.Lock()
	at := b.instant()
	var due []hold
	for len(b.holds) > 0 && !b.root.rests() && b.holds[0].until <= at.millis() && len(work) < 256 {
		h := heap.Pop(&b.holds).(hold) //nolint:forcetypeassert // nothing else is in it
		v := b.jobs[h.id]
		if v == nil || b.spec.Observe || !v.onBoard() || !v.ours() || v.rec.claim != nil || v.waits(at) {
			continue
		}
		if late := b.hosts.grace(h.id.String()).Milliseconds(); at.millis() < v.rec.holdUntil+late {
			heap.Push(&b.holds, hold{v.rec.holdUntil + late, h.id})
			continue
		}
		due = append(due, h)
		work = append(work, func(ctx context.Context) error { return b.lift(ctx, v) })
	}
	b.mu.Unlock()
	err := together(ctx, work)
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, h := range due { // those that were lifted are passed over then
			heap.Push(&b.holds, h)
		}
	}
	return err
}

// lift takes one lock away.
func (b *board) lift(ctx context.Context, v *view) error {
	b.mu.Lock()
	root := b.root
	if root.rests() {
		heap.Push(&b.holds, hold{v.rec.holdUntil, v.id})
	}
	b.mu.Unlock()
	if root.rests() {
		return nil
	}
	m := b.client().Multi(nil)
	m.Check(b.at.own, root.version)
	m.Check(b.at.record(v.id), v.recVersion)
	m.Delete(b.at.Lock(v.node), v.lock.version)
	sign := m.Set(b.at.hosts(), nil, -1) // for its stat
	done, err := m.Do(ctx)
	if session.Conflict(err) {
		if err := b.checkRoot(ctx); err != nil {
			return err
		}
		_, err = b.refresh(ctx, v.id, recorded)
		return err
	}
	if err != nil {
		return err
	}
	b.movedOne(done[sign].Stat)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[v.id] == v {
		free := *v
		free.lock = nil
		b.put(&free)
	}
	return nil
}
