package board

import (
	"container/heap"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board/timetable"
	"github.com/boardd/boardd/sdk/driver"
)

// ticksAtOnce is how many schedules of a board post at the same time.
const ticksAtOnce = 8

// scheduler posts the jobs of a board's schedules when they are due. Each host of the board
// does so: a tick takes its schedule's key with its time as the number, so that one of them
// posts it, and none once a later one was posted. The ticks of a schedule are tried one
// after the other.
type scheduler struct {
	mu     sync.Mutex
	all    map[string]*scheduled
	due    dueHeap
	synced bool          // all schedules are known, and how far they are
	asking bool          // a watch has begun after which how far they are is read once more
	wake   chan struct{} // has room for one

	declared declaration // see SetSchedules

	ticking sync.RWMutex // held for reading from the post of a tick's job until that is noted

	clock func() time.Time // that ticks go by; nil: time.Now

	// Both are called with mu held: of ticks that are left out, and of a schedule that another
	// host wrote otherwise than it is declared here.
	missed   func(name string, from, to time.Time)
	disputed func(name string)
}

// scheduled is what the host knows of a schedule.
type scheduled struct {
	name    string
	record  *scheduleRecord
	version uint64 // of the document; older news is ignored
	table   *timetable.Timetable
	last    time.Time // the tick that was handled last
	next    time.Time // the one that comes; zero: none
	at      time.Time // when that is to be posted, or tried again
	failed  int       // tries of it
	held    bool      // it was imported, and how far it is may be yet to come: it has no ticks
	running bool      // by a goroutine; it is not in the heap
	place   int       // in the heap; -1: it is not in it
}

func (s *scheduler) now() time.Time {
	if s.clock == nil {
		return time.Now()
	}
	return s.clock()
}

// count returns how many schedules there are.
func (s *scheduler) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// learn takes news of a schedule; nil: it was deleted. It reports whether the schedule was
// imported, and how far it is has to be read for it to begin.
func (s *scheduler) learn(name string, r *scheduleRecord, version uint64) (imported bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.all[name]
	if r == nil {
		if known != nil {
			s.remove(known)
			delete(s.all, name)
			s.compare(name)
		}
		return false
	}
	if known == nil {
		known = &scheduled{name: name, place: -1}
		s.all[name] = known
	} else if version <= known.version {
		return false
	}
	if imported = !r.Imported.IsZero() && (known.record == nil || !r.Imported.Equal(known.record.Imported)); imported {
		known.held = true
	}
	known.record, known.version, known.failed = r, version, 0
	known.table, _ = r.table() // one that cannot be read has no ticks
	s.plan(known)
	s.compare(name)
	return imported && !s.asking
}

// holds reports whether schedules that were imported have yet to begin.
func (s *scheduler) holds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.all {
		if k.held {
			return true
		}
	}
	return false
}

// plan puts a schedule where it belongs in the heap, with the tick that comes next. It is
// called with mu held.
func (s *scheduler) plan(k *scheduled) {
	s.remove(k)
	k.next = time.Time{}
	if k.table == nil || k.record.Paused || k.running || k.held || !s.synced {
		return
	}
	if k.next = k.table.Next(k.record.from(k.last)); k.next.IsZero() {
		return
	}
	if late := k.record.late(s.now()); k.failed == 0 && !k.next.After(late) {
		s.missed(k.name, k.next, late)
		if k.next = k.table.Next(late); k.next.IsZero() {
			return
		}
	}
	if k.failed == 0 {
		k.at = k.next.Add(jitter(k.name, k.next, k.record.Jitter))
	}
	heap.Push(&s.due, k)
	rouse(s.wake)
}

func (s *scheduler) remove(k *scheduled) {
	if k.place >= 0 {
		heap.Remove(&s.due, k.place)
	}
}

// dueTick is a tick of a schedule as that was when it was due: the schedule itself may
// change while the tick is handled.
type dueTick struct {
	of     *scheduled
	record *scheduleRecord
	at     time.Time // without the jitter
	last   time.Time // the tick before
}

// take returns a tick that is due, or how long that takes.
func (s *scheduler) take(now time.Time) (t *dueTick, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.due) == 0 {
		return nil, time.Hour
	}
	k := s.due[0]
	if wait = k.at.Sub(now); wait > 0 {
		return nil, min(wait, ClockLook)
	}
	s.remove(k)
	k.running = true
	return &dueTick{of: k, record: k.record, at: k.next, last: k.last}, 0
}

