package host

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// How many boards are opened at once, and how long one may keep the others
// waiting.
const (
	openingAtOnce = 8
	openingTime   = 10 * time.Second
)

// hosted is one board that is hosted, with one set of settings.
type hosted struct {
	config  config.Board
	backend *backend
	logger  *slog.Logger
	limits  atomic.Pointer[config.Limits] // the present ones, in place of config's
	meter   meter
	metered atomic.Pointer[metered] // nil before the board is opened

	tried   chan struct{} // closed when there is a board, or a problem
	once    sync.Once
	board   atomic.Pointer[board.Board]
	inForce atomic.Pointer[policyInForce] // what the board asks
	problem atomic.Pointer[string]        // why there is none
	refused atomic.Bool                   // and that does not lie in whether its store answers
	turn    openSlot

	running context.Context //nolint:containedctx // ends, with the reason that callers are told, when the board is taken away
	stop    context.CancelCauseFunc
	done    chan struct{}          // closed when the board has ended
	next    atomic.Pointer[hosted] // what takes its place as soon as it is open
}

func (h *Host) newServed(c config.Board) *hosted {
	b := h.backend(c.Backend)
	s := &hosted{
		config: c, backend: b, logger: h.logger.With("tenant", c.Tenant, "board", c.Name),
		tried: make(chan struct{}), done: make(chan struct{}),
	}
	s.limits.Store(&c.Limits)
	s.running, s.stop = context.WithCancelCause(h.running)
	return s
}

// latest is the board itself, or what is to take its place.
func (s *hosted) latest() *hosted {
	for next := s.next.Load(); next != nil; next = s.next.Load() {
		s = next
	}
	return s
}

// opened waits until the board can serve, for a while.
func (s *hosted) opened(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	select {
	case <-s.tried:
	case <-ctx.Done():
		return
	}
	if b := s.board.Load(); b != nil {
		_ = b.Ready(ctx) // or not: then its callers are told
	}
}

// retireAfter is how long calls on a board with old settings may go on.
const retireAfter = board.MaxWait + 5*time.Second

// retire ends the board once nobody can be left who minds.
func (s *hosted) retire(ctx context.Context) {
	_ = sleep.For(ctx, retireAfter)
	s.stop(&Ended{job.Errorf(job.Unavailable, "the settings of the board %s were changed: ask again", s.config.Name)})
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
func (s *hosted) run(ctx context.Context, h *Host) {
	select {
	case <-s.backend.started:
	case <-ctx.Done():
		return
	}
	r := s.backend.running.Load()
	if err := settingsError(h.Settings(), "board", s.key(), r.info.Board.Check(s.config.Settings)); err != nil {
		s.fail(err)
		return
	}
	defer s.leave(h)
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		err := s.occupy(ctx, h) // outside the line, so that many boards can do so together
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
func (s *hosted) serve(ctx context.Context, h *Host, r *running) error {
	h.catalog.await(ctx)
	rules, err := h.bindBoard(ctx, h.Settings(), s.config)
	if err != nil {
		h.opening.leave()
		return err
	}
	defer func() { _ = rules.end() }() // after the board, which asks them
	m := &metered{Driver: r.driver, host: h, served: s}
	s.metered.Store(m)
	spec := s.spec()
	spec.Rules, spec.Books = rules.rules, h.booksOf(s.config)
	recorder, record, stop := s.recorder(h)
	defer stop() // after the board, too
	spec.Recorder = recorder
	b := board.New(m, spec)
	record(b)
	s.rule(h, b, rules) // before anybody can ask the board
	s.board.Store(b)
	s.problem.Store(nil)
	s.once.Do(func() { close(s.tried) })
	var opening sync.WaitGroup
	opening.Go(func() {
		defer h.opening.leave()
		ctx, cancel := context.WithTimeout(ctx, openingTime)
		defer cancel()
		if err := b.Ready(ctx); err != nil && ctx.Err() == nil {
			s.logger.Warn("the board does not open yet", "error", err)
		}
	})
	defer opening.Wait()
	return b.Run(ctx)
}

// recorder returns what records the board, if its settings say so, what takes the
// board as soon as there is one, and what ends it.
func (s *hosted) recorder(h *Host) (r board.Recorder, take func(recording.Standing), stop func()) {
	at := At{s.config.Tenant, s.config.Name}
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

// key is the board's name as its driver gets it.
func (s *hosted) key() string { return s.config.Tenant + "/" + s.config.Name }

func (s *hosted) spec() board.Spec {
	c := s.config
	return board.Spec{
		Name: c.Name, Key: s.key(), Settings: c.Settings,
		FenceByOwner: c.FenceByOwner, Observe: c.Observe,
		Lease: c.Lease, MaxLease: c.MaxLease, AllowNoExpiry: c.AllowNoExpiry, Window: c.IdempotencyWindow, History: c.History,
		Retry:  board.Retry{MaxAttempts: c.Retry.MaxAttempts, Backoff: c.Retry.Backoff, MaxBackoff: c.Retry.MaxBackoff},
		Logger: s.logger,
	}
}

// fail logs and keeps why the board is not served; more goes into the log.
func (s *hosted) fail(err error, more ...any) {
	text := "it ended by itself"
	if err != nil {
		text = err.Error()
	}
	s.logger.With(more...).Error("the board is not served", "error", text)
	s.problem.Store(&text)
	s.refused.Store(!away(err))
	s.once.Do(func() { close(s.tried) })
}

// wait returns the board as soon as there is one, which may itself still be
// opening. It moves the board to the front of the line.
func (s *hosted) wait(ctx context.Context, l *openLimiter) (*board.Board, error) {
	if b := s.board.Load(); b != nil {
		return b, nil
	}
	l.first(&s.turn)
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	select {
	case <-s.backend.tried:
	case <-ctx.Done():
	}
	if s.backend.running.Load() != nil {
		select {
		case <-s.tried:
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
func (s *hosted) trouble() string {
	switch {
	case s.problem.Load() != nil:
		return "it could not be opened; the server's log says why"
	case s.backend.problem.Load() != nil:
		return "the driver of its store could not be started; the server's log says why"
	}
	return "it is still being opened"
}

// Served is a board as its users see it.
type Served struct {
	Config config.Board
	Limits config.Limits // the present ones
	Driver string
	Status board.Status

	Promoted []catalog.Deployed // policies that the board asks besides those of its settings
}

func (s *hosted) describe() Served {
	d := Served{Config: s.config, Limits: *s.limits.Load(), Driver: s.backend.config.Driver}
	if b := s.board.Load(); b != nil {
		d.Status = b.Status()
	}
	if !d.Status.Ready && d.Status.Problem == "" {
		d.Status.Problem = s.trouble()
	}
	return d
}
