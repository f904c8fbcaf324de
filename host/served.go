package host

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/binding"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/quota"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// How many boards of a store occupy their places at once, which they do together, how many are
// opened on the whole host, and how long one may keep the others waiting.
const (
	occupyingAtOnce = 256
	openingAtOnce   = 8
	openingTime     = 10 * time.Second
)

// Hosted is one board that the host serves, with one set of settings.
type Hosted struct {
	config  *config.Board // is not changed; often the catalog's record
	host    *Host
	backend *backend
	quota   *quota.Board

	tried     latch // closed when there is a board, or a problem
	board     atomic.Pointer[board.Board]
	inForce   atomic.Pointer[binding.InForce]  // what the board asks
	schedules atomic.Pointer[[]board.Schedule] // that are declared; they change while it is served
	hooks     atomic.Pointer[hooks]            // likewise
	courier   atomic.Pointer[webhook.Courier]  // of board
	told      *webhook.Tally                   // of its couriers
	problem   atomic.Pointer[string]           // why there is no board
	gone      atomic.Bool                      // the catalog, or the configuration, does not have it any more
	serves    atomic.Bool                      // it says in its store that this host serves it, or is about to
	refused   atomic.Bool                      // the problem is not that its store cannot be reached
	entry     openSlot                         // for its place
	turn      openSlot                         // for its opening

	begin     beginning    // it is to be opened, or rests; on a host that serves alone at once
	wake      beginning    // then: it is opened
	sleeps    sleeper      // while it rests
	handed    atomic.Int64 // when its owner was first seen to have it open, in Unix nanoseconds; 0: not yet
	used      atomic.Int64 // when somebody last called it here, likewise
	warmUntil atomic.Int64 // it stays open so long although it is another server's, likewise
	place     placing      // only the review of the fleet uses it

	since   atomic.Int64           // when it was opened, in Unix nanoseconds
	called  latch                  // closed when a board that rests is to be opened
	resting atomic.Pointer[rested] // while it rests
	slept   atomic.Pointer[rested] // as it last rested; nil: it did not, since it is served
	calls   atomic.Int64           // that are under way here
	pages   atomic.Int64           // that show it here: each is a call, too
	before  chan struct{}          // of one in whose place another one was open: closed when it is known whether it rests

	life life                   // ends, with the reason that callers are told, when the board is taken away
	done latch                  // closed when the board has ended
	next atomic.Pointer[Hosted] // what takes its place as soon as it is open

	movedFrom atomic.Pointer[Hosted] // what it takes the place of, on another backend; nil once it is opened
	replaced  atomic.Pointer[Hosted] // what it took the place of, and calls may still be on
}

func (h *Host) newServed(c config.Board) *Hosted {
	b := h.backend(c.Backend)
	s := &Hosted{
		config: h.sharedConfig(c), host: h, backend: b, told: webhook.NewTally(),
	}
	if h.fleet == nil {
		s.ask()
	}
	s.schedules.Store(&s.config.Schedules)
	s.hooks.Store(h.hooksOf(c).shared())
	s.quota = h.quotas.NewBoard(quota.Spec{Tenant: c.Tenant, Name: c.Name, Limits: &s.config.Limits, Standing: standing{s}})
	return s
}

// sharedConfig returns the settings of a board that is to be served: as the catalog has them, where
// these are the same, so that most boards of many have no copy.
func (h *Host) sharedConfig(c config.Board) *config.Board {
	kept := h.catalog.view().Boards.Ref(directory.At(c))
	if kept != nil && sameBoard(kept.Board, c) && kept.Limits == c.Limits && len(c.Schedules)+len(c.Webhooks) == 0 {
		return &kept.Board
	}
	own := c // so that c itself need not be on the heap
	return &own
}

// running returns the context of the board, which ends when the board is taken away, with the
// reason that callers are told, or with the host.
func (s *Hosted) running() context.Context { return s.life.within(s.host.running) }

// over reports whether the board was taken away, or the host ends.
func (s *Hosted) over() bool { return s.life.ended() || s.host.running.Err() != nil }

// stop takes the board away.
func (s *Hosted) stop(cause error) {
	s.life.end(cause)
	if before := s.replaced.Swap(nil); before != nil {
		before.stop(cause)
	}
	s.begin.never(s.done.close)
	s.wake.never(func() {
		s.host.sleepers.remove(s)
		s.done.close()
	})
}

// standing is the board for what counts what it uses.
type standing struct{ s *Hosted }

// Ready reports whether the board is open.
func (b standing) Ready() bool { return b.s.open() }

// Running is the board's context.
func (b standing) Running() context.Context { return b.s.running() }

// Rests returns what the board had when it was closed; nil: it was not.
func (b standing) Rests() *driver.Counts {
	if r := b.s.slept.Load(); r != nil {
		return r.used()
	}
	return nil
}

// logger is made when something is to be logged: most boards of a fleet are another server's.
func (s *Hosted) logger() *slog.Logger {
	return s.host.logger.With("tenant", s.config.Tenant, "board", s.config.Name)
}

