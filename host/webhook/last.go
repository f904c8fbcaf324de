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
}

func lastName(h *Hook) string { return "webhook-last/" + h.key() }

// LastOf returns what is known of the last try, of whatever server, up to lastEvery late. The
// board is that of the deliveries.
func LastOf(ctx context.Context, b *board.Board, h *Hook) (l Last, err error) {
	data, version, err := b.Bookmark(ctx, lastName(h))
	if err != nil || version == 0 {
		return l, err
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return Last{}, &job.Error{Op: "read the last try", Kind: job.Corrupt, Message: "what came of the last try cannot be read", Err: err}
	}
	return l, nil
}

// lastKeeper writes what came of the last try of a sender.
type lastKeeper struct {
	mu      sync.Mutex // held while the store is asked, by one of those who send
	version uint64
	kept    Last
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
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	for range 2 {
		version, err := b.PutBookmark(ctx, lastName(h), data, k.version)
		if err == nil {
			k.version, k.kept = version, l
			return nil
		}
		if job.KindOf(err) != job.Aborted {
			return err
		}
		if _, k.version, err = b.Bookmark(ctx, lastName(h)); err != nil {
			return err
		}
	}
	return nil
}

// Try posts a delivery that tells nothing but that somebody tries whether it arrives, and
// returns its ID. The board is that of the deliveries.
func Try(ctx context.Context, b *board.Board, h *Hook) (job.ID, error) {
	now := time.Now().UTC()
	body, err := json.Marshal(envelope{Type: Trial.String(), Timestamp: now, Data: trialData{Board: h.Board, Webhook: h.Name}})
	if err != nil {
		return job.ID{}, err
	}
	p, err := posting(h, deliveryID(h, "", Trial, now.Format(time.RFC3339Nano)), Trial, "", "", body)
	if err != nil {
		return job.ID{}, err
	}
	p.MaxAttempts = 1 // whoever tries sees what came of it, and tries again
	results, err := b.Post(ctx, []job.Posting{p})
	if err != nil {
		return job.ID{}, err
	}
	return p.ID, results[0].Err
}

// trialData is what a request says of a trial.
type trialData struct {
	Board   string `json:"board"`
	Webhook string `json:"webhook"`
}
