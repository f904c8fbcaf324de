package board

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// Run opens the board on its driver, reads what is on it, follows what changes
// and ends claims whose lease ran out, until ctx ends; then it returns nil. It
// survives a store that goes away. It may run once.
func (b *Board) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel() // before the wait
	defer b.order.close()
	group.Go(func() { b.expireForever(ctx) })
	group.Go(func() { b.followSettings(ctx) })
	group.Go(func() { b.releaseForever(ctx) })
	group.Go(func() { b.sampleForever(ctx) })
	if !b.spec.Observe {
		group.Go(func() { b.tickForever(ctx) })
		group.Go(func() { b.keepBatches(ctx) })
		group.Go(func() { b.takeInForever(ctx) })
	}
	group.Go(func() { b.order.run(ctx) })

	f := follower{board: b, inherited: b.inherited}
	var wait backoff
	var trouble complaint
	for ctx.Err() == nil {
		began := time.Now()
		err := f.session(ctx, &wait)
		if ctx.Err() != nil {
			break
		}
		b.readiness.broke(err)
		if time.Since(began) > time.Minute {
			wait.wait, trouble = 0, complaint{} // it was well for a while
		}
		if trouble.due(reason(err), time.Now()) {
			b.log.Warn("the board lost its store and tries again", "error", reason(err))
		}
		if sleep.For(ctx, wait.next()) != nil {
			break
		}
	}
	b.readiness.shut("the board is closed")
	return nil
}

// complaint is a problem that lasts. It is logged when its text changes, and again
// after pauses that grow, so that the log does not fill with repetitions.
type complaint struct {
	text string
	next time.Time
	wait time.Duration
}

// due reports whether text is to be logged now.
func (c *complaint) due(text string, now time.Time) bool {
	if text == c.text && now.Before(c.next) {
		return false
	}
	c.wait = min(2*c.wait, complaintMost)
	if text != c.text {
		c.wait = complaintFirst
	}
	c.text, c.next = text, now.Add(c.wait)
	return true
}

// The first and the longest pause before the same problem is logged again.
const (
	complaintFirst = 30 * time.Second
	complaintMost  = time.Hour
)

func reason(err error) string {
	if err == nil {
		return "the driver ended its stream of changes"
	}
	return err.Error()
}

// follower is what Run knows from one session with the driver to the next.
type follower struct {
	board    *Board
	status   driver.BoardStatus
	asked    time.Time       // when the driver said so
	position driver.Position // up to which everything was followed

	generation uint64 // of the store that the index was loaded from; 0: it never was

	unwritten *loss // a loss that the driver reported, and that is not written down yet

	mu        sync.Mutex
	loaded    bool // the index holds everything up to position
	inherited bool // the index has what another board had, and was never loaded
}

func (f *follower) setLoaded(loaded bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded, f.inherited = loaded, f.inherited && !loaded
}

// inherits reports whether the board can serve before the index is loaded. The generation may
// change meanwhile: that is what ends a move.
func (f *follower) inherits() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inherited
}

func (f *follower) isLoaded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loaded
}

// session opens the board and follows it until the stream breaks.
func (f *follower) session(ctx context.Context, wait *backoff) error {
	if err := f.open(ctx); err != nil {
		f.board.readiness.shut(reason(err))
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	stop := func() {}
	defer func() { stop() }()
	switch {
	case f.generation != f.status.Generation:
		inherits := f.inherits()
		if !inherits {
			f.board.readiness.shut("the board is being loaded")
		}
		stop = f.load(ctx, f.board.index.Reset(), f.status.Position, end)
		if inherits {
			f.board.readiness.open(f.status)
		}
	case !f.isLoaded():
		stop = f.load(ctx, f.board.index.Sync(), f.status.Position, end)
	default:
		f.board.readiness.open(f.status)
	}
	for changes, err := range f.board.driver.Watch(ctx, f.board.spec.Key, f.position) {
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause // the load failed
			}
			return err
		}
		if changes.Resync {
			f.board.log.Info("the board reads everything again: its place in the changes is not known any more")
			stop()
			stop = f.load(ctx, f.board.index.Sync(), changes.Position, end)
		}
		if changes.Inbox {
			rouse(f.board.intake)
		}
		f.follow(ctx, &changes)
		f.position = max(f.position, changes.Position)
		if err := f.refresh(ctx); err != nil {
			return err
		}
		wait.wait = 0
	}
	return context.Cause(ctx)
}