// Config returns the board's settings.
func (s *Hosted) Config() config.Board { return *s.config }

// declare gives the board the schedules that are declared now.
func (s *Hosted) declare(schedules []board.Schedule) {
	s.schedules.Store(&schedules)
	if b := s.board.Load(); b != nil {
		b.SetSchedules(schedules)
	}
}

// latest is the board itself, or what is to take its place.
func (s *Hosted) latest() *Hosted {
	for next := s.next.Load(); next != nil; next = s.next.Load() {
		s = next
	}
	return s
}

// opened waits until the board can serve, for a while.
func (s *Hosted) opened(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	select {
	case <-s.tried.done():
	case <-ctx.Done():
		return
	}
	if b := s.board.Load(); b != nil {
		_ = b.Ready(ctx) // or not: then its callers are told
	}
}

// succeeds does so where a board that is open takes calls meanwhile: then the first try need not
// be the last one. Other hosts that hear of new settings a moment later still serve the board as
// it was, which refuses it here until they do not.
func (s *Hosted) succeeds(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	for s.opened(ctx); s.board.Load() == nil && !s.over(); s.opened(ctx) {
		if sleep.For(ctx, firstPause/4) != nil {
			return
		}
	}
}

// retire ends a board that another one has replaced, after binding.RetireAfter. Calls that
// are still under way then are told to ask again.
func (s *Hosted) retire(ctx context.Context) {
	_ = sleep.For(ctx, binding.RetireAfter)
	s.stop(settingsChanged(s.config.Name))
}

func settingsChanged(name string) *Ended {
	return &Ended{job.Errorf(job.Unavailable, "the settings of the board %s were changed: ask again", name)}
}

// Ended is the cause of a call's end that is not the caller's doing: the token
// or the board is gone.
type Ended struct{ Err error }

// Error returns the reason.
func (e *Ended) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *Ended) Unwrap() error { return e.Err }

var errStopped = &Ended{job.Errorf(job.Unavailable, "the server is shutting down: ask again")}

// run opens the board when it is its turn, and keeps it open.
func (s *Hosted) run(ctx context.Context, h *Host) {
	if ctx.Err() != nil { // perhaps before its backend had started
		return
	}
	s.resting.Store(nil)
	r := s.backend.running.Load()
	if err := h.Settings().SettingsError("board", s.key(), r.info.Board.Check(s.config.Settings)); err != nil {
		s.fail(err)
		return
	}
	defer s.leave(h)
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		h.catalog.await(ctx)
		s.identify(h) // before anything is learned of it
		err := s.rouse(ctx, h)
		if err == nil {
			if s.backend.occupying.enter(ctx, &s.entry) != nil {
				return
			}
			err = s.occupy(ctx, h)
			s.backend.occupying.leave()
		}
		if err == nil {
			if h.opening.enter(ctx, &s.turn) != nil {
				return
			}
			err = s.serve(ctx, h, r)
		}
		if ctx.Err() != nil {
			return
		}
		s.fail(err, "again_in", pause)
		if sleep.For(ctx, pause) != nil {
			return
		}
	}
}

// serve runs the board until ctx ends or the board gives up. It gives the turn
// back as soon as the board is open.
func (s *Hosted) serve(ctx context.Context, h *Host, r *running) error {
	rules, err := h.policies.Board(ctx, h.Settings(), *s.config)
	if err != nil {
		h.opening.leave()
		return err
	}
	defer func() { _ = rules.Close() }() // after the board, which asks them
	spec := s.spec()
	if r := s.slept.Load(); r != nil {
		spec.Slept = board.Slept{Since: r.Since, Counts: *r.counts()}
	}
	spec.Rules, spec.Books = rules.Rules(), h.booksOf(*s.config)
	recorder, record, stop := s.recorder(h)
	defer stop() // after the board, too
	spec.Recorder = recorder
	b := board.New(s.quota.Through(r.driver), spec)
	came := s.arrived(h, b)
	record(b)
	rules.Serve(binding.Serving{Board: b, Logger: s.logger(), Running: h.running, Go: h.registry.leaving.Go})
	s.inForce.Store(rules)
	s.redeploy(h) // before anybody can ask the board
	s.board.Store(b)
	s.since.Store(time.Now().UnixNano())
	b.SetSchedules(*s.schedules.Load())
	s.problem.Store(nil)
	s.tried.close()
	var opening sync.WaitGroup
	opening.Go(func() {
		defer h.opening.leave()
		ctx, cancel := context.WithTimeout(ctx, openingTime)
		defer cancel()
		switch err := b.Ready(ctx); {
		case err == nil:
			s.backend.opened.Store(int64(time.Since(h.ready.began)))
		case ctx.Err() == nil:
			s.logger().Warn("the board does not open yet", "error", err)
		}
	})
	defer opening.Wait()
	return s.carry(ctx, h, b, came)
}

