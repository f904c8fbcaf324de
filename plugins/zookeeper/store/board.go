package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A board is one board that is open: what is known of its jobs, and the
// goroutine that follows what others do.
type board struct {
	store *Store
	name  string
	at    layout

	life    context.Context //nolint:containedctx // it ends the board's goroutines
	stop    context.CancelFunc
	running sync.WaitGroup
	ops     sync.WaitGroup // changes under way
	kick    chan struct{}  // something is to be done; holds one
	listing sync.Mutex     // one list of the folder at a time
	lists   atomic.Uint64  // how many were begun,
	listed  atomic.Uint64  // and which was the last that was read whole

	mu         sync.Mutex
	spec       driver.BoardSpec
	settings   boardSettings
	state      chan struct{} // closed when loaded or fault change
	loaded     bool
	loadedOnce bool   // everything was read at least once, so that what is missing is gone
	fault      error  // why the board is not loaded, as far as is known
	openers    int    // calls of OpenBoard under way: only for them a board is made that is not there
	loads      uint64 // how often everything that was read was forgotten, to be read anew
	root       root
	frozen     uint64               // the change that froze the board for a move; 0: it is not frozen
	rootEvent  <-chan session.Event // the watch of the root; nil: it has fired
	rootDue    bool                 // it has fired, and the root was not read since
	acl        []session.ACL
	earlier    logCount // how far the log was known before; zero: whoever opened the board was told since
	ends       logEnds  // entries that the log had last, before and now

	jobs  map[job.ID]*view
	names map[string]job.ID // of the postings' nodes
	bad   map[string]unread // nodes that cannot be read, and why
	other job.ID            // of a board that boardd alone is said to write: a job that another program changed
	late  string            // of a board that was left: what another program has ended since; empty: nothing is known
	tally tally
	past  past
	holds holdQueue

	horizon uint64          // the latest change that is known of
	lost    <-chan struct{} // closed when the session is lost whose watches the followers have
	folder  follower
	log     logFollower
	silence silence
	events  events
	hosts   hosts
	sweep   sweep
	seen    sightings

	limits   map[string]int64 // what each limit stands at, as far as is known
	counters counters
	rates    counters
	groups   counters
}

// A follower is how far one folder's changes are known.
type follower struct {
	upTo  uint64 // every change up to here is known
	event <-chan session.Event
	dirty bool          // something may have changed since the last list
	busy  bool          // a list is being made, or what is new in it is being read
	next  time.Time     // when it may be listed again
	cost  time.Duration // about what a list takes

	account
}

func newBoard(s *Store, name string, at layout) *board {
	b := &board{store: s, name: name, at: at, kick: make(chan struct{}, 1), state: make(chan struct{})}
	b.life, b.stop = context.WithCancel(s.life)
	b.counters.list, b.rates.list, b.groups.list = map[string]*counter{}, map[string]*counter{}, map[string]*counter{}
	b.events.max = s.options.Events
	b.events.changed = make(chan struct{})
	b.clear()
	return b
}

// clear forgets everything that was read.
func (b *board) clear() {
	b.remember()
	b.jobs, b.names, b.bad = map[job.ID]*view{}, map[string]job.ID{}, map[string]unread{}
	b.tally, b.past, b.holds, b.limits = tally{}, newPast(), nil, map[string]int64{}
	b.folder, b.log = follower{dirty: true}, logFollower{follower: follower{dirty: true}, ahead: map[int32]uint64{}}
	b.sweep, b.seen, b.loadedOnce = sweep{}, sightings{}, false
	b.loads++
}

// configure takes what OpenBoard says of the board; opened follows.
func (b *board) configure(spec driver.BoardSpec, settings boardSettings) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.openers++
	spec.Settings, spec.Witness = nil, nil
	other := spec.Window != b.spec.Window
	b.spec, b.settings = spec, settings
	if other { // everything is remembered for another time
		b.past.retention = newRetention()
		at := b.instant()
		for _, v := range b.jobs {
			b.past.note(v, at)
		}
	}
	b.wake()
}

// opened notes that a call of OpenBoard is over.
func (b *board) opened() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.openers--
}

// wake lets the board's goroutine look at what there is to do.
func (b *board) wake() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// setState says whether the board is loaded, or why not.
func (b *board) setState(loaded bool, fault error) {
	b.loaded, b.fault = loaded, fault
	close(b.state)
	b.state = make(chan struct{})
}

// patience is how long a call waits for a board that is being loaded anew.
const patience = 10 * time.Second

// ready waits until the board is loaded.
func (b *board) ready(ctx context.Context) error {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		b.mu.Lock()
		loaded, fault, state := b.loaded, b.fault, b.state
		b.mu.Unlock()
		if loaded {
			return nil
		}
		select {
		case <-state:
		case <-ctx.Done():
			return alive(ctx)
		case <-b.life.Done():
			return notOpen(b.name)
		case <-timeout.C:
			return &job.Error{Kind: job.Unavailable, Message: "the board cannot be read now", Err: fault}
		}
	}
}

// finish lets the changes that are under way finish, for a while.
func (b *board) finish() {
	done := make(chan struct{})
	go func() {
		b.ops.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
	}
}

// end ends the board's goroutines and waits for them.
func (b *board) end() {
	b.stop()
	b.running.Wait()
	b.ops.Wait()
}

func (b *board) now() instant {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.instant()
}

// instant reads the clocks. b.mu is held.
func (b *board) instant() instant {
	now := time.Now()
	return instant{mono: now, wall: b.store.clock.wall(now), generation: b.root.generation, offset: b.root.offset, window: b.spec.Window}
}

// known returns what is known of a job; nil: nothing.
func (b *board) known(id job.ID) *view {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.jobs[id]
}

// reached notes that a change is known of.
func (b *board) reached(zxid uint64) { b.horizon = max(b.horizon, zxid) }

func (b *board) client() *session.Client { return b.store.client }

// capabilities are what a board in ZooKeeper can do.
func (b *board) capabilities() driver.Capabilities {
	return driver.Capabilities{
		Encodings: []string{job.JSON.String()}, MaxDetails: MaxDetails, MaxRecord: MaxRecord, MaxBatch: 128, InFlight: 8,
		MaxCandidates: 256, MaxJobs: b.settings.MaxJobs, Limits: true, Attachments: true, Shared: true, Alone: !*b.settings.Foreign, ByteExact: true,
		AnswersClose: true, Endings: true, Timeouts: true, Keys: true, Rates: true, Groups: true, Imports: true, Moves: b.settings.unmovable(false) == nil, Empties: true,
	}
}

// Limits on what is kept of one job. All of it has to go through one request.
const (
	MaxDetails     = 512 << 10 // bytes of details
	MaxRecord      = 128 << 10 // bytes of each record
	MaxAttachments = 1024      // attached records of one job
	MaxStamps      = 64        // ops of one job that are remembered for retries
)
