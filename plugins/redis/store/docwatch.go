package store

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
)

// How often a watcher of documents looks though nobody woke it: of a board's, of which there
// are as many as boards, rarely where Redis tells of changes.
const (
	documentsTime  = 2 * time.Second
	documentsQuiet = time.Minute
)

// documentsRest is how long a watcher rests at least before it looks again whether a
// document has expired: Redis's clock says so, and this machine's may be ahead.
const documentsRest = 20 * time.Millisecond

// Watch streams the documents of a space, and what changes.
func (d documents) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) {
		w := &documentWatch{documents: d, documentKeys: documentKeysOf(space)}
		woken, stop := d.wakes.watch(documentsWake, w.documentKeys.data)
		defer stop()
		document.Watch(
			func(t *document.Told) error { return w.look(ctx, t) },
			func(until time.Time) error { return w.wait(ctx, woken, until) },
		)(yield)
	}
}

// A documentWatch is one watcher.
type documentWatch struct {
	documents

	documentKeys documentKeys
	begun        bool
	version      uint64 // of the space, up to which everything was looked at
}

// look looks at what changed, or at everything.
func (w *documentWatch) look(ctx context.Context, t *document.Told) error {
	if err := checkSpace(ctx, w.documentKeys.space); err != nil {
		return err
	}
	version, floor, err := w.spaceVersion(ctx, &w.documentKeys)
	switch {
	case err != nil:
		return err
	case !w.begun, version < w.version, floor > w.version: // dropped, or more was deleted than is remembered
		err = w.all(ctx, t)
	case version > w.version:
		err = w.changes(ctx, t)
	}
	if err != nil {
		return err
	}
	w.begun, w.version = true, version
	return w.named(ctx, t, t.Due(time.Now()))
}

// wait returns nil when it is time to look.
func (w *documentWatch) wait(ctx context.Context, woken <-chan struct{}, until time.Time) error {
	d := documentsTime
	if w.documentKeys.space.Board != "" && w.tells(documentsWake) {
		d = spread(documentsQuiet)
	}
	if !until.IsZero() {
		d = min(d, max(time.Until(until), documentsRest))
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

// all looks at everything, a part at a time.
func (w *documentWatch) all(ctx context.Context, t *document.Told) error {
	there := map[string]bool{}
	for after := ""; ; {
		list, err := w.List(ctx, w.documentKeys.space, after, listAtOnce)
		if err != nil {
			return err
		}
		for _, doc := range list {
			there[doc.Name], after = true, doc.Name
			t.Is(doc)
		}
		if len(list) < listAtOnce {
			t.Only(there)
			return nil
		}
		if !t.Tell() {
			return errStopped
		}
	}
}

// changes looks at what changed since.
func (w *documentWatch) changes(ctx context.Context, t *document.Told) error {
	by := &redis.ZRangeBy{Min: "(" + strconv.FormatUint(w.version, 10), Max: "+inf"}
	var changed, gone *redis.StringSliceCmd
	_, err := w.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		changed, gone = p.ZRangeByScore(ctx, w.documentKeys.changed, by), p.ZRangeByScore(ctx, w.documentKeys.gone, by)
		return nil
	})
	if err != nil {
		return readFailed(ctx, err)
	}
	for _, name := range gone.Val() {
		t.Gone(name)
	}
	return w.named(ctx, t, changed.Val())
}

// named looks at some documents, a part at a time.
func (w *documentWatch) named(ctx context.Context, t *document.Told, names []string) error {
	for part := range slices.Chunk(names, listAtOnce) {
		list, err := w.fetch(ctx, &w.documentKeys, part)
		if err != nil {
			return err
		}
		if t.Named(part, list); !t.Tell() {
			return errStopped
		}
	}
	return nil
}
