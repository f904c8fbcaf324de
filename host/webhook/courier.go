package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/sleep"
)

// Options say for which board a courier works.
type Options struct {
	Board      *board.Board
	Came       string                                                       // the move that brought it to its store; empty: none did
	Owner      string                                                       // of its claims, of this server alone
	Deliveries func(ctx context.Context, name string) (*board.Board, error) // finds a board of the tenant
	Logger     *slog.Logger
	Tally      *Tally // nil: nobody wants to know
}

// Courier does what one server has to for the webhooks of one board that it has open: it
// tells of what happens there, and sends the deliveries that are jobs there.
type Courier struct {
	o Options

	mu     sync.Mutex
	want   map[task]*Hook
	stands map[string]standing // of the tellers that have told everything, by the hook's key
	wake   chan struct{}
}

// task names one thing that is done for one hook.
type task struct {
	hook  string
	sends bool // else it tells
}

// New returns a courier that Run sets to work.
func New(o Options) *Courier {
	if o.Tally == nil {
		o.Tally = NewTally()
	}
	return &Courier{o: o, want: map[task]*Hook{}, stands: map[string]standing{}, wake: make(chan struct{}, 1)}
}

// Set says which hooks are told of the board, and of which the deliveries are jobs there. The
// deliveries of one that is paused are posted, and wait.
func (c *Courier) Set(tells, sends []Hook) {
	want := make(map[task]*Hook, len(tells)+len(sends))
	for i := range tells {
		want[task{tells[i].Key(), false}] = &tells[i]
	}
	for i := range sends {
		if sends[i].Paused {
			continue
		}
		want[task{sends[i].Key(), true}] = &sends[i]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want = want
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Courier) wanted() map[task]*Hook {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.want
}

// work is a task that is being done.
type work struct {
	hook *Hook
	stop context.CancelFunc
	done chan struct{}
}

// Run does what is to be done until ctx ends, and then gives back what is under way.
func (c *Courier) Run(ctx context.Context) {
	under := map[task]*work{}
	stop := func(t task, w *work) {
		w.stop()
		<-w.done
		delete(under, t)
	}
	for {
		want := c.wanted()
		for t, w := range under {
			if h := want[t]; h == nil || !h.equal(w.hook) {
				stop(t, w)
			}
		}
		for t, h := range want {
			if under[t] == nil {
				under[t] = c.begin(ctx, t, h)
			}
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			for t, w := range under {
				stop(t, w)
			}
			return
		}
	}
}

func (c *Courier) begin(ctx context.Context, t task, h *Hook) *work {
	ctx, cancel := context.WithCancel(ctx)
	w := &work{hook: h, stop: cancel, done: make(chan struct{})}
	log := c.o.Logger.With("webhook", h.Key())
	go func() {
		defer close(w.done)
		if t.sends {
			s := sender{hook: h, board: c.o.Board, owner: c.o.Owner, log: log, tally: c.o.Tally}
			s.run(ctx)
			return
		}
		find := func(ctx context.Context) (*board.Board, error) { return c.o.Deliveries(ctx, h.Deliveries) }
		teller := teller{hook: h, board: c.o.Board, came: c.o.Came, deliveries: find, log: log, tally: c.o.Tally}
		teller.stands = func(s *standing) { c.stand(h.Key(), s) }
		defer teller.stands(nil)
		defer c.o.Tally.fails(h.Key(), false)
		var trouble complaint
		for ctx.Err() == nil {
			began := time.Now()
			err := teller.session(ctx)
			c.o.Tally.fails(h.Key(), ctx.Err() == nil)
			if time.Since(began) > 3*pauseMost { // it was well for a while
				trouble.pause = 0
			}
			trouble.wait(ctx, log, "its board is followed", err)
		}
	}()
	return w
}

// complaint is a failure that lasts: it is logged when its text changes and at last every
// complaintMost, and there is a pause after it that grows.
type complaint struct {
	text  string
	next  time.Time
	pause time.Duration
}

// The pauses after failures, and how often one that lasts is logged.
const (
	pauseFirst    = 100 * time.Millisecond
	pauseMost     = 10 * time.Second
	complaintMost = 10 * time.Minute
)

func (c *complaint) wait(ctx context.Context, log *slog.Logger, what string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if now := time.Now(); err.Error() != c.text || now.After(c.next) {
		log.WarnContext(ctx, "a webhook stands still for now; nothing is left out", "what", what, "error", err)
		c.text, c.next = err.Error(), now.Add(complaintMost)
	}
	c.pause = min(max(2*c.pause, pauseFirst), pauseMost)
	_ = sleep.For(ctx, c.pause) // the end of ctx is seen by whoever waits
}
