package board

import (
	"context"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// CorruptJob is what another program put among the jobs of a board and nobody here can
// read.
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
