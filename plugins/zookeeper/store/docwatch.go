package store

import (
	"context"
	"iter"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Watch streams what a space holds and then what changes. One watch on the
// folder tells of every document; entities are TaskFlow's and have a folder of
// their own.
func (d *documents) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) {
		err := d.check(ctx, space, "any")
		w := &documentWatch{documents: d, space: space, sent: map[string]uint64{}}
		_, w.lost = d.client().Epoch()
		for synced := false; err == nil; synced = true {
			var changes []driver.DocumentChange
			if changes, err = w.look(ctx); err != nil {
				break
			}
			if !synced {
				changes = append(changes, driver.DocumentChange{Synced: true})
			}
			for _, c := range changes {
				if !yield(c, nil) {
					return
				}
			}
			err = w.wait(ctx)
		}
		if ended := alive(ctx); ended != nil {
			err = ended
		}
		yield(driver.DocumentChange{}, err)
	}
}

// A documentWatch is one watcher of a space.
type documentWatch struct {
	*documents
	space  driver.Space
	lost   <-chan struct{}
	sent   map[string]uint64 // what the watcher has
	events [2]<-chan session.Event
	expiry time.Time // of the next document that expires
}

// look watches, reads everything, and returns what is new.
func (w *documentWatch) look(ctx context.Context) ([]driver.DocumentChange, error) {
	var err error
	if _, w.events[0], err = w.client().ExistsWatched(ctx, w.folder(w.space)); err != nil {
		return nil, err
	}
	if b, wrong := w.store.board(w.space.Board); wrong == nil && w.space.Name == driver.EntitySpace {
		folder, err := w.client().ListWatched(ctx, b.at.Entities+"/conductor")
		if err != nil && !session.NoNode(err) {
			return nil, err
		}
		w.events[1] = folder.Event
		if session.NoNode(err) {
			if _, w.events[1], err = w.client().ExistsWatched(ctx, b.at.Entities+"/conductor"); err != nil {
				return nil, err
			}
		}
	}
	list, err := w.List(ctx, w.space, "", 0)
	if err != nil {
		return nil, err
	}
	return w.differences(list), nil
}

// differences returns what the watcher has to be sent, and notes it as sent.
func (w *documentWatch) differences(list []driver.Document) []driver.DocumentChange {
	var changes []driver.DocumentChange
	there := map[string]bool{}
	w.expiry = time.Time{}
	for _, doc := range list {
		there[doc.Name] = true
		if w.sent[doc.Name] != doc.Version {
			w.sent[doc.Name] = doc.Version
			changes = append(changes, driver.DocumentChange{Document: doc})
		}
		if !doc.Expires.IsZero() && (w.expiry.IsZero() || doc.Expires.Before(w.expiry)) {
			w.expiry = doc.Expires
		}
	}
	for name := range w.sent {
		if !there[name] {
			delete(w.sent, name)
			changes = append(changes, driver.DocumentChange{Document: driver.Document{Name: name}, Deleted: true})
		}
	}
	return changes
}

// wait returns nil when something changed or a document expires.
func (w *documentWatch) wait(ctx context.Context) error {
	var expiry <-chan time.Time
	if !w.expiry.IsZero() {
		timer := time.NewTimer(w.expiry.Sub(w.now()) + time.Millisecond)
		defer timer.Stop()
		expiry = timer.C
	}
	select {
	case <-w.events[0]:
	case <-w.events[1]:
	case <-expiry:
	case <-w.lost:
		return job.Errorf(job.Unavailable, "the session with ZooKeeper was lost")
	case <-w.store.life.Done():
		return job.Errorf(job.Unavailable, "the store was closed")
	case <-ctx.Done():
	}
	return alive(ctx)
}
