package store

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/job"
)

// Watch streams what a space holds and then what changes. One watch on the
// folder tells of every document; entities are TaskFlow's and have a folder of
// their own.
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
}

// look watches, and reads everything.
func (w *documentWatch) look(ctx context.Context, t *document.Told) error {
	var err error
	if _, w.events[0], err = w.client().ExistsWatched(ctx, w.folder(w.space)); err != nil {
		return err
	}
	if b, wrong := w.store.board(w.space.Board); wrong == nil && w.space.Name == driver.EntitySpace {
		folder, err := w.client().ListWatched(ctx, b.at.Entities+"/conductor")
		if err != nil && !session.NoNode(err) {
			return err
		}
		w.events[1] = folder.Event
		if session.NoNode(err) {
			if _, w.events[1], err = w.client().ExistsWatched(ctx, b.at.Entities+"/conductor"); err != nil {
				return err
			}
		}
	}
	list, err := w.List(ctx, w.space, "", 0)
	if err == nil {
		t.All(list)
	}
	return err
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
