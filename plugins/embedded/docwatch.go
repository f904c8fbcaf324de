package embedded

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/job"
)

// documentWatch is one watcher of a space. What changed is gathered under the
// store's gate; everything else is the watcher's own.
type documentWatch struct {
	space driver.Space
	dirty map[string]struct{} // names that changed since the last look
	wake  chan struct{}
	begun bool
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
		w := &documentWatch{space: space, dirty: map[string]struct{}{}, wake: make(chan struct{}, 1)}
		defer d.leave(w)
		document.Watch(
			func(t *document.Told) error { return d.look(ctx, w, t) },
			func(until time.Time) error { return d.wait(ctx, w, until) },
		)(yield)
	}
}

func (d *documents) leave(w *documentWatch) {
	d.store.gate.Lock()
	defer d.store.gate.Unlock()
	delete(d.watchers, w)
}

// wait returns when something changed or one of the watcher's documents expires.
func (d *documents) wait(ctx context.Context, w *documentWatch, until time.Time) error {
	due, stop := document.Alarm(until, d.store.clock.wall())
	defer stop()
	select {
	case <-w.wake:
	case <-due:
	case <-ctx.Done():
		return &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
	case <-d.store.closing:
		return d.store.gone()
	}
	return nil
}

// look reads what changed, and finds what expired; at first it enters the watcher, and
// reads what there is.
func (d *documents) look(ctx context.Context, w *documentWatch, t *document.Told) error {
	if !w.begun {
		return d.begin(ctx, w, t)
	}
	names := map[string]struct{}{}
	prime := func() { // only this watcher and the committer, which is shut out, use dirty
		maps.Copy(names, w.dirty)
		clear(w.dirty)
	}
	return d.store.read(prime, func(m *snapshot) error {
		now := d.store.clock.wall()
		for _, name := range t.Due(now) {
			names[name] = struct{}{}
		}
		in := m.table(nil, inDocuments)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			switch doc, ok, err := findDocument(in, w.space, name, now); {
			case err != nil:
				return err
			case ok:
				t.Is(doc)
			default:
				t.Gone(name)
			}
		}
		return nil
	})
}

func (d *documents) begin(ctx context.Context, w *documentWatch, t *document.Told) error {
	if err := checkDocument(ctx, w.space, "any"); err != nil {
		return err
	}
	w.begun = true
	d.store.gate.Lock()
	d.watchers[w] = struct{}{}
	d.store.gate.Unlock()
	return d.store.read(nil, func(m *snapshot) error {
		list, err := listDocuments(m, w.space, "", 0, d.store.clock.wall())
		t.All(list)
		return err
	})
}
