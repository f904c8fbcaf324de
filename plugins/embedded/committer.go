package embedded

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/boardd/boardd/plugins/embedded/wal"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// How much one transaction carries, and how often the committer lets others
// run, so that they join it, before it begins. It never waits for them: a lone
// caller is served at once.
const (
	maxGroup  = 4096     // ops
	maxVolume = 16 << 20 // bytes, roughly
	maxYields = 16
)

// work is what a caller wants done: in a transaction, or alone, with everything in
// the file and nothing over it.
type work struct {
	do     func(*txn)
	alone  func() error
	ops    int
	volume int

	state atomic.Int32 // queued, begun or withdrawn
	done  chan struct{}
	err   error // set before done is closed
}

const (
	queued int32 = iota
	begun
	withdrawn
)

// A committer gathers work and makes it durable, one transaction after the
// other. It is the only writer.
type committer struct {
	store *Store

	mu      sync.Mutex // guards queue and closed
	queue   []*work
	closed  bool
	arrived atomic.Int64 // how much work ever came
	wake    chan struct{}
	ended   chan struct{}

	// Of the goroutine that runs the committer.
	journal     *wal.Log
	begun       bool // the journal has what the file has not
	draft       *memtable
	checkpoints checkpointer
	arena       arena
	record      recordWriter
}

func newCommitter(s *Store, j *wal.Log) *committer {
	return &committer{
		store: s, wake: make(chan struct{}, 1), ended: make(chan struct{}), journal: j, draft: s.over.recent.Copy(),
		checkpoints: checkpointer{store: s, done: make(chan error, 1)},
	}
}

// do has fn run in a transaction and returns when that is on the disk. The end
// of ctx takes fn back as long as it has not begun.
func (c *committer) do(ctx context.Context, ops, volume int, fn func(*txn)) error {
	return c.wait(ctx, &work{do: fn, ops: ops, volume: volume})
}

// alone is do for what changes the file itself.
func (c *committer) alone(ctx context.Context, fn func() error) error {
	return c.wait(ctx, &work{alone: fn})
}

func (c *committer) wait(ctx context.Context, w *work) error {
	if err := ctx.Err(); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	w.done = make(chan struct{})
	if err := c.enqueue(w); err != nil {
		return err
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		if w.state.CompareAndSwap(queued, withdrawn) {
			return &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
		}
	}
	<-w.done // it has begun, and a commit is short
	return w.err
}

func (c *committer) enqueue(w *work) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.store.dead.Load() {
		return c.store.gone()
	}
	c.queue = append(c.queue, w)
	c.arrived.Add(1)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// run commits until the committer is closed and its queue is empty. Then it writes
// everything to the file.
func (c *committer) run() {
	defer close(c.ended)
	// A page of the map that cannot be read is a panic here and not the end of
	// the process without a word.
	debug.SetPanicOnFault(true)
	for range c.wake {
		for c.yield() {
			if !c.commit(c.take()) {
				return
			}
		}
		c.mu.Lock()
		ended := c.closed && len(c.queue) == 0
		c.mu.Unlock()
		if ended {
			if fatal, err := c.guarded(c.flush); err != nil && !fatal {
				c.store.logger.Warn("the journal is kept: the next start writes it to the file", "path", c.store.folder.path, "error", err)
			}
			return
		}
	}
}

// yield lets callers join the queue as long as more of them come, and reports
// whether there is anything to do.
func (c *committer) yield() bool {
	before := c.arrived.Load()
	for range maxYields {
		runtime.Gosched()
		now := c.arrived.Load()
		if now == before {
			break
		}
		before = now
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) > 0
}

// take returns the front of the queue, as much as one transaction carries.
func (c *committer) take() []*work {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ops, volume := 0, 0, 0
	for n < len(c.queue) && (n == 0 || (ops+c.queue[n].ops <= maxGroup && volume+c.queue[n].volume <= maxVolume)) {
		if n > 0 && (c.queue[n].alone != nil || c.queue[0].alone != nil) {
			break
		}
		ops += c.queue[n].ops
		volume += c.queue[n].volume
		n++
	}
	group := c.queue[:n:n]
	c.queue = c.queue[n:]
	if len(c.queue) == 0 {
		c.queue = nil
	}
	return group
}

