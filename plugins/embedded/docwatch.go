package embedded

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// documentWatch is one watcher of a space. What changed is gathered under the
// store's gate; everything else is the watcher's own.
type documentWatch struct {
	space driver.Space
	dirty map[string]struct{} // names that changed since the last look
	wake  chan struct{}

	sent map[string]time.Time // what the watcher has, and when it expires
}

// publish tells watchers what a commit changed. The gate is closed.
func (d *documents) publish(edited []edit) {
	if len(edited) == 0 {
		return
	}
	for w := range d.watchers {
		for _, e := range edited {
			if e.space != w.space {
				continue
			}
			w.dirty[e.name] = struct{}{}
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
}

// Watch streams what a space holds, and then what changes.
func (d *documents) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) {
		if err := checkDocument(ctx, space, "any"); err != nil {
			yield(driver.DocumentChange{}, err)
			return
		}
		w := &documentWatch{
			space: space, dirty: map[string]struct{}{}, wake: make(chan struct{}, 1), sent: map[string]time.Time{},
		}
		defer d.leave(w)
		changes, err := d.begin(w)
		changes = append(changes, driver.DocumentChange{Synced: true})
		for err == nil {
			for _, c := range changes {
				if !yield(c, nil) {
					return
				}
			}
			if err = d.wait(ctx, w); err == nil {
				changes, err = d.look(w)
			}
		}
		yield(driver.DocumentChange{}, err)
	}
}

// begin enters the watcher and reads what there is at that moment.
func (d *documents) begin(w *documentWatch) ([]driver.DocumentChange, error) {
	d.store.gate.Lock()
	d.watchers[w] = struct{}{}
	d.store.gate.Unlock()
	var list []driver.Document
	err := d.store.read(nil, func(m *snapshot) (err error) {
		list, err = listDocuments(m, w.space, "", 0, d.store.clock.wall())
		return err
	})
	changes := make([]driver.DocumentChange, 0, len(list)+1)
	for _, doc := range list {
		w.sent[doc.Name] = doc.Expires
		changes = append(changes, driver.DocumentChange{Document: doc})
	}
	return changes, err
}

func (d *documents) leave(w *documentWatch) {
	d.store.gate.Lock()
	defer d.store.gate.Unlock()
	delete(d.watchers, w)
}

// wait returns when something changed or one of the watcher's documents expires.
func (d *documents) wait(ctx context.Context, w *documentWatch) error {
	var first time.Time
	for _, at := range w.sent {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	var expiry <-chan time.Time
	if !first.IsZero() {
		timer := time.NewTimer(first.Sub(d.store.clock.wall()))
		defer timer.Stop()
		expiry = timer.C
	}
	select {
	case <-w.wake:
	case <-expiry:
	case <-ctx.Done():
		return &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
	case <-d.store.closing:
		return d.store.gone()
	}
	return nil
}

// look reads what changed, and finds what expired.
func (d *documents) look(w *documentWatch) ([]driver.DocumentChange, error) {
	names := map[string]struct{}{}
	prime := func() { // only this watcher and the committer, which is shut out, use dirty
		maps.Copy(names, w.dirty)
		clear(w.dirty)
	}
	var changes []driver.DocumentChange
	err := d.store.read(prime, func(m *snapshot) error {
		now := d.store.clock.wall()
		for name, at := range w.sent {
			if !at.IsZero() && !now.Before(at) {
				names[name] = struct{}{}
			}
		}
		in := m.table(nil, inDocuments)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			doc, ok, err := findDocument(in, w.space, name, now)
			if err != nil {
				return err
			}
			if c, news := w.note(name, doc, ok); news {
				changes = append(changes, c)
			}
		}
		return nil
	})
	return changes, err
}

// note takes over how a document stands now, and says what the watcher is told.
func (w *documentWatch) note(name string, doc driver.Document, ok bool) (driver.DocumentChange, bool) {
	if ok {
		w.sent[name] = doc.Expires
		return driver.DocumentChange{Document: doc}, true
	}
	_, had := w.sent[name]
	delete(w.sent, name)
	return driver.DocumentChange{Document: driver.Document{Name: name}, Deleted: true}, had
}
