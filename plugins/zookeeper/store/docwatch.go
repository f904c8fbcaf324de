package store

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/job"
)

// Watch streams what a space holds and then what changes. One watch on the
// folder tells of every document, and of a space of no board the folder says which
// ones they were; entities are TaskFlow's and have a folder of their own.
func (d *documents) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	w := &documentWatch{documents: d, space: space}
	_, w.lost = d.client().Epoch()
	return document.Watch(func(t *document.Told) error {
		err := d.check(ctx, space, "any")
		if err == nil {
			err = w.look(ctx, t)
		}
		return cmp.Or(alive(ctx), err)
	}, func(until time.Time) error { return w.wait(ctx, until) })
}

// A documentWatch is one watcher of a space.
type documentWatch struct {
	*documents
	space  driver.Space
	lost   <-chan struct{}
	events [2]<-chan session.Event

	made    int64 // the transaction that made the folder; 0: nothing was read yet, or there is none
	version int32 // of the folder, up to which everything was read
}

// look watches, and reads what changed, or everything.
func (w *documentWatch) look(ctx context.Context, t *document.Told) error {
	folder, err := w.watchFolder(ctx)
	if err != nil {
		return err
	}
	if b, wrong := w.store.board(w.space.Board); wrong == nil && w.space.Name == driver.EntitySpace {
		entities, err := w.client().ListWatched(ctx, b.at.Entities+"/conductor")
		if err != nil && !session.NoNode(err) {
			return err
		}
		w.events[1] = entities.Event
		if session.NoNode(err) {
			if _, w.events[1], err = w.client().ExistsWatched(ctx, b.at.Entities+"/conductor"); err != nil {
				return err
			}
		}
	}
	if err := w.read(ctx, t, folder); err != nil {
		return err
	}
	if w.made = 0; folder.Stat != nil {
		w.made, w.version = folder.Stat.Czxid, folder.Stat.Version
	}
	return nil
}

// watchFolder watches the space's folder and reads it; its Stat is nil if there is none.
func (w *documentWatch) watchFolder(ctx context.Context) (session.Node, error) {
	for {
		node, event, err := w.client().GetWatched(ctx, w.folder(w.space))
		if err == nil || !session.NoNode(err) {
			w.events[0] = event
			return node, err
		}
		var stat *session.Stat
		if stat, w.events[0], err = w.client().ExistsWatched(ctx, w.folder(w.space)); err != nil || stat == nil {
			return session.Node{}, err
		}
	}
}

// read reads what changed since the folder was read last, and what has expired; where that is
// not known, everything.
func (w *documentWatch) read(ctx context.Context, t *document.Told, folder session.Node) error {
	if r := w.recentOf(w.space); r != nil && w.made != 0 && folder.Stat != nil {
		if names, ok := r.since(folder, w.made, w.version); ok {
			return w.named(ctx, t, append(names, t.Due(w.now())...))
		}
	}
	list, err := w.List(ctx, w.space, "", 0)
	if err == nil {
		t.All(list)
	}
	return err
}

// named reads some documents.
func (w *documentWatch) named(ctx context.Context, t *document.Told, names []string) error {
	for part := range slices.Chunk(names, atOnce) {
		list, err := w.some(ctx, w.space, part)
		if err != nil {
			return err
		}
		t.Named(part, list)
	}
	return nil
}

// wait returns nil when something changed or a document expires.
func (w *documentWatch) wait(ctx context.Context, until time.Time) error {
	due, stop := document.Alarm(until, w.now().Add(-time.Millisecond)) // in which times are kept
	defer stop()
	select {
	case <-w.events[0]:
	case <-w.events[1]:
	case <-due:
	case <-w.lost:
		return job.Errorf(job.Unavailable, "the session with ZooKeeper was lost")
	case <-w.store.life.Done():
		return job.Errorf(job.Unavailable, "the store was closed")
	case <-ctx.Done():
	}
	return alive(ctx)
}
