package webhook

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// LastTrial is what came of the last delivery that was made to see whether it arrives. Its zero
// value says that there was none.
type LastTrial struct {
	ID      string        `json:"id"` // of the delivery
	At      time.Time     `json:"at"`
	Took    time.Duration `json:"took"` // in nanoseconds
	Outcome string        `json:"outcome"`
	Reason  string        `json:"reason,omitempty"` // why it was not delivered
	Status  int           `json:"status,omitempty"` // of the receiver's answer; 0: there was none
	Answer  string        `json:"answer,omitempty"` // its first bytes, as text that is safe to show
	Within  bool          `json:"within,omitempty"` // the hook could reach networks: the answer is for operators, whatever the hook is now
}

func trialName(h *Hook) string { return "webhook-trial/" + h.Key() }

// TrialOf returns what came of the last trial of a hook, which is known before its job has
// ended. The board is that of the deliveries.
func TrialOf(ctx context.Context, b *board.Board, h *Hook) (t LastTrial, err error) {
	_, err = readBookmark(ctx, b, trialName(h), &t)
	return t, err
}

// write keeps the trial in place of the one before.
func (t *LastTrial) write(ctx context.Context, b *board.Board, h *Hook) error {
	var before LastTrial
	version, err := readBookmark(ctx, b, trialName(h), &before)
	if err != nil && job.KindOf(err) != job.Corrupt {
		return err
	}
	_, err = writeBookmark(ctx, b, trialName(h), t, version)
	return err
}

// Try posts a delivery that tells nothing but that somebody tries whether it arrives, and
// returns its ID. The board is that of the deliveries.
func Try(ctx context.Context, b *board.Board, h *Hook) (job.ID, error) {
	if h.Paused {
		return job.ID{}, job.Errorf(job.Precondition, "the webhook is paused: its deliveries wait until it is resumed")
	}
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

// isTrial reports whether a delivery is a trial.
func isTrial(j *job.Job) bool {
	return slices.Contains(j.Labels, job.Label{Key: "event", Value: Trial.String()})
}

// shown is what a stranger answered, as text that does nothing where it is shown: whatever is
// no letter, sign, space or new line is replaced.
func shown(answer []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(string(answer), string(unicode.ReplacementChar)))
}
