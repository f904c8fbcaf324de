package board

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board/timetable"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
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
	wake   chan struct{} // has room for one

	missed func(name string, from, to time.Time) // is told of ticks that are left out, with mu held
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
	running bool      // by a goroutine; it is not in the heap
	place   int       // in the heap; -1: it is not in it
}

// count returns how many schedules there are.
func (s *scheduler) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// learn takes news of a schedule; nil: it was deleted.
func (s *scheduler) learn(name string, r *scheduleRecord, version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.all[name]
	if r == nil {
		if known != nil {
			s.remove(known)
			delete(s.all, name)
		}
		return
	}
	if known == nil {
		known = &scheduled{name: name, place: -1}
		s.all[name] = known
	} else if version <= known.version {
		return
	}
	known.record, known.version, known.failed = r, version, 0
	known.table, _ = r.table() // one that cannot be read has no ticks
	s.plan(known)
}

// plan puts a schedule where it belongs in the heap, with the tick that comes next. It is
// called with mu held.
func (s *scheduler) plan(k *scheduled) {
	s.remove(k)
	k.next = time.Time{}
	if k.table == nil || k.record.Paused || k.running || !s.synced {
		return
	}
	after := k.record.Since
	if k.last.After(after) {
		after = k.last
	}
	if k.next = k.table.Next(after); k.next.IsZero() {
		return
	}
	if late := time.Now().Add(-k.record.CatchUp); k.failed == 0 && !k.next.After(late) {
		s.missed(k.name, k.next, late)
		if k.next = k.table.Next(late); k.next.IsZero() {
			return
		}
	}
	if k.failed == 0 {
		k.at = k.next.Add(jitter(k.name, k.next, k.record.Jitter))
	}
	heap.Push(&s.due, k)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *scheduler) remove(k *scheduled) {
	if k.place >= 0 {
		heap.Remove(&s.due, k.place)
	}
}

// take returns a schedule whose tick is due, or how long that takes.
func (s *scheduler) take(now time.Time) (k *scheduled, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.due) == 0 {
		return nil, time.Hour
	}
	k = s.due[0]
	if wait = k.at.Sub(now); wait > 0 {
		return nil, min(wait, time.Hour)
	}
	s.remove(k)
	k.running = true
	return k, 0
}

// handled notes what came of a tick: whether it need not be tried again.
func (s *scheduler) handled(k *scheduled, tick time.Time, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.running = false
	if done {
		k.failed = 0
		if tick.After(k.last) {
			k.last = tick
		}
	} else {
		k.failed++
		k.at = time.Now().Add(min(100*time.Millisecond<<min(k.failed, 6), 5*time.Second))
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
	for _, k := range s.all {
		k.version = 0
	}
}

// sync begins to post, now that all schedules are known, and how far each is.
func (s *scheduler) sync(last map[string]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = true
	for name, k := range s.all {
		if k.version == 0 {
			s.remove(k)
			delete(s.all, name)
			continue
		}
		if t := last[name]; t.After(k.last) {
			k.last = t
		}
		s.plan(k)
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

// scheduleKey is the key that a schedule's ticks take.
func scheduleKey(name string) string { return "schedule/" + name }

// tickDigest is of one tick, the same on every host.
func tickDigest(what, name string, tick time.Time) [32]byte {
	b := append([]byte(what), 0)
	b = append(append(b, name...), 0)
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(tick.UnixMilli()))) //nolint:gosec // a digest takes any bits
}

// jitter is how late a tick is.
func jitter(name string, tick time.Time, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	sum := tickDigest("jitter", name, tick)
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(most))
}

// tickID is the uuid of a tick's job: of version 8 (RFC 9562), so that every host gives it the same.
func (b *Board) tickID(name string, tick time.Time) job.ID {
	sum := tickDigest("tick of "+b.spec.Key, name, tick)
	id := job.ID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id
}

// learnSchedule takes news of a schedule's document.
func (b *Board) learnSchedule(doc driver.Document, deleted bool) {
	name := strings.TrimPrefix(doc.Name, schedulePrefix)
	if deleted {
		b.scheduler.learn(name, nil, doc.Version)
		return
	}
	var r scheduleRecord
	if err := json.Unmarshal(doc.Data, &r); err != nil {
		b.log.Warn("the record of a schedule cannot be read: it has no ticks", "schedule", name, "error", err)
	}
	b.scheduler.learn(name, &r, doc.Version)
}

// syncSchedules reads how far the schedules are.
func (b *Board) syncSchedules(ctx context.Context) error {
	if b.scheduler.count() == 0 { // as on most boards, which need not ask
		b.scheduler.sync(nil)
		return nil
	}
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
	b.scheduler.sync(last)
	return nil
}

