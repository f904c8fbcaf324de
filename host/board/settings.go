package board

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// A settingsWatch ends the watch of the documents that all hosts of a board share, so that it
// begins anew.
type settingsWatch struct {
	mu  sync.Mutex
	end context.CancelFunc // nil: there is none
}

// watch returns a context for a watch that begins.
func (w *settingsWatch) watch(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = end
	return ctx, end
}

// anew ends the watch that goes on, if there is one.
func (w *settingsWatch) anew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end != nil {
		w.end()
	}
}

// settingsAnew has everything read again that all hosts of the board share, and believed whatever
// its versions are: the store is another one, or was put back.
func (b *Board) settingsAnew() {
	b.forgetVersions()
	b.settings.anew()
}

// forgetVersions prepares for news of a watch that begins: what it does not tell of by its Synced
// is gone.
func (b *Board) forgetVersions() {
	b.pause.anew()
	b.losses.anew()
	b.scheduler.anew()
	b.batches.anew()
}

// syncSettings forgets what a watch that began did not tell of.
func (b *Board) syncSettings(ctx context.Context) error {
	b.pause.sync()
	if !b.spec.Observe { // else this host alone knows of losses
		b.losses.sync()
	}
	b.batches.sync()
	return b.syncSchedules(ctx)
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
		b.pauseIs(pauseRecord{}, doc.Version)
	default:
		b.learnPause(doc)
	}
}

// followSettings learns of what all hosts of the board share and others changed. It reads
// all of that again when it is to begin anew.
func (b *Board) followSettings(ctx context.Context) {
	var wait backoff
	var trouble complaint
	for {
		if _, err := b.readiness.wait(ctx, nil); err != nil {
			return
		}
		b.forgetVersions()
		watching, stop := b.settings.watch(ctx)
		known, err := b.watchSettings(ctx, watching)
		stop()
		if known {
			wait.wait, trouble = 0, complaint{}
		}
		if err != nil && ctx.Err() == nil && trouble.due(err.Error(), time.Now()) {
			b.log.Warn("what is set on the board cannot be read: this is tried again", "error", err)
		}
		if sleep.For(ctx, wait.next()) != nil {
			return
		}
	}
}

// watchSettings learns of what all hosts share until the watch ends, and reports whether all of it
// was known. Then its end needs no word: what the board's own watch ends with is logged. That
// watching ends, so that all is read anew, breaks off nothing else.
func (b *Board) watchSettings(ctx, watching context.Context) (known bool, err error) {
	for change, err := range b.driver.Documents().Watch(watching, driver.Space{Board: b.spec.Key, Name: driver.SettingSpace}) {
		if err != nil {
			return known, nil
		}
		b.learnSetting(change)
		if change.Synced {
			if err := b.syncSettings(ctx); err != nil {
				return false, err
			}
			known = true
		}
	}
	return known, nil
}
