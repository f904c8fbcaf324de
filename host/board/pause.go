package board

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
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

// learn takes news of the document; older ones are ignored.
func (p *pause) learn(r pauseRecord, version uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if version < p.version {
		return
	}
	p.version, p.why = version, r.Reason
	if p.on != r.Paused {
		p.on = r.Paused
		close(p.changed)
		p.changed = make(chan struct{})
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
	b.pause.learn(r, version)
	return nil
}

// putDocument writes a document whatever stands there.
func (b *Board) putDocument(ctx context.Context, space string, doc driver.Document) (uint64, error) {
	docs, at := b.driver.Documents(), driver.Space{Board: b.spec.Key, Name: space}
	for try := 0; ; try++ {
		old, err := docs.Get(ctx, at, doc.Name)
		if err != nil && !errors.Is(err, job.NotFound) {
			return 0, err
		}
		version, err := docs.Put(ctx, at, doc, old.Version)
		if err == nil || try == tries || !errors.Is(err, job.Aborted) {
			return version, err
		}
	}
}

// deleteDocument takes a document away whatever stands there.
func (b *Board) deleteDocument(ctx context.Context, space, name string) error {
	docs, at := b.driver.Documents(), driver.Space{Board: b.spec.Key, Name: space}
	for try := 0; ; try++ {
		doc, err := docs.Get(ctx, at, name)
		if err == nil {
			err = docs.Delete(ctx, at, name, doc.Version)
		}
		if err == nil || try == tries || !errors.Is(err, job.Aborted) {
			return err
		}
	}
}

// readSettings asks once, before the board serves, for what all of its hosts share.
func (b *Board) readSettings(ctx context.Context) error {
	for _, name := range []string{pauseDocument, lossDocument} {
		doc, err := b.driver.Documents().Get(ctx, driver.Space{Board: b.spec.Key, Name: driver.SettingSpace}, name)
		switch {
		case errors.Is(err, job.NotFound), errors.Is(err, job.Unsupported):
		case err != nil:
			return err
		default:
			b.learnSetting(driver.DocumentChange{Document: doc})
		}
	}
	return nil
}

// learnSetting takes news of a document.
func (b *Board) learnSetting(change driver.DocumentChange) {
	switch doc := change.Document; {
	case change.Synced:
	case strings.HasPrefix(doc.Name, schedulePrefix):
		b.learnSchedule(doc, change.Deleted)
	case strings.HasPrefix(doc.Name, batchPrefix):
		b.learnBatch(doc, change.Deleted)
	case doc.Name == lossDocument:
		b.learnLosses(doc, change.Deleted)
	case doc.Name != pauseDocument:
	case change.Deleted:
		b.pause.learn(pauseRecord{}, doc.Version)
	default:
		b.learnPause(doc)
	}
}

func (b *Board) learnPause(doc driver.Document) {
	var r pauseRecord
	if err := json.Unmarshal(doc.Data, &r); err != nil {
		b.log.Warn("the record of the board's pause cannot be read", "error", err)
		return
	}
	b.pause.learn(r, doc.Version)
}

// followSettings learns of pauses that other hosts set, and of losses that they
// reported or acknowledged.
func (b *Board) followSettings(ctx context.Context) {
	var wait backoff
	for {
		if _, err := b.readiness.wait(ctx, nil); err != nil {
			return
		}
		space := driver.Space{Board: b.spec.Key, Name: driver.SettingSpace}
		b.scheduler.anew()
		b.batches.anew()
		for change, err := range b.driver.Documents().Watch(ctx, space) {
			if err != nil {
				break
			}
			wait.wait = 0
			b.learnSetting(change)
			if !change.Synced {
				continue
			}
			b.batches.sync()
			if b.syncSchedules(ctx) != nil {
				break
			}
		}
		if sleep.For(ctx, wait.next()) != nil {
			return
		}
	}
}