// identity returns the ID of the catalog's record of the board, and that of the move which brought
// it to its backend; of what there is none, it is empty.
func (s *Hosted) identity(h *Host) (id, move string) {
	v, ok := h.Directory().View.Boards.Get(s.at())
	if ok && v.Move.BroughtTo(s.config.Backend) {
		move = v.Move.ID
	}
	return v.ID, move
}

// identify has what is remembered of another board of the name forgotten: of one that was deleted,
// or from before the board left the backend to which a move has brought it since.
func (s *Hosted) identify(h *Host) {
	id, move := s.identity(h)
	if id != "" {
		s.backend.known.Made(s.key(), id)
	}
	if move != "" {
		s.backend.known.Came(s.key(), move)
	}
}

// arrived returns the move by which the board came to its backend, if one brought it there. b
// inherits from the board in the store that it left.
func (s *Hosted) arrived(h *Host, b *board.Board) (move string) {
	left := s.movedFrom.Swap(nil)
	_, move = s.identity(h)
	if move == "" || left == nil {
		return move
	}
	v, _ := h.Directory().View.Boards.Get(s.at())
	if left.config.Backend == v.Move.From.Backend {
		if before := left.board.Load(); before != nil {
			b.Inherit(before)
		}
	}
	return move
}

// recorder returns what records the board, if its settings say so, what takes the
// board as soon as there is one, and what ends it.
func (s *Hosted) recorder(h *Host) (r board.Recorder, take func(recording.Standing), stop func()) {
	at := s.at()
	if s.config.Record <= 0 {
		h.recordings.forget(at)
		return nil, func(recording.Standing) {}, func() {}
	}
	log, stop := h.recordings.open(at, s.config.Record)
	if log == nil {
		return nil, func(recording.Standing) {}, stop
	}
	r, take = log.Source()
	return r, take, stop
}

// outdated reports whether a board was given other policies than it asks.
func (s *Hosted) outdated(h *Host) bool {
	r := s.inForce.Load()
	return r != nil && r.Outdated(h.Directory().Deployment(*s.config))
}

// redeploy has the board ask the policies that it was given through the API, besides
// those of the configuration.
func (s *Hosted) redeploy(h *Host) {
	switch r := s.inForce.Load(); {
	case r == nil:
	case h.catalog.unread():
		r.Unread()
	default:
		r.Deploy(func() catalog.Deployment { return h.Directory().Deployment(*s.config) })
	}
}

// at is which board of the catalog it is.
func (s *Hosted) at() catalog.At { return catalog.At{Tenant: s.config.Tenant, Name: s.config.Name} }

// key is the board's name as its driver gets it.
func (s *Hosted) key() string { return s.config.Tenant + "/" + s.config.Name }

func (s *Hosted) spec() board.Spec {
	c := s.config
	return board.Spec{
		Name: c.Name, Key: s.key(), Settings: c.Settings,
		FenceByOwner: c.FenceByOwner, Observe: c.Observe,
		Lease: c.Lease, MaxLease: c.MaxLease, AllowNoExpiry: c.AllowNoExpiry, Window: c.IdempotencyWindow, History: c.History,
		Retry:  board.Retry{MaxAttempts: c.Retry.MaxAttempts, Backoff: c.Retry.Backoff, MaxBackoff: c.Retry.MaxBackoff},
		Logger: s.logger(),
		Full:   s.quota.Full,
		Wakes:  s.backend.running.Load().waker != nil,
	}
}

// fail logs and keeps why the board is not served; more goes into the log.
func (s *Hosted) fail(err error, more ...any) {
	text := "it ended by itself"
	if err != nil {
		text = err.Error()
	}
	s.logger().With(more...).Error("the board is not served", "error", text)
	s.problem.Store(&text)
	s.refused.Store(!away(err))
	s.tried.close()
}

// hurry moves a board to the front of those that are to be opened.
func (h *Host) hurry(s *Hosted) {
	s.backend.occupying.first(&s.entry)
	h.opening.first(&s.turn)
}

// wait returns the board as soon as there is one, which may itself still be
// opening. It moves the board to the front of those that are to be opened.
func (s *Hosted) wait(ctx context.Context, h *Host) (*board.Board, error) {
	if b := s.board.Load(); b != nil {
		return b, nil
	}
	s.ask()
	s.call()
	h.hurry(s)
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	select {
	case <-s.backend.tried:
	case <-ctx.Done():
	}
	if s.backend.running.Load() != nil {
		select {
		case <-s.tried.done():
		case <-ctx.Done():
		}
	}
	if b := s.board.Load(); b != nil {
		return b, nil
	}
	return nil, &job.Error{Kind: job.Unavailable, Message: "board " + s.config.Name + " cannot be served now: " + s.trouble()}
}

// trouble says in a way that is fit for clients why there is no board yet; the
// log says more.
func (s *Hosted) trouble() string {
	switch {
	case s.problem.Load() != nil:
		return "it could not be opened; the server's log says why"
	case s.backend.problem.Load() != nil:
		return "the driver of its store could not be started; the server's log says why"
	}
	return "it is still being opened"
}
