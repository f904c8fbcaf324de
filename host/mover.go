package host

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/fleet"
)

// Timing of moves. Who moves a board says every beatEvery that it is at it; another host goes
// on where nothing was said for takeoverAfter, by its own clock. A move that cannot go on for
// giveUpAfter is given up, so that its board is not frozen for long.
const (
	lookEvery     = time.Second
	beatEvery     = 2 * time.Second
	takeoverAfter = 10 * time.Second
	giveUpAfter   = time.Minute
)

// A mover carries out the moves of boards that are in the catalog, and takes away what they
// leave behind when that is due.
type mover struct {
	host *Host

	takeover, giveUp time.Duration // as above, but in tests

	// step is told what a move is about to do. In tests it may return an error, as if the
	// host had ended there; nil: it is never asked.
	step func(name string) error

	mu    sync.Mutex
	moves map[catalog.At]*watchedMove
	wake  chan struct{}
}

// A watchedMove is a move with which something is still to be done.
type watchedMove struct {
	id, host string
	beat     uint64
	since    time.Time // when that was seen first, on this host's own clock
	running  bool      // here
	pause    time.Time // not before
}

func newMover(h *Host) *mover {
	return &mover{
		host: h, takeover: takeoverAfter, giveUp: giveUpAfter,
		moves: map[catalog.At]*watchedMove{}, wake: make(chan struct{}, 1),
	}
}

// noted looks at the boards of some records, or at all where records is nil.
func (m *mover) noted(records []string) {
	view := m.host.Directory().View
	if records == nil {
		for at, b := range view.Boards.All() {
			m.note(at, b.Move)
		}
		return
	}
	for _, name := range records {
		if kind, of, board := catalog.SplitKey(name); kind == "board" {
			at := catalog.At{Tenant: of, Name: board}
			b, _ := view.Boards.Get(at)
			m.note(at, b.Move)
		}
	}
}

// note keeps a move with which something is to be done.
func (m *mover) note(at catalog.At, move *catalog.Move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.moves[at]
	switch {
	case !move.Active() && (move == nil || move.State != catalog.Moved):
		if w != nil && !w.running {
			delete(m.moves, at)
		}
		return
	case w == nil:
		w = &watchedMove{}
		m.moves[at] = w
	case w.id == move.ID && w.host == move.Host && w.beat == move.Beat:
		return
	}
	w.id, w.host, w.beat, w.since = move.ID, move.Host, move.Beat, time.Now()
	m.rouse()
}

func (m *mover) rouse() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run looks after moves until ctx ends. Where there are none it sleeps.
func (m *mover) run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	for {
		again := make(<-chan time.Time)
		if m.look(ctx, &working) {
			again = time.After(lookEvery)
		}
		select {
		case <-m.wake:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// look begins what is this host's to do, and reports whether it has to look again.
func (m *mover) look(ctx context.Context, working *sync.WaitGroup) bool {
	view, now := m.host.Directory().View, time.Now()
	waiting, all := m.waiting(now)
	for at, since := range waiting {
		b, _ := view.Boards.Get(at)
		if b.Move == nil || !m.due(&b, since, now) || !m.start(at) {
			continue
		}
		working.Go(func() { m.end(at, m.drive(ctx, at)) })
	}
	return all > 0
}

// waiting returns the moves that nobody is at here, and since when each is as it is.
func (m *mover) waiting(now time.Time) (list map[catalog.At]time.Time, all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list = map[catalog.At]time.Time{}
	for at, w := range m.moves {
		if !w.running && !now.Before(w.pause) {
			list[at] = w.since
		}
	}
	return list, len(m.moves)
}

func (m *mover) start(at catalog.At) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.moves[at]
	if w == nil || w.running {
		return false
	}
	w.running = true
	return true
}

// end notes that a run has ended, and that the move is to be left alone for a while.
func (m *mover) end(at catalog.At, pause time.Duration) {
	m.mu.Lock()
	if w := m.moves[at]; w != nil {
		w.running, w.pause = false, time.Now().Add(pause)
	}
	m.mu.Unlock()
	m.noted([]string{catalog.Key("board", at.Tenant, at.Name)})
	m.rouse()
}

// due reports whether this host is to go on with a move now, which has been as it is since a
// time.
func (m *mover) due(b *catalog.Board, since, now time.Time) bool {
	move := b.Move
	mine := move.Host == "" || move.Host == m.host.id
	switch {
	case !m.reaches(&move.From, mine):
		return false
	case !m.reaches(&move.To, mine): // the board is to go on in its old store all the same
		return move.State == catalog.Abandoning && (mine || now.Sub(since) >= m.takeover+m.giveUp)
	case move.Active():
		return mine || now.Sub(since) >= m.takeover
	case move.State == catalog.Moved:
		due := move.Ended.Add(b.IdempotencyWindow)
		return now.After(due) && (mine || now.After(due.Add(m.takeover)))
	}
	return false
}

// reaches reports whether this host can reach a home of a board. Of an embedded store each
// host may have one by the same name: then it is told apart by its identity or, without a
// fleet, by who began the move.
func (m *mover) reaches(at *catalog.Home, mine bool) bool {
	c, ok := m.host.Directory().Backend(at.Backend)
	switch {
	case !ok:
		return false
	case c.Driver != config.Embedded || mine && at.Store == "":
		return true
	case at.Store == "":
		return m.host.fleet == nil && mine
	}
	r := m.host.backend(at.Backend).running.Load()
	if r == nil {
		return mine // it is to be started
	}
	ctx, cancel := context.WithTimeout(m.host.running, lookupWithin)
	defer cancel()
	id, err := fleet.StoreIdentity(ctx, r.driver.Documents(), false)
	return err == nil && id == at.Store
}
