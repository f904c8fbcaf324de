package store

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

// streamMost is how many jobs a step of a stream asks for while nobody else has
// changes to be made: Redis does nothing else for as long.
const streamMost = 500

// A rawPage is a page of a stream before it is taken apart.
type rawPage struct {
	listings []listing
	stored   []storedJob
	at       scene
	next     place
	more     bool
	err      error
}

// stream yields all jobs from a place on. One goroutine asks Redis for the next
// page while the last one is taken apart and shown.
func (o *openScan) stream(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	pages := make(chan rawPage, 1)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(pages)
		o.read(reading, pages)
	})
	defer reader.Wait()
	defer stop()
	for g := range pages {
		if g.err != nil {
			return g.err
		}
		page := driver.Page{Position: driver.Position(o.at.start)}
		o.board.showStored(o.opening, o.req.Parts, &g, &page, &o.bad)
		o.at = g.next
		if more, err := o.show(&page, g.more); !more || err != nil {
			return err
		}
	}
	return ended(ctx)
}

// read looks at one page after another. It says itself why it ends early.
func (o *openScan) read(ctx context.Context, to chan<- rawPage) {
	send := func(g rawPage) bool {
		select {
		case to <- g:
			return g.err == nil
		case <-ctx.Done():
			return false
		}
	}
	at := o.at
	for most, more := scanCount, true; more; {
		begun := time.Now()
		steps, cursor, err := o.board.listings(ctx, o.opening, at, o.count)
		if err != nil {
			send(rawPage{err: err})
			return
		}
		o.adapt(steps, most)
		for first := true; first || len(steps) > 0; first = false {
			g := rawPage{listings: steps[:firstPage(steps, most)]}
			g.stored, g.at, g.err = o.board.lookAtOpen(ctx, o.opening, g.listings, o.req.Parts)
			if steps = steps[len(g.listings):]; len(steps) > 0 {
				at.after = g.listings[len(g.listings)-1].id
			} else {
				at = place{at.start, cursor, ""}
			}
			more = len(steps) > 0 || cursor != 0
			g.next, g.more = at, more
			if !send(g) {
				return
			}
		}
		called, err := o.pace(ctx, time.Since(begun))
		if err != nil {
			send(rawPage{err: err})
			return
		}
		if most = min(2*most, streamMost); called {
			most = scanCount
		}
	}
}
