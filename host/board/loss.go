package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// lossDocument is the name of the document that holds the losses which were found on
// a board and which nobody has acknowledged yet, for all of its hosts. A driver
// reports a loss once; this is how it is shown until somebody has seen it.
const lossDocument = "loss"

// maxLosses is how many losses are kept; the oldest of more are dropped.
const maxLosses = 16

// loss is one loss of acknowledged changes.
type loss struct {
	Generation uint64    `json:"generation"` // that the board has since
	At         time.Time `json:"at"`         // when it was found
	Text       string    `json:"text"`       // what is known of it
}

// lossRecord is the document.
type lossRecord struct {
	Acknowledged uint64 `json:"acknowledged,omitempty"` // the last generation whose losses somebody has acknowledged
	Losses       []loss `json:"losses,omitempty"`       // the others, oldest first
}

// add notes a loss; false if it is known. Hosts hear of a loss one after the other,
// some of them when it was acknowledged long ago. In the first generation there was
// no loss that could be told a second time.
func (r *lossRecord) add(l loss) bool {
	if l.Generation > 1 && l.Generation <= r.Acknowledged {
		return false
	}
	for _, known := range r.Losses {
		if known.Generation == l.Generation {
			return false
		}
	}
	r.Losses = append(r.Losses, l)
	if len(r.Losses) > maxLosses {
		r.Losses = r.Losses[len(r.Losses)-maxLosses:]
	}
	return true
}

// acknowledge drops the losses up to a generation.
func (r *lossRecord) acknowledge(generation uint64) {
	r.Acknowledged = max(r.Acknowledged, generation)
	var left []loss
	for _, l := range r.Losses {
		if l.Generation > generation {
			left = append(left, l)
		}
	}
	r.Losses = left
}

// losses is what this host knows of the board's losses.
type losses struct {
	mu      sync.Mutex
	record  lossRecord
	version uint64
}

// learn takes news of the document; older ones are ignored.
func (l *losses) learn(r lossRecord, version uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if version >= l.version {
		l.record, l.version = r, version
	}
}

// anew has the next news believed whatever was known before.
func (l *losses) anew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version = 0
}

// sync forgets losses that a watch which began did not tell of.
func (l *losses) sync() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.version == 0 {
		l.record = lossRecord{}
	}
}

// keep notes a loss for this host alone.
func (l *losses) keep(one loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record.add(one)
}

// text tells people of the losses; "" if there are none.
func (l *losses) text() string { return l.show().text() }

func (l *losses) show() lossRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record
}

func (r lossRecord) text() string {
	var list []string
	for _, one := range r.Losses {
		list = append(list, fmt.Sprintf("%s (found %s; generation %d)", one.Text, one.At.UTC().Format(time.RFC3339), one.Generation))
	}
	return strings.Join(list, "; ")
}

func (b *Board) learnLosses(doc driver.Document, deleted bool) {
	r, err := decodeLosses(doc, deleted)
	if err != nil {
		b.log.Warn("the record of the board's losses cannot be read", "error", err)
		return
	}
	b.losses.learn(r, doc.Version)
}

func decodeLosses(doc driver.Document, deleted bool) (r lossRecord, err error) {
	if !deleted && len(doc.Data) > 0 {
		err = json.Unmarshal(doc.Data, &r)
	}
	return r, err
}

// reportLoss writes a loss down for all hosts. Of a board that is only observed, and
// on a store that keeps no documents, this host alone knows of it.
func (b *Board) reportLoss(ctx context.Context, one loss) error {
	if b.spec.Observe {
		b.losses.keep(one)
		return nil
	}
	err := b.changeLosses(ctx, func(r *lossRecord) bool { return r.add(one) })
	if errors.Is(err, job.Unsupported) {
		b.losses.keep(one)
		return nil
	}
	return err
}

// AcknowledgeLoss says that somebody knows of the losses that the board shows, up to
// those of a generation; 0 is the board's present one. They are shown no more, by no
// host of the board.
func (b *Board) AcknowledgeLoss(ctx context.Context, generation uint64) error {
	opened, err := b.changing(ctx)
	if err != nil {
		return err
	}
	if generation == 0 {
		generation = opened.Generation
	}
	if generation > opened.Generation {
		return job.Errorf(job.Invalid, "generation: the board is in generation %d, and not in %d", opened.Generation, generation)
	}
	return b.changeLosses(ctx, func(r *lossRecord) bool {
		r.acknowledge(generation)
		return true
	})
}

// changeLosses changes the document as it stands, unless change returns false.
func (b *Board) changeLosses(ctx context.Context, change func(*lossRecord) bool) error {
	docs, at := b.driver.Documents(), driver.Space{Board: b.spec.Key, Name: driver.SettingSpace}
	for try := 0; ; try++ {
		doc, err := docs.Get(ctx, at, lossDocument)
		if err != nil && !errors.Is(err, job.NotFound) {
			return err
		}
		r, err := decodeLosses(doc, false)
		if err != nil { // what it said is in the log of who found the loss
			b.log.Error("the record of the board's losses cannot be read and is begun anew", "error", err)
			r = lossRecord{}
		}
		if !change(&r) {
			b.losses.learn(r, doc.Version)
			return nil
		}
		data, err := json.Marshal(r)
		if err != nil {
			return &job.Error{Kind: job.Internal, Err: err}
		}
		version, err := docs.Put(ctx, at, driver.Document{Name: lossDocument, Data: data}, doc.Version)
		if err == nil {
			b.losses.learn(r, version)
			return nil
		}
		if try == tries || !errors.Is(err, job.Aborted) {
			return err
		}
	}
}

// Losses reads what a store keeps of a board's losses that nobody has acknowledged;
// "" if there are none.
func Losses(ctx context.Context, d driver.Driver, board string) (string, error) {
	doc, err := d.Documents().Get(ctx, driver.Space{Board: board, Name: driver.SettingSpace}, lossDocument)
	if errors.Is(err, job.NotFound) || errors.Is(err, job.Unsupported) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	r, err := decodeLosses(doc, false)
	return r.text(), err
}

// claimEnded is what drivers refuse a token with, and leaseRanOut how they say why.
const (
	claimEnded  = "the claim of this token has ended"
	leaseRanOut = claimEnded + ": its lease ran out"
)

// ofBefore returns what a token is refused with: where the store was put back, or lost
// changes, after the claim was made, that is why it ended.
func ofBefore(t job.Token, generation uint64, message string) string {
	if t.Generation == 0 || t.Generation >= generation || message != claimEnded && message != leaseRanOut {
		return message
	}
	return fmt.Sprintf("%s: it is of generation %d, and the board's store was put back, or lost changes, since, so that the board is in generation %d",
		claimEnded, t.Generation, generation)
}
