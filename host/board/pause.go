package board

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// pauseDocument is the name of the document that says whether a board is
// paused, for all of its hosts.
const pauseDocument = "pause"

type pauseRecord struct {
	Paused bool      `json:"paused"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// pause is what this host knows of the board's pause.
type pause struct {
	mu      sync.Mutex
	on      bool
	why     string
	at      time.Time // as the record has it
	version uint64
	changed chan struct{} // closed when on changes
}

func (p *pause) look() (on bool, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on, p.why
}

// state returns whether the board is paused, and what is closed when that
// changes.
func (p *pause) state() (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on, p.changed
}

// since returns when the pause began that goes on, by which it is told from others.
func (p *pause) since() (began time.Time, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on {
		return time.Time{}, false
	}
	return p.at, true
}

// learn takes news of the document; older ones are ignored. It reports whether a pause has ended.
func (p *pause) learn(r pauseRecord, version uint64) (ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if version < p.version {
		return false
	}
	ended = p.on && !r.Paused
	p.put(r, version)
	return ended
}

// put is called with mu held.
func (p *pause) put(r pauseRecord, version uint64) {
	p.version, p.why, p.at = version, r.Reason, r.At
	if p.on != r.Paused {
		p.on = r.Paused
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

// anew has the next news believed whatever was known before.
func (p *pause) anew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = 0
}

// sync ends a pause that a watch which began did not tell of.
func (p *pause) sync() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.version == 0 {
		p.put(pauseRecord{}, 0)
	}
}

// Pause stops the board from granting claims, on all of its hosts. Posts and
// claims that stand are not touched.
func (b *Board) Pause(ctx context.Context, why string) error {
	return b.setPause(ctx, pauseRecord{Paused: true, Reason: cleanReason(why), At: time.Now().UTC()})
}

// Resume ends a pause.
func (b *Board) Resume(ctx context.Context) error {
	return b.setPause(ctx, pauseRecord{At: time.Now().UTC()})
}

func (b *Board) setPause(ctx context.Context, r pauseRecord) error {
	if _, err := b.changing(ctx); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return &job.Error{Op: "pause", Kind: job.Internal, Err: err}
	}
	version, err := b.putDocument(ctx, driver.SettingSpace, driver.Document{Name: pauseDocument, Data: data})
	if err != nil {
		return err
	}
	b.pauseIs(r, version)
	return nil
}

// pauseIs takes news of the pause. Schedules that were imported in one which is over begin.
func (b *Board) pauseIs(r pauseRecord, version uint64) {
	if b.pause.learn(r, version) && b.scheduler.holds() {
		b.settings.anew()
	}
}

func (b *Board) learnPause(doc driver.Document) {
	var r pauseRecord
	if err := json.Unmarshal(doc.Data, &r); err != nil {
		b.log.Warn("the record of the board's pause cannot be read", "error", err)
		return
	}
	b.pauseIs(r, doc.Version)
}
