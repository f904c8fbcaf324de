package board

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/boardd/boardd/host/chart"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// How the board went is kept in one document, a ring of samples, by all hosts of the board
// together: each adds what it counted, if nobody else wrote meanwhile, or else reads again.
const (
	sampleSpace = "samples"
	sampleRing  = "ring"

	samplePace = time.Minute      // between two samples, and two writes of a host at least
	sampleIdle = time.Hour        // between two writes while nothing happens and no job is there
	sampleTime = 10 * time.Second // for reading and writing the ring
	sampleLast = time.Second      // likewise when the board is closed
	sampleRead = 10 * time.Second // for how long a ring is shown before the store is asked again
)

// sampler counts how the board goes, and remembers what is in the store.
type sampler struct {
	writer uint64 // this board's among all that write the ring

	asking sync.Mutex // held while the store is asked, before mu

	mu      sync.Mutex // guards what follows; held while memory is read or written
	stored  []byte     // the ring as the store had it last
	version uint64     // of it
	read    time.Time  // when the store was asked last; zero: never
	wrote   time.Time

	fresh  chart.Ring // counted and not sent
	sent   chart.Ring // to the store, which may have it
	number uint64     // under which it was sent

	idleFrom, idleTo time.Time          // of samples without any number, that are in neither; zero: none
	before           [chart.Flows]int64 // the counters at the last sample
	trouble          complaint          // guarded by asking
}

// init makes a sampler ready.
func (s *sampler) init() {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	s.writer = binary.BigEndian.Uint64(id[:])
}

// slept counts how a board stood that was closed until now although jobs waited there.
func (s *sampler) slept(r *Slept, now time.Time) {
	c := &r.Counts
	if r.Since.IsZero() || c.Ready+c.Delayed == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh.AddStill(r.Since, now, func(at time.Time) chart.Sample {
		sample := chart.Sample{chart.Waiting: c.Ready, chart.Delayed: c.Delayed}
		if !c.OldestReadyAt.IsZero() {
			sample[chart.Oldest] = max(0, int64(at.Sub(c.OldestReadyAt)/time.Second))
		}
		return sample
	})
}

// sampleForever takes a sample each minute and keeps it in the store, until ctx ends. Hosts
// and boards do so at different seconds, so that not all write at once.
func (b *Board) sampleForever(ctx context.Context) {
	second := time.Duration(b.samples.writer % uint64(samplePace))
	for {
		now := time.Now()
		next := now.Truncate(samplePace).Add(second)
		if !next.After(now) {
			next = next.Add(samplePace)
		}
		if sleep.For(ctx, next.Sub(now)) != nil {
			break
		}
		if _, ready, _ := b.readiness.look(); ready {
			b.Sample(time.Now())
			b.keepSamples(ctx, sampleTime, false)
		}
	}
	b.sample(time.Now(), true)
	b.keepSamples(context.WithoutCancel(ctx), sampleLast, true)
}

// Sample counts how the board stands, and what this host did on it since the sample before, at
// a time. Run does so each minute; others need not, unless their time is not the clock's.
func (b *Board) Sample(now time.Time) { b.sample(now, false) }

// sample takes a sample. The last one is taken when the board has been closed, if something
// has happened since the one before.
func (b *Board) sample(now time.Time, last bool) {
	m, s, c := &b.metrics, &b.samples, b.index.Count()
	counters := [chart.Flows]int64{m.Posted.Load(), m.Consumed.Load(), m.Expired.Load() + m.Abandoned.Load() + m.Trashed.Load()}
	sample := chart.Sample{chart.Waiting: c.Ready, chart.Delayed: c.Delayed, chart.Claimed: c.Claimed}
	if !c.OldestReadyAt.IsZero() {
		sample[chart.Oldest] = max(0, int64(now.Sub(c.OldestReadyAt)/time.Second))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last && counters == s.before {
		return
	}
	for i, n := range counters {
		sample[int(chart.Posted)+i] = n - s.before[i]
	}
	s.before = counters
	if sample == (chart.Sample{}) {
		if s.idleTo = now; s.idleFrom.IsZero() {
			s.idleFrom = now
		}
		return
	}
	s.endIdle()
	s.fresh.Add(now, &sample)
}

// endIdle counts the time in which nothing happened. The caller holds mu.
func (s *sampler) endIdle() {
	if !s.idleFrom.IsZero() {
		s.fresh.AddIdle(s.idleFrom, s.idleTo)
		s.idleFrom, s.idleTo = time.Time{}, time.Time{}
	}
}

// keepSamples writes what was counted, if there is any, and the board is not only observed.
// Of a board on which nothing happens little is written, and of one on which nothing ever
// happened nothing.
func (b *Board) keepSamples(ctx context.Context, within time.Duration, last bool) {
	if b.spec.Observe {
		return
	}
	s := &b.samples
	s.asking.Lock()
	defer s.asking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var err error
	if !last && !s.known() {
		err = b.readSamples(ctx)
	}
	if err == nil && s.due(last) {
		err = b.writeSamples(ctx)
	}
	if err != nil && !last && s.trouble.due(err.Error(), time.Now()) {
		b.log.Warn("how the board went could not be kept in the store: this is tried again", "error", err)
	}
}

// known reports whether the store was asked already.
func (s *sampler) known() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.read.IsZero()
}

