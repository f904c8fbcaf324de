package board

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Get returns jobs as they stand in the store, in the order asked for. One that
// ended is Complete, without details unless the board keeps a history. With a wait
// it answers when every job that is known has ended or is in the trash; when the
// wait is over first, there are no results.
func (b *Board) Get(ctx context.Context, ids []job.ID, o GetOptions) ([]JobResult, error) {
	if len(ids) > MaxBatch {
		return nil, job.Errorf(job.Invalid, "uuids: %d are too many: want at most %d", len(ids), MaxBatch)
	}
	if _, err := b.serving(ctx); err != nil {
		return nil, err
	}
	waiting, cancel := waitUntil(ctx, o.Wait)
	defer cancel()
	for {
		results, open, err := b.get(ctx, ids, o)
		if err != nil || o.Wait <= 0 || len(open) == 0 {
			return results, err
		}
		stop := idle(ctx)
		err = b.index.Left(waiting, open)
		stop()
		if err != nil {
			return nil, nil // the wait is over: an empty answer
		}
	}
}

// get returns the jobs and which of them are open.
func (b *Board) get(ctx context.Context, ids []job.ID, o GetOptions) ([]JobResult, []job.ID, error) {
	parts := driver.FinalData
	if o.Details {
		parts |= driver.Details
	}
	records, err := b.readNoted(ctx, ids, parts, b.absorbNew)
	if err == nil {
		err = b.resolve(ctx, records, parts)
	}
	if err != nil {
		return nil, nil, err
	}
	if o.AsItWas {
		if err := b.readWhole(ctx, ids, records); err != nil {
			return nil, nil, err
		}
	} else if o.Operations || o.Log {
		if err := b.addAttached(ctx, records, o); err != nil {
			return nil, nil, err
		}
	}
	now := time.Now()
	results := make([]JobResult, len(ids))
	var open []job.ID
	for i := range records {
		rec := &records[i]
		if rec.State == job.Unknown {
			results[i].Err = absent(ids[i], rec)
			continue
		}
		if isOpen(rec.State) {
			open = append(open, ids[i])
		}
		results[i].Job = b.jobOfRecord(rec, now)
		if o.Operations {
			showOperations(results[i].Job, rec, rec.Status)
		}
		if o.Log {
			results[i].Err = b.showLog(results[i].Job, rec.Attached)
		}
		if o.AsItWas && results[i].Err == nil {
			results[i].Job.AsItWas, results[i].Err = asItWas(rec)
		}
	}
	return results, open, nil
}

// maxRereads is how often jobs are read once more of which something became known while they were
// read, and the store said that there are none.
const maxRereads = 3

// readNoted reads jobs, and the index follows what the store says, so that whoever is told that a
// job is gone does not find it among the open ones afterwards. put takes in those that there are.
func (b *Board) readNoted(ctx context.Context, ids []job.ID, parts driver.Parts, put func(...*driver.Record)) (records []driver.Record, err error) {
	s := b.flight.read()
	defer b.flight.done(s)
	for range 1 + maxRereads {
		before := b.index.Sightings(ids)
		if records, err = b.read(ctx, ids, parts); err != nil || b.notice(ids, before, records, put) {
			break
		}
	}
	return records, err
}

// addAttached reads the attached records of those jobs that have what is wanted:
// results of operations, or a log.
func (b *Board) addAttached(ctx context.Context, records []driver.Record, o GetOptions) error {
	var of []int
	var ids []job.ID
	for i := range records {
		s, err := record.ReadStatus(records[i].Status)
		if err == nil && (o.Operations && s.ResultBytes > 0 || o.Log && s.Log.Last > 0) {
			of, ids = append(of, i), append(ids, records[i].Posting.ID)
		}
	}
	attached, err := b.readAttached(ctx, ids)
	for k, i := range of {
		if err == nil {
			records[i].Attached = attached[k]
		}
	}
	return err
}

// readAttached reads the attached records of jobs.
func (b *Board) readAttached(ctx context.Context, ids []job.ID) (attached [][]driver.Attachment, err error) {
	const most = 8 // each may have megabytes, since the log comes with them
	for part := range slices.Chunk(ids, most) {
		read, err := b.read(ctx, part, driver.Attached)
		if err != nil {
			return nil, err
		}
		for k := range read {
			attached = append(attached, read[k].Attached)
		}
	}
	return attached, nil
}

// notice corrects the index where a read shows it to be behind. It reports whether it could: which
// of the two is behind is open where the store did not know a job that was changed meanwhile.
func (b *Board) notice(ids []job.ID, before []index.Sighting, records []driver.Record, put func(...*driver.Record)) bool {
	whole := true
	for i := range records {
		if records[i].State != job.Unknown {
			put(&records[i])
			continue
		}
		if _, known := b.index.Get(ids[i]); known {
			b.missing(ids[i], before[i])
			_, known = b.index.Get(ids[i])
			whole = whole && !known
		}
	}
	return whole
}

// absorbNew is absorb of records of which the index mostly has what they say.
func (b *Board) absorbNew(records ...*driver.Record) {
	for _, rec := range records {
		if e, known := b.index.Get(rec.Posting.ID); known != isOpen(rec.State) || known && e.Position < rec.Position {
			b.absorb(rec)
		}
	}
}

// CorruptJob is something among a board's jobs in the store that boardd cannot read as a
// job. Another program put it there.
type CorruptJob struct {
	ID     job.ID // zero: it cannot be told
	Key    string // where it lies, in the store's own words
	Reason string
}

// corrupt says of a job that the store has something under its uuid that cannot be
// read as one.
func corrupt(id job.ID, reason string) error {
	return &job.Error{Job: id, Kind: job.Corrupt, Message: "what the store has of the job cannot be read: " + reason}
}

// absent says why a record shows no job.
func absent(id job.ID, rec *driver.Record) error {
	if rec.Corrupt != "" {
		return corrupt(id, rec.Corrupt)
	}
	return notFound(id)
}

// Corrupt returns what lies among the open jobs and cannot be read, as far as is known,
// at most driver.MaxBad of it.
func (b *Board) Corrupt(ctx context.Context) ([]CorruptJob, error) {
	stored, err := b.stored(ctx)
	if err != nil || stored.Bad == 0 {
		return nil, err
	}
	var list []CorruptJob
	for page, err := range b.driver.Scan(ctx, b.spec.Key, driver.ScanRequest{Set: driver.CorruptJobs}) {
		if job.KindOf(err) == job.Invalid || job.KindOf(err) == job.Unsupported {
			break // the driver names them only among others
		}
		if err != nil {
			return nil, err
		}
		for _, bad := range page.Bad {
			if len(list) == driver.MaxBad {
				return list, nil
			}
			list = append(list, CorruptJob{ID: bad.Job, Key: bad.Key, Reason: bad.Problem})
		}
	}
	return list, nil
}
