package store

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/boardd/boardd/sdk/sleep"
)

// Of all servers that watch a board, one searches it for changes by other programs. It
// reconciles our records with what it finds, and the others learn of that from the board's
// stream.
const (
	searcherLease = 3 * time.Second  // another one takes over from a server that is gone
	searcherTime  = time.Second      // a server says so often that it goes on
	searcherFails = 10 * time.Second // one whose searches fail for so long lets another one try
)

// searchers is the sorted set of the servers that search a board of this Redis, which
// share what all searches may cost it.
const searchers = "boardd:searchers"

var (
	//go:embed lua/searcher.lua
	searcherLua string
	//go:embed lua/searchers.lua
	searchersLua string

	searcherScript  = newScript(searcherLua)
	searchersScript = newScript(searchersLua)
)

// errTaken ends a search which another server has taken over.
var errTaken = errors.New("another server searches the board")

// searchInTurn searches the board as long as this host watches it, whenever no other
// server does.
func (b *board) searchInTurn(ctx context.Context, st *opening) {
	logged := false
	for !b.over(st) {
		err := b.searchNow(ctx, st, &logged)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !errors.Is(err, errTaken) {
			b.searchFails(err, &logged)
		}
		if sleep.For(ctx, max(searcherTime, b.store.budget.take(restFor(tripCost), false))) != nil {
			return
		}
	}
}

// over reports whether nothing is to be searched for any more in a board as it was opened.
func (b *board) over(st *opening) bool {
	select {
	case <-b.store.closing:
		return true
	case <-st.stale:
		return true
	case <-b.dropped:
		return true
	default:
		return false
	}
}

// searchFails says once that a search fails, until one does not.
func (b *board) searchFails(err error, logged *bool) {
	if !*logged {
		b.store.logger.Warn("other programs' changes cannot be looked for", "board", b.name, "error", err)
	}
	*logged = true
}

// searchNow searches until it is over, or somebody else's turn.
func (b *board) searchNow(ctx context.Context, st *opening, logged *bool) error {
	s := newSweep(b, st)
	if err := s.keepOn(ctx); err != nil {
		return err
	}
	defer s.handOver(ctx)
	s.notices = b.store.listen(ctx, &st.keys)
	defer func() { s.notices.stop() }()
	b.searching.Store(s)
	defer b.searching.Store(nil)
	var failed time.Time // first, and ever since
	for !b.over(st) {
		err := s.round(ctx)
		rest := s.idle()
		switch {
		case ctx.Err() != nil || errors.Is(err, errTaken):
			return err
		case err == nil:
			*logged, failed = false, time.Time{}
		default:
			if failed.IsZero() {
				failed = time.Now()
			}
			if time.Since(failed) > searcherFails {
				return err
			}
			b.searchFails(err, logged)
			rest = max(rest, sweepTime)
		}
		if err := s.rest(ctx, rest); err != nil {
			return err
		}
	}
	return nil
}

// keepOn has this server be the one that searches the board, for a while from now on.
// It fails if that is another one.
func (s *sweep) keepOn(ctx context.Context) error {
	if time.Since(s.kept) < searcherTime {
		return nil
	}
	s.pace.busy += tripCost
	store := s.board.store
	mine, err := searcherScript.run(ctx, store.client, []string{s.opening.keys.searcher}, store.self, searcherLease.Milliseconds()).Bool()
	if err != nil {
		if time.Since(s.kept) < searcherLease { // what was said last still holds
			return nil
		}
		return changeFailed(err)
	}
	if !mine {
		return errTaken
	}
	s.kept = time.Now()
	store.countSearchers(ctx)
	return nil
}

// handOver lets another server search at once.
func (s *sweep) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), searcherLease)
	defer cancel()
	store := s.board.store
	if err := searcherScript.run(ctx, store.client, []string{s.opening.keys.searcher}, store.self, 0).Err(); err != nil {
		store.logger.Debug("another server searches a little later", "board", s.board.name, "error", err)
	}
}

// countSearchers says that this server searches, and learns among how many the share is
// to be divided.
func (s *Store) countSearchers(ctx context.Context) {
	if !s.budget.uncounted(searcherTime) {
		return
	}
	n, err := searchersScript.run(ctx, s.client, []string{searchers}, s.self, searcherLease.Milliseconds()).Int()
	if err != nil {
		s.logger.Debug("the servers that search are not counted", "error", err)
		return
	}
	s.budget.among(n)
}