// due reports whether there is something to write.
func (s *sampler) due(last bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh.Empty() && s.sent.Empty() && (s.idleFrom.IsZero() || len(s.stored) == 0 || !last && time.Since(s.wrote) < sampleIdle) {
		return false
	}
	s.endIdle()
	return true
}

// readSamples asks the store for the ring. The caller holds asking.
func (b *Board) readSamples(ctx context.Context) error {
	doc, err := b.driver.Documents().Get(ctx, driver.Space{Board: b.spec.Key, Name: sampleSpace}, sampleRing)
	if err != nil && !errors.Is(err, job.NotFound) {
		return err
	}
	s := &b.samples
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored, s.version, s.read = doc.Data, doc.Version, time.Now()
	return nil
}

// ring returns the ring of the store. One that cannot be read is begun anew. The caller holds
// mu.
func (s *sampler) ring() *chart.Ring {
	if len(s.stored) > 0 {
		if r, err := chart.Decode(s.stored); err == nil {
			return r
		}
	}
	return &chart.Ring{}
}

// writeSamples adds what was counted to the ring in the store. The caller holds asking.
func (b *Board) writeSamples(ctx context.Context) error {
	docs, space := b.driver.Documents(), driver.Space{Board: b.spec.Key, Name: sampleSpace}
	s := &b.samples
	again := s.unsure()
	for try := 0; ; try++ {
		if again {
			if err := b.readSamples(ctx); err != nil {
				return err
			}
		}
		data, version := s.send(time.Now())
		if data == nil {
			return nil
		}
		version, err := docs.Put(ctx, space, driver.Document{Name: sampleRing, Data: data}, version)
		if again = err != nil; !again {
			s.kept(data, version)
			continue // something may have been counted since what was sent
		}
		if try >= tries || !errors.Is(err, job.Aborted) {
			return err
		}
	}
}

// unsure reports whether the store has to be asked before something is written.
func (s *sampler) unsure() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read.IsZero() || !s.sent.Empty()
}

// send returns the ring with what was counted, and the version that it may replace. It bears
// a receipt: what was sent and not answered is sent again as it was until the store has it,
// and so counts once. No data: the store has all.
func (s *sampler) send(now time.Time) (data []byte, version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ring := s.ring()
	if ring.Signed(s.writer, s.number) {
		s.sent = chart.Ring{}
	}
	if s.sent.Empty() {
		if s.fresh.Empty() {
			return nil, 0
		}
		s.sent, s.fresh = s.fresh, chart.Ring{}
		s.number++
	}
	ring.Merge(&s.sent, now)
	ring.Sign(chart.Receipt{Writer: s.writer, Number: s.number, At: now.Unix() / 60})
	return ring.Encode(), s.version
}

// kept notes that what was sent is in the store.
func (s *sampler) kept(data []byte, version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored, s.version, s.sent = data, version, chart.Ring{}
	s.read = time.Now()
	s.wrote = s.read
}

// Samples returns how the board went over the last week, as far as it was counted by any of
// its hosts. With ask, the store is asked now and then for what others have counted.
func (b *Board) Samples(ctx context.Context, ask bool) (*chart.Ring, error) {
	if ask {
		if err := b.askSamples(ctx); err != nil {
			return nil, err
		}
	}
	s := &b.samples
	s.mu.Lock()
	defer s.mu.Unlock()
	ring, now := s.ring(), time.Now()
	if !ring.Signed(s.writer, s.number) {
		ring.Merge(&s.sent, now)
	}
	ring.Merge(&s.fresh, now)
	if !s.idleFrom.IsZero() {
		ring.AddIdle(s.idleFrom, s.idleTo)
	}
	return ring, nil
}

// askSamples reads the ring, if that is some time ago and nobody else does.
func (b *Board) askSamples(ctx context.Context) error {
	s := &b.samples
	if !s.known() {
		s.asking.Lock()
	} else if !s.asking.TryLock() {
		return nil
	}
	defer s.asking.Unlock()
	s.mu.Lock()
	read := s.read
	s.mu.Unlock()
	if !read.IsZero() && time.Since(read) < sampleRead {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	return b.readSamples(ctx)
}