// open opens the board on the driver and learns whether it is paused, and which losses
// nobody has acknowledged yet.
func (f *follower) open(ctx context.Context) error {
	if err := f.ask(ctx); err != nil {
		return err
	}
	return f.board.readSettings(ctx)
}

// ask has the driver open the board and say how it stands.
func (f *follower) ask(ctx context.Context) error {
	status, err := f.board.driver.OpenBoard(ctx, driver.BoardSpec{
		Name: f.board.spec.Key, Settings: f.board.spec.Settings, Window: f.board.spec.Window,
		MaxTombstones: driver.DefaultMaxTombstones, MaxFinals: f.board.spec.HistoryEntries, MaxFinalBytes: f.board.spec.HistoryBytes,
		Observe: f.board.spec.Observe, Witness: f.status.Witness,
	})
	if err != nil {
		return err
	}
	if before := f.status.Generation; before != 0 && before != status.Generation {
		f.board.settingsAnew()
		f.board.scheduler.declareAnew()
	}
	f.status, f.asked = status, time.Now()
	if status.Loss != "" {
		f.board.log.Error("the store has lost, or may have lost, changes that it had acknowledged", "loss", status.Loss, "generation", status.Generation)
		f.unwritten = &loss{Generation: status.Generation, At: f.asked.UTC(), Text: cleanReason(status.Loss)}
	}
	if f.unwritten == nil {
		return nil
	}
	if err := f.board.reportLoss(ctx, *f.unwritten); err != nil {
		return err
	}
	f.unwritten = nil
	return nil
}

// refreshTime is how often a board that changes is opened again, so that the status
// that the host remembers of it is about as recent: a store that was restored from a
// backup is noticed by comparing it with what the host remembers.
const refreshTime = time.Minute

// refresh opens the board again when it is time to. A generation that is new
// ends the session, so that everything is read again.
func (f *follower) refresh(ctx context.Context) error {
	if time.Since(f.asked) < refreshTime || !f.isLoaded() {
		return nil
	}
	if err := f.ask(ctx); err != nil {
		return err
	}
	if f.status.Generation != f.generation {
		f.board.readiness.shut("the board is being loaded")
		return job.Errorf(job.Unavailable, "the board has a new generation")
	}
	f.board.readiness.open(f.status)
	return nil
}

// load begins to read the open jobs into the index, beside the watch that goes
// on from the position, and lets the board serve when it is done. The watch goes on
// meanwhile because a busy board may change more during the read than its store
// remembers. An error goes to failed. stop ends the load and waits for it.
func (f *follower) load(ctx context.Context, into *index.Sync, position driver.Position, failed func(error)) (stop func()) {
	f.setLoaded(false)
	f.board.metrics.Loads.Add(1)
	f.position, f.generation = position, f.status.Generation
	f.board.leaving.clear()
	f.board.restartRecording(position)
	f.board.hub.restart(f.status.Generation, position)
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	status := f.status
	group.Go(func() {
		at, err := f.scan(ctx, position)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			failed(err)
		default:
			into.End(at)
			f.setLoaded(true)
			f.board.readiness.open(status)
			f.board.waiting.all()
			f.board.logs.lost()
			f.board.compareHands()
		}
	})
	return func() {
		cancel()
		group.Wait()
	}
}

// scan puts all open jobs into the index and returns the position as of which
// they are all.
func (f *follower) scan(ctx context.Context, position driver.Position) (driver.Position, error) {
	first := true
	for page, err := range f.board.driver.Scan(ctx, f.board.spec.Key, driver.ScanRequest{Set: driver.OpenJobs, Parts: f.board.factParts()}) {
		if err != nil {
			return 0, err
		}
		if first {
			position, first = page.Position, false
		}
		for _, bad := range page.Bad {
			f.board.metrics.BadRecords.Add(1)
			f.board.log.Warn("something in the store cannot be read as a job; it is left as it is", "key", bad.Key, "problem", bad.Problem)
		}
		records := make([]*driver.Record, 0, len(page.Records))
		for i := range page.Records {
			if isOpen(page.Records[i].State) {
				f.board.learnFacts(&page.Records[i].Posting, page.Records[i].Posting.Sequence)
				records = append(records, &page.Records[i])
			}
		}
		f.board.absorb(records...)
	}
	return position, ctx.Err()
}
