package plugin

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

const (
	execTimeout = 30 * time.Second // what a driver gets for a batch whose callers give no deadline
	execGrace   = 5 * time.Second  // beyond a batch's timeout; then the driver counts as hung
)

// An executor gathers ops of many callers into batches. A board with room for
// another batch sends at once; otherwise its ops wait until an answer comes.
// There is no timer, so that a lone call waits for nobody.
type executor struct {
	link  link
	fault func(error) // the driver broke the contract or hangs
	wake  chan struct{}
	done  chan struct{} // closed with the first failure
	loops sync.WaitGroup

	mu      sync.Mutex
	lanes   map[string]*lane
	ready   []*lane // lanes that may have something to send, each once
	flights map[uint64]*flight
	seq     uint64
	watched bool       // a timer for the oldest flight is set
	broken  *job.Error // not nil: nothing is sent any more
}

// A link takes batches to a driver and gives what comes back to deliver or lose.
type link interface {
	send(seq uint64, f *frame) error
	close()
}

// A lane is the queue of one board's ops, and what of it is in flight. Its fields are
// guarded by executor.mu.
type lane struct {
	board    string
	window   int // batches that may be in flight
	maxBatch int // ops in one of them
	inFlight int
	queued   bool // in executor.ready
	pending  []*item
	busy     map[job.ID]struct{} // jobs with an op in flight
}

// An item is one op on its way. Its state is guarded by executor.mu.
type item struct {
	call  *pendingCall
	index int
	data  []byte   // the encoded op, without a tag
	job   job.ID   // what it touches, or
	jobs  []job.ID // for a claim, all its candidates
	group *group   // once it was sent
	done  bool
	parts wire.ResultJoiner // only used by the goroutine that receives
}

// A flight is a batch that was sent. It is guarded by executor.mu.
type flight struct {
	items    []*item // by tag - 1
	groups   []*group
	left     int
	deadline time.Time
}

// A group is a board's share of a flight. It is guarded by executor.mu.
type group struct {
	lane  *lane
	items []*item
	size  int // of their data
	left  int
}

// A pendingCall is one Apply that waits.
type pendingCall struct {
	results   []driver.Result
	left      int
	gone      bool // nobody waits any more
	deadline  time.Time
	completed chan struct{}
}

var callPool = sync.Pool{New: func() any { return &pendingCall{completed: make(chan struct{}, 1)} }}

func newExecutor(fault func(error)) *executor {
	return &executor{
		fault: fault, wake: make(chan struct{}, 1), done: make(chan struct{}),
		lanes: make(map[string]*lane), flights: make(map[uint64]*flight),
	}
}

// start sends over link until close.
func (e *executor) start(l link) {
	e.link = l
	e.loops.Go(e.run)
}

// close fails what is under way and waits for everything that start began.
func (e *executor) close() {
	e.fail("the driver is closed")
	e.link.close()
	e.loops.Wait()
}

// open sets a board's limits.
func (e *executor) open(board string, c driver.Capabilities) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lane(board)
	l.window, l.maxBatch = defaultInFlight, defaultBatchOps
	if c.InFlight > 0 {
		l.window = min(c.InFlight, maxInFlight)
	}
	if c.MaxBatch > 0 {
		l.maxBatch = min(c.MaxBatch, maxBatchOps)
	}
}

// drop forgets a board that nobody uses.
func (e *executor) drop(board string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.lanes[board]; l != nil && l.inFlight == 0 && len(l.pending) == 0 && !l.queued {
		delete(e.lanes, board)
	}
}

// lane returns a board's lane, which it makes if there is none. The caller holds e.mu.
func (e *executor) lane(board string) *lane {
	l := e.lanes[board]
	if l == nil {
		l = &lane{board: board, window: defaultInFlight, maxBatch: defaultBatchOps, busy: make(map[job.ID]struct{})}
		e.lanes[board] = l
	}
	return l
}

// apply queues ops and waits for their results.
func (e *executor) apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	if err := ctx.Err(); err != nil {
		return allFailed(len(ops), &job.Error{Kind: job.Interrupted, Err: context.Cause(ctx)})
	}
	c := callPool.Get().(*pendingCall)
	c.results = make([]driver.Result, len(ops))
	c.deadline, _ = ctx.Deadline()
	items := encode(c, ops)
	if len(items) == 0 {
		return c.results
	}
	if !e.enqueue(board, c, items) {
		return c.results
	}
	results := c.results
	select {
	case <-c.completed:
		c.results, c.left = nil, 0
		callPool.Put(c) // nobody looks at a call after its last result
	case <-ctx.Done():
		e.abandon(ctx, c, items)
	}
	e.verify(ops, results)
	return results
}

// enqueue reports whether there is something to wait for.
func (e *executor) enqueue(board string, c *pendingCall, items []item) bool {
	e.mu.Lock()
	if e.broken != nil {
		for i := range items {
			c.results[items[i].index] = driver.Failed(e.broken)
		}
		e.mu.Unlock()
		return false
	}
	c.left = len(items)
	l := e.lane(board)
	for i := range items {
		l.pending = append(l.pending, &items[i])
	}
	sends := e.offer(l)
	e.mu.Unlock()
	if sends {
		e.wakeSender()
	}
	return true
}

// offer puts a lane that may send onto the list of those. The caller has e.mu.
func (e *executor) offer(l *lane) bool {
	if l.inFlight >= l.window || len(l.pending) == 0 {
		return false
	}
	if !l.queued {
		l.queued = true
		e.ready = append(e.ready, l)
	}
	return true
}

func (e *executor) wakeSender() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// run is the one goroutine that sends.
func (e *executor) run() {
	for {
		select {
		case <-e.wake:
		case <-e.done:
			return
		}
		runtime.Gosched() // callers whom the last answer woke join this batch
		for {
			seq, batch := e.take()
			if batch == nil {
				break
			}
			failpoint.Hit("plugin/host/before-send")
			if err := e.link.send(seq, batch); err != nil {
				break // whoever receives learns why
			}
			failpoint.Hit("plugin/host/after-send")
		}
	}
}

// abandon gives up a call whose context ended. Ops that were not sent are Interrupted;
// those that were sent are OutcomeUnknown.
func (e *executor) abandon(ctx context.Context, c *pendingCall, items []item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.gone = true
	for i := range items {
		it := &items[i]
		switch {
		case it.done:
		case it.group != nil:
			c.results[it.index] = driver.Failed(&job.Error{
				Kind: job.OutcomeUnknown, Message: "the driver did not answer in time", Err: context.Cause(ctx),
			})
		default:
			it.done = true
			c.results[it.index] = driver.Failed(&job.Error{Kind: job.Interrupted, Err: context.Cause(ctx)})
		}
	}
}

// verify checks the driver's answers on the caller's goroutine, not on the receiving one.
func (e *executor) verify(ops []driver.Op, results []driver.Result) {
	for i := range ops {
		if err := checkResult(&ops[i], &results[i]); err != nil {
			e.fault(err)
			results[i] = driver.Failed(job.Errorf(job.OutcomeUnknown, "the driver's answer is wrong: %v", err))
		}
	}
}
