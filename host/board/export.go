package board

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// exportChunk is how many jobs are read at once for an export: each may have megabytes.
const exportChunk = 16

// Exported says what an export has.
type Exported struct {
	Open, Trashed, Ended, Documents int64

	Changed bool // the board was changed meanwhile, so that the export is of no one moment
}

// Export gives all that a board keeps to write, line by line: documents, then what ended, the
// trash, and the open jobs in the order in which they were posted, of which it has the ids in
// memory. A job that changes meanwhile is there as it was at some time of the export.
func (b *Board) Export(ctx context.Context, write func(line []byte) error) (Exported, error) {
	if _, err := b.serving(ctx); err != nil {
		return Exported{}, err
	}
	x := exporter{from: keptBoard{b.driver, b.spec.Key}, spaces: exportSpaces}
	line := func(l exportLine) error {
		text, err := json.Marshal(l)
		if err != nil {
			return &job.Error{Op: "export", Kind: job.Internal, Err: err}
		}
		return write(append(text, '\n'))
	}
	x.job = func(r *driver.Record) error { return line(exportLine{Job: exported(r)}) }
	x.document = func(space string, doc *driver.Document) error {
		if !movable(space, doc) {
			return nil
		}
		x.sum.Documents++
		return line(exportLine{Document: &exportedDocument{space, doc.Name, doc.Data}})
	}
	open, before, err := x.open(ctx)
	if err != nil {
		return x.sum, err
	}
	if err := x.documents(ctx); err != nil {
		return x.sum, err
	}
	if err := x.jobs(ctx, open); err != nil {
		return x.sum, err
	}
	_, after, err := x.position(ctx)
	x.sum.Changed = before != after
	return x.sum, err
}

// exporter goes through all that a store keeps of a board.
type exporter struct {
	from     keptBoard
	spaces   []string
	job      func(*driver.Record) error
	document func(space string, doc *driver.Document) error
	sum      Exported
}

// jobs gives what ended, the trash, and the open jobs in an order.
func (x *exporter) jobs(ctx context.Context, open []job.ID) error {
	for _, set := range []driver.Set{driver.EndedJobs, driver.TrashedJobs} {
		if err := x.scan(ctx, set); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(open, exportChunk) {
		if err := x.read(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) scanOf(ctx context.Context, req driver.ScanRequest, take func(driver.Page) error) error {
	for page, err := range x.from.driver.Scan(ctx, x.from.key, req) {
		if err != nil {
			return err
		}
		if err := take(page); err != nil {
			return err
		}
	}
	return nil
}

// position returns how far the board has come.
func (x *exporter) position(ctx context.Context) (none []job.ID, at driver.Position, err error) {
	err = x.scanOf(ctx, driver.ScanRequest{Limit: 1}, func(p driver.Page) error {
		at = p.Position
		return nil
	})
	return nil, at, err
}

// open returns the open jobs in the order in which they were posted, and how far the board
// had come before.
func (x *exporter) open(ctx context.Context) (ids []job.ID, at driver.Position, err error) {
	type place struct {
		id       job.ID
		created  int64
		sequence uint64
	}
	var list []place
	err = x.scanOf(ctx, driver.ScanRequest{}, func(p driver.Page) error {
		at = p.Position
		for i := range p.Records {
			posting := &p.Records[i].Posting
			list = append(list, place{posting.ID, posting.CreatedAt.UnixMicro(), posting.Sequence})
		}
		return nil
	})
	slices.SortFunc(list, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.sequence, b.sequence))
	})
	ids = make([]job.ID, 0, len(list))
	for i := range list {
		if i == 0 || list[i].id != list[i-1].id { // a job may be in two pages
			ids = append(ids, list[i].id)
		}
	}
	return ids, at, err
}

// exportParts are all that there is of a job.
const exportParts = driver.Details | driver.Attached | driver.FinalData

func (x *exporter) scan(ctx context.Context, set driver.Set) error {
	var ids []job.ID // of a page without its larger parts, which may have hundreds of megabytes
	return x.scanOf(ctx, driver.ScanRequest{Set: set}, func(p driver.Page) error {
		ids = ids[:0]
		for i := range p.Records {
			ids = append(ids, p.Records[i].Posting.ID)
		}
		for part := range slices.Chunk(ids, exportChunk) {
			if err := x.read(ctx, part); err != nil {
				return err
			}
		}
		return nil
	})
}

func (x *exporter) read(ctx context.Context, ids []job.ID) error {
	records, err := x.from.read(ctx, ids, exportParts)
	if err != nil {
		return err
	}
	for i := range records {
		r := &records[i]
		switch {
		case r.Corrupt != "":
			return corrupt(r.Posting.ID, r.Corrupt)
		case r.State == job.Unknown:
			continue // it was forgotten meanwhile
		case r.State == job.Complete:
			x.sum.Ended++
		case r.State == job.Trashed:
			x.sum.Trashed++
		default:
			x.sum.Open++
		}
		if err := x.job(r); err != nil {
			return err
		}
	}
	return nil
}

// exportSpaces are the spaces whose documents an export has. Who works on a board, and
// whether it is paused, is no matter of the copy.
var exportSpaces = []string{driver.BookSpace, driver.SettingSpace, tickSpace}

func (x *exporter) documents(ctx context.Context) error {
	for _, name := range x.spaces {
		space := driver.Space{Board: x.from.key, Name: name}
		for after := ""; ; {
			page, err := x.from.driver.Documents().List(ctx, space, after, 8) // a book may have megabytes
			if err != nil {
				return err
			}
			for i := range page {
				after = page[i].Name
				if err := x.document(name, &page[i]); err != nil {
					return err
				}
			}
			if len(page) == 0 {
				break
			}
		}
	}
	return nil
}

// movable reports whether a document belongs into an export. Of the settings that is a
// batch, and a schedule, unless a configuration declares it.
func movable(space string, doc *driver.Document) bool {
	if space != driver.SettingSpace {
		return true
	}
	switch {
	case strings.HasPrefix(doc.Name, batchPrefix):
		return json.Unmarshal(doc.Data, &batchRecord{}) == nil
	case strings.HasPrefix(doc.Name, schedulePrefix):
		var r scheduleRecord
		return json.Unmarshal(doc.Data, &r) == nil && !r.Declared
	}
	return false
}