// tickForever posts ticks when they are due, until ctx ends.
func (b *Board) tickForever(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	room := make(chan struct{}, ticksAtOnce)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		k, wait := b.scheduler.take(time.Now())
		if k != nil {
			group.Go(func() {
				b.tick(ctx, k)
				<-room
			})
			continue
		}
		<-room
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-b.scheduler.wake:
		case <-ctx.Done():
			return
		}
	}
}

// tick posts the job of one tick, unless that was done.
func (b *Board) tick(ctx context.Context, k *scheduled) {
	s := &b.scheduler
	s.mu.Lock()
	r, tick, last := k.record, k.next, k.last
	s.mu.Unlock()
	opened, err := b.changing(ctx)
	if err == nil && r.Overlap == OverlapCancel && !last.IsZero() {
		_, err = b.Cancel(ctx, []job.ID{b.tickID(k.name, last)}, true)
	}
	var result JobResult
	var by job.ID
	if err == nil {
		posting := r.Job
		posting.ID = b.tickID(k.name, tick)
		key := driver.Key{Name: scheduleKey(k.name), Open: r.Overlap == OverlapSkip, Number: uint64(tick.UnixMilli())} //nolint:gosec // it is after 1970
		result, by, err = b.postTick(ctx, opened, &posting, key)
	}
	if err == nil {
		err = result.Err
	}
	late := time.Since(tick) > r.CatchUp
	switch kind := job.KindOf(err); {
	case ctx.Err() != nil:
		s.handled(k, tick, false)
	case err == nil && by != (job.ID{}): // it was posted before, or is left out since the one before is open
		if r.Overlap == OverlapSkip && by != b.tickID(k.name, tick) {
			b.ticked(ctx, k.name, func(t *tickRecord) {
				if tick.After(t.At) {
					t.At, t.Problem = tick, "the tick of "+tick.Format(time.RFC3339)+" was left out: job "+by.String()+" is open"
				}
			})
		}
		s.handled(k, tick, true)
	case err == nil:
		b.metrics.Ticks.Add(1)
		b.ticked(ctx, k.name, func(t *tickRecord) {
			if tick.After(t.At) {
				t.At, t.Posted, t.ID, t.Problem = tick, tick, result.Job.ID, ""
			}
		})
		s.handled(k, tick, true)
	case kind == job.AlreadyExists: // with what the schedule said of it before
		s.handled(k, tick, true)
	case late || kind == job.Invalid || kind == job.Unsupported:
		b.metrics.TicksMissed.Add(1)
		b.log.WarnContext(ctx, "a tick of a schedule is left out", "schedule", k.name, "tick", tick, "error", err)
		b.ticked(ctx, k.name, func(t *tickRecord) {
			if tick.After(t.At) {
				t.At, t.Problem = tick, "the tick of "+tick.Format(time.RFC3339)+" was left out: "+message(err)
			}
		})
		s.handled(k, tick, true)
	default:
		s.handled(k, tick, false)
	}
}

// postTick posts a job that takes its schedule's key. by is the job that has the key, if
// that is why it was not posted.
func (b *Board) postTick(ctx context.Context, opened *driver.BoardStatus, posting *job.Posting, key driver.Key) (result JobResult, by job.ID, err error) {
	results := make([]JobResult, 1)
	p := poster{board: b, opened: opened, results: results, room: b.room(opened), now: time.Now()}
	if err := p.prepare(ctx, 0, posting); err != nil {
		return JobResult{}, by, err
	}
	p.ops[0].Keys = append(p.ops[0].Keys, key)
	p.tick = key.Name
	if err := p.postAll(ctx); err != nil {
		return JobResult{}, by, err
	}
	return results[0], p.tickTaken, nil
}

// ticked writes how far a schedule is, as far as that can be written: it only says where to
// go on.
func (b *Board) ticked(ctx context.Context, name string, change func(*tickRecord)) {
	docs, space := b.driver.Documents(), driver.Space{Board: b.spec.Key, Name: tickSpace}
	for range tries {
		doc, err := docs.Get(ctx, space, name)
		if err != nil && !errors.Is(err, job.NotFound) {
			return
		}
		var before tickRecord
		_ = json.Unmarshal(doc.Data, &before) // one that cannot be read is written anew
		after := before
		if change(&after); after == before {
			return
		}
		data, err := json.Marshal(after)
		if err != nil {
			return
		}
		if _, err = docs.Put(ctx, space, driver.Document{Name: name, Data: data}, doc.Version); !errors.Is(err, job.Aborted) {
			return
		}
	}
}
