package webhook

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// lastEvery is how often a server writes at least what came of its last try, if that came of
// others before.
const lastEvery = 5 * time.Second

// Last is what came of the last try to deliver something of a hook. Its zero value says that
// there was none.
type Last struct {
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason,omitempty"` // why it was not delivered
	Status  int       `json:"status,omitempty"` // of the receiver's answer; 0: there was none
	Failing time.Time `json:"failing,omitzero"` // since when nothing was delivered; zero: it was
}

func lastName(h *Hook) string { return "webhook-last/" + h.Key() }

// LastOf returns what is known of the last try, of whatever server, up to lastEvery late. The
// board is that of the deliveries.
func LastOf(ctx context.Context, b *board.Board, h *Hook) (l Last, err error) {
	_, err = readBookmark(ctx, b, lastName(h), &l)
	return l, err
}

// readBookmark reads what is kept on a board under a name into what to points to, and returns
// its version; 0: there is nothing.
func readBookmark(ctx context.Context, b *board.Board, name string, to any) (uint64, error) {
	data, version, err := b.Bookmark(ctx, name)
	if err != nil || version == 0 {
		return 0, err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return version, &job.Error{Op: "read what came of a delivery", Kind: job.Corrupt, Message: "what came of the last delivery cannot be read", Err: err}
	}
	return version, nil
}

// writeBookmark keeps v on a board under a name in place of what has the version, and returns
// the new one.
func writeBookmark(ctx context.Context, b *board.Board, name string, v any, version uint64) (uint64, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return version, err
	}
	return b.PutBookmark(ctx, name, data, version)
}

// lastKeeper writes what came of the last try of a sender.
type lastKeeper struct {
	mu      sync.Mutex // held while the store is asked, by one of those who send
	version uint64
	kept    Last
	known   bool // kept is what stands on the board, for all that is known
}

// keep writes l unless one like it was written a moment ago. What another server wrote
// meanwhile is replaced by the next one.
func (k *lastKeeper) keep(ctx context.Context, b *board.Board, h *Hook, l Last) error {
	if !k.mu.TryLock() {
		return nil // another one writes
	}
	defer k.mu.Unlock()
	if l.Outcome == k.kept.Outcome && l.At.Sub(k.kept.At) < lastEvery {
		return nil
	}
	for try := 0; ; try++ {
		if !k.known { // another server, or one before this, may have said since when it fails
			version, err := readBookmark(ctx, b, lastName(h), &k.kept)
			if err != nil && job.KindOf(err) != job.Corrupt {
				return err
			}
			k.version, k.known = version, true
		}
		if l.Failing = k.kept.Failing; l.Outcome == Delivered {
			l.Failing = time.Time{}
		} else if l.Failing.IsZero() {
			l.Failing = l.At
		}
		version, err := writeBookmark(ctx, b, lastName(h), l, k.version)
		if err == nil {
			k.version, k.kept = version, l
			return nil
		}
		if k.known = false; job.KindOf(err) != job.Aborted || try == 1 {
			return err
		}
	}
}