// commit carries out a group and answers it. It returns false when the store
// must not be used any more.
func (c *committer) commit(group []*work) bool {
	live := group[:0]
	for _, w := range group {
		if w.state.CompareAndSwap(queued, begun) {
			live = append(live, w)
		}
	}
	if len(live) == 0 {
		return true
	}
	fatal, err := c.guarded(func() error {
		if live[0].alone != nil {
			if err := c.flush(); err != nil {
				return err
			}
			return live[0].alone()
		}
		return c.transact(live)
	})
	failpoint.Hit("embedded/commit/before-answer")
	for _, w := range live {
		w.err = err
		close(w.done)
	}
	if fatal {
		c.abandon()
	}
	return !fatal
}

// guarded runs one step of the committer. An error that is not fatal means that
// nothing was changed: the disk is full. After every other one, and where the file
// cannot be read, nobody can tell what is on the disk.
func (c *committer) guarded(step func() error) (fatal bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			fatal, err = true, c.fatal(fmt.Errorf("a page of the store cannot be used: %v\n%s", p, debug.Stack()))
		}
	}()
	if c.store.dead.Load() { // since the file could not be written
		return true, c.store.gone()
	}
	err = step()
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, wal.ErrFull):
		if !c.store.fullness.fresh(c.store.clock.boot()) {
			c.store.logger.Warn("the disk has no room for a change", "path", c.store.folder.path, "error", err)
		}
		c.store.fullness.note(c.store.clock.boot())
		return false, &job.Error{Kind: job.QuotaExceeded, Message: noRoomYet, Err: err}
	}
	return true, c.fatal(err)
}

// transact is one transaction.
func (c *committer) transact(live []*work) error {
	s := c.store
	if err := c.rotate(); err != nil {
		return err
	}
	s.gate.RLock()
	frozen := s.over.frozen // the checkpoint may end meanwhile
	s.gate.RUnlock()
	c.record.reset()
	t := &txn{
		snapshot: snapshot{store: s, over: overlay{recent: c.draft, frozen: frozen}},
		at:       s.instant(), arena: &c.arena, record: &c.record, boards: map[*board]*boardTx{},
	}
	for _, w := range live {
		w.do(t)
	}
	for _, v := range t.boards {
		v.finish()
	}
	if t.wrote {
		s.documents.sweep(t)
		s.saveBoot(t)
	}
	if len(t.edited) > 0 {
		t.versions = t.documentTable().sequence()
	}
	if err := t.close(); err != nil {
		return err
	}
	if !t.wrote {
		return nil
	}
	return c.seal(t)
}

// seal makes t durable and visible.
func (c *committer) seal(t *txn) error {
	s := c.store
	err := c.begin()
	c.journal.Spare = 0
	if t.grew {
		c.journal.Spare = journalSpare
	}
	if err == nil {
		err = c.journal.Append(c.record.b)
	}
	if err != nil {
		s.gate.RLock()
		c.draft = s.over.recent.Copy()
		s.gate.RUnlock()
		for b := range t.boards { // what was trimmed is there again
			b.oldest = [tableCount][]byte{}
		}
		return err
	}
	failpoint.Hit("embedded/commit/before-memory")
	for _, v := range t.boards {
		s.marker.last.raise(v.state.position, v.state.generation, 0)
	}
	s.marker.last.raise(0, 0, t.versions)
	s.marker.write(tail{c.journal.Epoch, c.journal.Number})
	seen := c.draft.Copy()
	s.gate.Lock()
	defer s.gate.Unlock()
	s.over.recent = seen
	t.publish()
	return nil
}

// fatal ends the process: nobody can tell whether the transaction is on the
// disk.
func (c *committer) fatal(err error) error {
	_ = c.store.fatal(err)
	return &job.Error{Kind: job.OutcomeUnknown, Message: "the store failed while it made this change durable", Err: err}
}

// abandon refuses everything that still waits.
func (c *committer) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, w := range c.queue {
		if w.state.CompareAndSwap(queued, withdrawn) {
			w.err = c.store.gone()
			close(w.done)
		}
	}
	c.queue = nil
}

// close lets what is queued finish and waits for it.
func (c *committer) close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	c.mu.Unlock()
	<-c.ended
}
