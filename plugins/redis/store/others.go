package store

import (
	"context"
	"sync"

	"github.com/boardd/boardd/sdk/job"
)

// others are the other programs that write to a board to which none is said to write.
type others struct {
	found chan struct{} // closed when one has
	once  sync.Once
}

func newOthers() *others { return &others{found: make(chan struct{})} }

// write reports whether another program was found to write to the board.
func (o *others) write() bool {
	select {
	case <-o.found:
		return true
	default:
		return false
	}
}

// find notes that another program writes to the board. It is searched from now on, until
// this process ends.
func (o *others) find(b *board, what string) {
	o.once.Do(func() {
		b.store.logger.Warn("other programs write to a board that boardd alone is said to write: their changes are searched for from now on; "+
			"say foreign = true in the board's config", "board", b.name, "found", what)
		close(o.found)
	})
}

// met looks at what the board's stream tells: whoever changes a job reconciles it first, and
// so finds what another program has done to it.
func (o *others) met(b *board, st *opening, events []event) {
	for i := range events {
		if !st.foreign && events[i].kind == job.ForeignChange && events[i].reason != claimOfBefore {
			o.find(b, "job "+events[i].id.String())
			return
		}
	}
}

// endClaimsOfBefore ends the claims that were granted before Redis lost changes, in our records
// and in TaskFlow's keys: where nobody searches, they would else stand, and count, until
// somebody asks for their jobs. What fails is tried again with the next watch.
func (b *board) endClaimsOfBefore(ctx context.Context, st *opening) {
	if !b.raised.Load() {
		return
	}
	s := newSweep(b, st)
	s.alone = true
	err := b.eachRecord(ctx, st, func(fields []string) error {
		var ids []string
		for i := 0; i < len(fields); i += 2 {
			if flagsOf(fields[i+1])&flagClaim == 0 {
				continue
			}
			if m, ok := decodeMeta([]byte(fields[i+1])); ok && m.token.Generation != st.generation {
				ids = append(ids, fields[i])
			}
		}
		return s.reconcile(ctx, ids)
	})
	if err != nil {
		b.store.logger.Debug("claims of before Redis lost changes stand for now", "board", b.name, "error", err)
		return
	}
	b.raised.Store(false)
}

// searchIfShared searches the board for other programs' changes while this host watches it,
// if there are such programs, or as soon as one is found.
func (b *board) searchIfShared(ctx context.Context, st *opening) {
	if !st.foreign {
		b.endClaimsOfBefore(ctx, st)
		select {
		case <-b.others.found:
		case <-ctx.Done():
			return
		case <-st.stale:
			return
		case <-b.dropped:
			return
		case <-b.store.closing:
			return
		}
	}
	b.searchInTurn(ctx, st)
}
