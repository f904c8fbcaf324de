package store

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
)

// documentsTime is how often a watcher of documents looks though nobody woke it.
const documentsTime = 2 * time.Second

// Watch streams the documents of a space, and what changes.
func (d documents) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) {
		err := checkSpace(ctx, space)
		if err == nil {
			w := &documentWatch{
				documents: d, documentKeys: documentKeysOf(space), known: map[string]driver.Document{},
				yield: func(c driver.DocumentChange) bool { return yield(c, nil) },
			}
			err = w.run(ctx)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(driver.DocumentChange{}, err)
		}
	}
}

// A documentWatch is one watcher and what it was told. Of the documents that it
// knows it keeps versions and expiries, not the data.
type documentWatch struct {
	documents

	documentKeys documentKeys
	known        map[string]driver.Document
	version      uint64 // of the space, up to which everything was told
	yield        func(driver.DocumentChange) bool
}

func (w *documentWatch) run(ctx context.Context) error {
	woken, stop := w.wakes.watch(documentsWake)
	defer stop()
	if err := w.all(ctx); err != nil {
		return err
	}
	if !w.yield(driver.DocumentChange{Synced: true}) {
		return errStopped
	}
	for {
		if err := w.wait(ctx, woken); err != nil {
			return err
		}
		version, floor, err := w.spaceVersion(ctx, &w.documentKeys)
		switch {
		case err != nil:
		case version < w.version || floor > w.version:
			err = w.all(ctx) // dropped, or more was deleted than is remembered
		case version > w.version:
			err = w.changes(ctx, version)
		}
		if err == nil {
			err = w.expired(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// wait returns nil when it is time to look.
func (w *documentWatch) wait(ctx context.Context, woken <-chan struct{}) error {
	d := documentsTime
	for _, doc := range w.known {
		if !doc.Expires.IsZero() {
			d = min(d, max(time.Until(doc.Expires), 20*time.Millisecond))
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-woken:
	case <-timer.C:
	case <-ctx.Done():
	case <-w.closing:
		return closed()
	}
	return ended(ctx)
}

// all tells everything that differs from what was told.
func (w *documentWatch) all(ctx context.Context) error {
	version, _, err := w.spaceVersion(ctx, &w.documentKeys)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for after := ""; ; {
		list, err := w.List(ctx, w.documentKeys.space, after, listAtOnce)
		if err != nil {
			return err
		}
		for _, doc := range list {
			there[doc.Name] = true
			if err := w.tell(doc); err != nil {
				return err
			}
			after = doc.Name
		}
		if len(list) < listAtOnce {
			break
		}
	}
	for name := range w.known {
		if !there[name] {
			if err := w.tellGone(name); err != nil {
				return err
			}
		}
	}
	w.version = version
	return nil
}

// changes tells what changed up to a version.
func (w *documentWatch) changes(ctx context.Context, version uint64) error {
	by := &redis.ZRangeBy{Min: "(" + strconv.FormatUint(w.version, 10), Max: "+inf"}
	var changed, gone *redis.StringSliceCmd
	_, err := w.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		changed, gone = p.ZRangeByScore(ctx, w.documentKeys.changed, by), p.ZRangeByScore(ctx, w.documentKeys.gone, by)
		return nil
	})
	if err != nil {
		return readFailed(ctx, err)
	}
	for names := changed.Val(); len(names) > 0; {
		n := min(listAtOnce, len(names))
		list, err := w.fetch(ctx, &w.documentKeys, names[:n])
		if err != nil {
			return err
		}
		for _, doc := range list {
			if err := w.tell(doc); err != nil {
				return err
			}
		}
		names = names[n:]
	}
	for _, name := range gone.Val() {
		if err := w.tellGone(name); err != nil {
			return err
		}
	}
	w.version = version
	return nil
}

func (w *documentWatch) tell(doc driver.Document) error {
	if w.known[doc.Name].Version == doc.Version {
		return nil
	}
	if !w.yield(driver.DocumentChange{Document: doc}) {
		return errStopped
	}
	w.known[doc.Name] = driver.Document{Version: doc.Version, Expires: doc.Expires}
	return nil
}

func (w *documentWatch) tellGone(name string) error {
	if _, ok := w.known[name]; !ok {
		return nil
	}
	delete(w.known, name)
	if !w.yield(driver.DocumentChange{Document: driver.Document{Name: name}, Deleted: true}) {
		return errStopped
	}
	return nil
}

// expired tells which documents are past their time on Redis's clock.
func (w *documentWatch) expired(ctx context.Context) error {
	var due []string
	for name, doc := range w.known {
		if !doc.Expires.IsZero() && time.Until(doc.Expires) <= 0 {
			due = append(due, name)
		}
	}
	if len(due) == 0 {
		return nil
	}
	list, err := w.fetch(ctx, &w.documentKeys, due)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, doc := range list {
		there[doc.Name] = true
		if err := w.tell(doc); err != nil {
			return err
		}
	}
	for _, name := range due {
		if !there[name] {
			if err := w.tellGone(name); err != nil {
				return err
			}
		}
	}
	return nil
}
