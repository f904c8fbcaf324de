package seeded

import (
	"context"
	"iter"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func streamBugs() []Bug {
	return []Bug{
		{Name: "watch-loses", Doc: "loses every seventh change", Check: "watch/many", Open: wrap(func(d driver.Driver) driver.Driver { return watchLoses{d} })},
		{Name: "silent-gap", Doc: "does not say when it missed changes", Check: "watch/too-late", Open: wrap(func(d driver.Driver) driver.Driver { return silentGap{d} })},
		{Name: "late-snapshot", Doc: "gives a scan the position of its end", Check: "scan/position", Open: wrap(func(d driver.Driver) driver.Driver { return lateSnapshot{d} })},
		{Name: "scan-drops", Doc: "drops a job at each new page", Check: "scan/open", Open: wrap(func(d driver.Driver) driver.Driver { return scanDrops{d} })},
		{Name: "cursor-drops", Doc: "drops a job when a scan goes on", Check: "scan/cursor", Open: wrap(func(d driver.Driver) driver.Driver { return cursorDrops{d} })},
		{
			Name: "last-writer-wins", Doc: "writes documents whatever their version",
			Check: "documents/compare-and-set", Open: wrap(func(d driver.Driver) driver.Driver { return lastWriterWins{d} }),
		},
		{
			Name: "deaf-documents", Doc: "tells watchers of documents only what was there",
			Check: "documents/watch", Open: wrap(func(d driver.Driver) driver.Driver { return deafDocuments{d} }),
		},
	}
}

type watchLoses struct{ driver.Driver }

func (w watchLoses) Watch(ctx context.Context, board string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		for c, err := range w.Driver.Watch(ctx, board, after) {
			c.List = slices.DeleteFunc(slices.Clone(c.List), func(c driver.Change) bool { return c.Position%7 == 0 })
			if !yield(c, err) {
				return
			}
		}
	}
}

type silentGap struct{ driver.Driver }

func (s silentGap) Watch(ctx context.Context, board string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		for c, err := range s.Driver.Watch(ctx, board, after) {
			c.Resync = false
			if !yield(c, err) {
				return
			}
		}
	}
}

type lateSnapshot struct{ driver.Driver }

func (l lateSnapshot) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return func(yield func(driver.Page, error) bool) {
		for page, err := range l.Driver.Scan(ctx, board, req) {
			for again, err := range l.Driver.Scan(ctx, board, driver.ScanRequest{Limit: 1}) {
				if err == nil {
					page.Position = again.Position
				}
			}
			if !yield(page, err) {
				return
			}
		}
	}
}

type scanDrops struct{ driver.Driver }

func (s scanDrops) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return func(yield func(driver.Page, error) bool) {
		first := true
		for page, err := range s.Driver.Scan(ctx, board, req) {
			if !first && len(page.Records) > 0 {
				page.Records = page.Records[1:]
			}
			first = false
			if !yield(page, err) {
				return
			}
		}
	}
}

type cursorDrops struct{ driver.Driver }

func (s cursorDrops) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return func(yield func(driver.Page, error) bool) {
		first := req.After != ""
		for page, err := range s.Driver.Scan(ctx, board, req) {
			if first && len(page.Records) > 0 {
				page.Records = page.Records[1:]
			}
			first = false
			if !yield(page, err) {
				return
			}
		}
	}
}

type lastWriterWins struct{ driver.Driver }

func (l lastWriterWins) Documents() driver.Documents { return carelessDocuments{l.Driver.Documents()} }

type carelessDocuments struct{ driver.Documents }

func (c carelessDocuments) Put(ctx context.Context, space driver.Space, doc driver.Document, _ uint64) (uint64, error) {
	present, err := c.Get(ctx, space, doc.Name)
	if err != nil && job.KindOf(err) != job.NotFound {
		return 0, err
	}
	return c.Documents.Put(ctx, space, doc, present.Version)
}

type deafDocuments struct{ driver.Driver }

func (d deafDocuments) Documents() driver.Documents { return snapshotDocuments{d.Driver.Documents()} }

type snapshotDocuments struct{ driver.Documents }

func (s snapshotDocuments) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) {
		synced := false
		for c, err := range s.Documents.Watch(ctx, space) {
			if synced && err == nil {
				continue
			}
			synced = synced || c.Synced
			if !yield(c, err) {
				return
			}
		}
	}
}
