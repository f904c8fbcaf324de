package webhook

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// lookEvery is how often a teller looks for how long the oldest job waits.
const lookEvery = 5 * time.Second

// alarm tells that the oldest job waits for longer than the hook says: once, until no job waits
// for half as long. The bookmark says that it was told, to all servers.
func (t *teller) alarm(ctx context.Context) error {
	now := time.Now()
	if now.Sub(t.looked) < lookEvery {
		return nil
	}
	t.looked = now
	counts, ok := t.board.Depth()
	if !ok {
		return nil
	}
	var waited time.Duration
	if !counts.OldestReadyAt.IsZero() {
		waited = now.Sub(counts.OldestReadyAt)
	}
	switch {
	case !t.mark.Waits && waited >= t.hook.Waiting:
		return t.raise(ctx, counts.OldestReadyAt, waited, counts.Ready)
	case t.mark.Waits && waited < t.hook.Waiting/2:
		t.mark.Waits, t.turned = false, true
		return t.keep(ctx)
	}
	return nil
}

func (t *teller) raise(ctx context.Context, since time.Time, waited time.Duration, ready int64) error {
	if told, err := t.raised(ctx); told || err != nil {
		return err
	}
	body, err := json.Marshal(envelope{Type: Waiting.String(), Timestamp: time.Now().UTC(), Data: waitingData{
		Board: t.hook.Board, OldestReadyAt: since.UTC(), Ready: ready,
		Waited: strconv.FormatFloat(waited.Truncate(time.Millisecond).Seconds(), 'f', -1, 64) + "s",
	}})
	if err != nil {
		return err
	}
	p, err := posting(t.hook, deliveryID(t.hook, "", Waiting, since.UTC().Format(time.RFC3339Nano)), Waiting, "", "", body)
	if err != nil {
		return err
	}
	if err := t.post(ctx, []job.Posting{p}); err != nil {
		return err
	}
	t.mark.Waits, t.turned = true, true
	return t.keep(ctx)
}

// raised reports whether another server has told it already.
func (t *teller) raised(ctx context.Context) (bool, error) {
	theirs, err := t.read(ctx)
	if err == nil {
		t.mark.Waits = theirs.Waits
	}
	return theirs.Waits, err
}
