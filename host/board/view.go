package board

import (
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// jobOf shows an open job as people see it, without details.
func jobOf(e *index.Entry) *job.Job {
	j, _ := jobAndStatus(e)
	return j
}

// jobAndStatus is jobOf with what the entry's status record says; nothing if it cannot
// be read.
func jobAndStatus(e *index.Entry) (*job.Job, record.Status) {
	j := &job.Job{
		ID: e.ID, Name: e.Name, State: job.Unclaimed, Priority: e.Priority,
		Labels: e.Labels, Sequence: e.Sequence, CreatedAt: record.Shown(e.CreatedAt), ModifiedAt: record.Shown(e.ModifiedAt),
		Attempt: e.Attempt, MaxAttempts: e.MaxAttempts, Held: e.Held,
	}
	if c := e.Claim; c != nil {
		j.State, j.Owner = job.Claimed, c.Owner
		if !c.NoExpiry && !c.Ends.IsZero() {
			j.LeaseExpiresAt = record.Shown(c.Ends)
		}
	} else {
		j.NotBefore = record.Shown(e.NotBefore)
	}
	if len(e.Extra) > 0 {
		r := rareOf(e.Extra)
		j.Book, j.Timeout, j.Unique, j.Batch = r.book, r.timeout, r.unique, r.batch
		if j.After = r.after; e.Held && len(r.after) > 0 {
			j.NotBefore = record.Shown(r.notBefore)
		}
	}
	s := showStatus(j, e.Status)
	if e.Claim != nil && e.Claim.Foreign {
		j.ClaimedAt, j.ClaimLease = time.Time{}, 0 // what the record knows is of an earlier claim
	}
	return j, s
}

// showStatus shows what a status record says of the past, and returns it. One that
// cannot be read says nothing.
func showStatus(j *job.Job, encoded []byte) record.Status {
	if len(encoded) == 0 {
		return record.Status{}
	}
	s, err := record.ReadStatus(encoded)
	if err != nil {
		return record.Status{}
	}
	j.Attempt, j.LastReason, j.Reasons, j.StartedAt = s.Attempt, s.Last, s.Reasons, record.Shown(s.StartedAt)
	j.OperationStatus, j.OperationPriority = s.Operations.Status(), s.OperationPriority
	j.LogSerial = s.Log.Last
	if s.HasPriority {
		j.Priority = s.Priority
	}
	record.ShowAttempts(j, &s)
	return s
}

// showOperations shows the operations of a job, as far as the record has what
// belongs to them.
func showOperations(j *job.Job, rec *driver.Record, status []byte) {
	if s, err := record.ReadStatus(status); err == nil {
		steps := stepsOf(rec, &s)
		j.Operations = steps.List()
	}
}

// jobOfRecord shows a job in any state, with the details if the record has
// them.
func (b *Board) jobOfRecord(rec *driver.Record, now time.Time) *job.Job {
	return recordShown(b.entryOf(rec, now), rec)
}

// recordShown is jobOfRecord where the entry is made already.
func recordShown(e *index.Entry, rec *driver.Record) *job.Job {
	j := jobOf(e)
	j.State, j.Outcome, j.EndedAt = rec.State, rec.Outcome, record.Shown(rec.EndedAt)
	if len(rec.Final) > 0 {
		j.Owner = ownerOfFinal(rec.Final)
	}
	if rec.State == job.Complete || rec.State == job.Trashed {
		j.NotBefore, j.Held = time.Time{}, false
	}
	showDetails(j, &rec.Posting)
	return j
}

func showDetails(j *job.Job, p *driver.Posting) {
	switch {
	case p.Details == nil:
	case p.Encoding == job.JSON:
		j.Details = p.Details
	default:
		j.RawDetails = &job.Raw{Encoding: p.Encoding, Data: p.Details}
	}
}