// handled notes what came of a tick: whether it need not be tried again.
func (s *scheduler) handled(t *dueTick, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := t.of
	k.running = false
	if done {
		k.failed = 0
		k.last = later(k.last, t.at)
	} else {
		k.failed++
		k.at = s.now().Add(min(100*time.Millisecond<<min(k.failed, 6), 5*time.Second))
	}
	if s.all[k.name] == k {
		s.plan(k)
	}
}

// anew prepares for a watch that begins: what it does not tell of by its Synced is gone,
// and what it tells is believed whatever was known before.
func (s *scheduler) anew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = true
	for _, k := range s.all {
		k.version = 0
	}
}

// sync begins to post, now that all schedules are known, and how far each is; but not for those
// that were imported in a pause, if not zero, that went on before it was asked how far they are.
func (s *scheduler) sync(last map[string]time.Time, pause time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced, s.asking = true, false
	for name, k := range s.all {
		if k.version == 0 {
			s.remove(k)
			delete(s.all, name)
			s.compare(name)
			continue
		}
		k.held = !pause.IsZero() && k.record.Imported.Equal(pause)
		k.last = later(k.last, last[name])
		s.plan(k)
	}
	if s.declared.pending {
		rouse(s.wake)
	}
}

// dueHeap has the schedules by when they are due.
type dueHeap []*scheduled

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push is for package heap.
func (h *dueHeap) Push(x any) {
	k, _ := x.(*scheduled)
	k.place = len(*h)
	*h = append(*h, k)
}

// Pop is for package heap.
func (h *dueHeap) Pop() any {
	k := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h, k.place = (*h)[:len(*h)-1], -1
	return k
}

// learnSchedule takes news of a schedule's document.
func (b *Board) learnSchedule(doc driver.Document, deleted bool) {
	name := strings.TrimPrefix(doc.Name, schedulePrefix)
	if deleted {
		b.scheduleIs(name, nil, doc.Version)
		return
	}
	var r scheduleRecord
	if err := json.Unmarshal(doc.Data, &r); err != nil {
		b.log.Warn("the record of a schedule cannot be read: it has no ticks", "schedule", name, "error", err)
	}
	b.scheduleIs(name, &r, doc.Version)
}

// scheduleIs takes news of a schedule; nil: it was deleted. Of one that was imported it is read
// how far it is once the pause is over in which all of that comes: now, if it is.
func (b *Board) scheduleIs(name string, r *scheduleRecord, version uint64) {
	if !b.scheduler.learn(name, r, version) {
		return
	}
	if pause, on := b.pause.since(); !on || !r.Imported.Equal(pause) {
		b.settings.anew()
	}
}

// syncSchedules reads how far the schedules are.
func (b *Board) syncSchedules(ctx context.Context) error {
	if b.scheduler.count() == 0 { // as on most boards, which need not ask
		b.scheduler.sync(nil, time.Time{})
		return nil
	}
	pause, _ := b.pause.since()
	docs, err := b.driver.Documents().List(ctx, driver.Space{Board: b.spec.Key, Name: tickSpace}, "", 0)
	if err != nil {
		return err
	}
	last := make(map[string]time.Time, len(docs))
	for i := range docs {
		var r tickRecord
		_ = json.Unmarshal(docs[i].Data, &r) // else its ticks are tried again, which posts none twice
		last[docs[i].Name] = r.At
	}
	b.scheduler.sync(last, pause)
	return nil
}

// tickForever posts ticks when they are due, and writes what is declared, until ctx ends.
func (b *Board) tickForever(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	room := make(chan struct{}, ticksAtOnce)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		steps, ok, again := b.scheduler.declaring(b.scheduler.now())
		if ok {
			group.Go(func() { b.scheduler.declaredAll(b.declare(ctx, steps)) })
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		due, wait := b.scheduler.take(b.scheduler.now())
		if due != nil {
			group.Go(func() {
				b.scheduler.handled(due, b.tick(ctx, due))
				<-room
			})
			continue
		}
		<-room
		timer.Reset(min(wait, again))
		select {
		case <-timer.C:
		case <-b.scheduler.wake:
		case <-ctx.Done():
			return
		}
	}
}
