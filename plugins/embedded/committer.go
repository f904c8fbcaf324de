package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"go.etcd.io/bbolt"

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

// work is what a caller wants done in a transaction.
type work struct {
	do     func(*txn) error // an error undoes the whole transaction
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

type commitFunc func(*bbolt.Tx) error

// A committer gathers work and makes it durable, one transaction after the
// other. It is the only writer.
type committer struct {
	store *Store

	mu      sync.Mutex
	queue   []*work
	closed  bool
	arrived atomic.Int64 // how much work ever came
	wake    chan struct{}
	ended   chan struct{}

	arena arena
}

func newCommitter(s *Store) *committer {
	return &committer{store: s, wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// do has fn run in a transaction and returns when that is on the disk. The end
// of ctx takes fn back as long as it has not begun.
func (c *committer) do(ctx context.Context, ops, volume int, fn func(*txn) error) error {
	if err := ctx.Err(); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	w := &work{do: fn, ops: ops, volume: volume, done: make(chan struct{})}
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

// run commits until the committer is closed and its queue is empty.
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
	c.arena.empty()
	fatal, err := c.transact(live)
	for _, w := range live {
		w.err = err
		close(w.done)
	}
	if fatal {
		c.abandon()
	}
	return !fatal
}

// transact is one transaction. An error that is not fatal means that nothing
// was changed.
func (c *committer) transact(live []*work) (fatal bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			fatal, err = true, c.fatal(fmt.Errorf("a page of the store cannot be used: %v\n%s", p, debug.Stack()))
		}
	}()
	s := c.store
	tx, err := s.db.Begin(true)
	if err != nil {
		return true, c.fatal(err)
	}
	t := &txn{store: s, tx: tx, at: s.instant(), arena: &c.arena, boards: map[*board]*boardTx{}}
	for _, w := range live {
		if err := w.do(t); err != nil {
			return false, unavailable(errors.Join(err, tx.Rollback()))
		}
	}
	for _, v := range t.boards {
		if err := v.finish(); err != nil {
			return false, unavailable(errors.Join(err, tx.Rollback()))
		}
	}
	if !t.wrote {
		return false, tx.Rollback()
	}
	if err := s.documents.sweep(t); err != nil {
		return false, unavailable(errors.Join(err, tx.Rollback()))
	}
	if err := s.saveBoot(t); err != nil {
		return false, unavailable(errors.Join(err, tx.Rollback()))
	}
	return c.seal(t)
}

// seal commits t and makes it visible. Nobody may begin to read in between:
// bbolt shows a transaction to readers before it is on the disk.
func (c *committer) seal(t *txn) (fatal bool, err error) {
	s := c.store
	before := t.tx.ID() - 1
	s.gate.Lock()
	defer s.gate.Unlock()
	if err := s.commit(t.tx); err != nil {
		if !c.undone(err, before) {
			return true, c.fatal(err)
		}
		s.logger.Warn("the store takes no change now", "path", s.folder.path, "error", err)
		return false, &job.Error{Kind: job.Unavailable, Message: "the disk has no room for this change", Err: err}
	}
	t.publish()
	return false, nil
}

// undone reports whether a commit that failed left nothing behind: the disk was
// full before its head was written. After a failed fsync nobody can tell, since
// the kernel may have forgotten what it could not write.
func (c *committer) undone(err error, before int) bool {
	var path *fs.PathError
	switch {
	case strings.HasPrefix(err.Error(), "file resize error"): // bbolt keeps no more than the text
	case errors.As(err, &path) && path.Op == "write" && isFull(err):
	default:
		return false
	}
	tx, err := c.store.db.Begin(false)
	if err != nil {
		return false
	}
	now := tx.ID()
	return tx.Rollback() == nil && now == before
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
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
