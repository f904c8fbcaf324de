package board

import (
	"time"

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
func jobAndStatus(e *index.Entry) (*job.Job, status) {
	j := &job.Job{
		ID: e.ID, Name: e.Name, State: job.Unclaimed, Priority: e.Priority,
		Labels: e.Labels, Sequence: e.Sequence, CreatedAt: shown(e.CreatedAt), ModifiedAt: shown(e.ModifiedAt),
		Attempt: e.Attempt, MaxAttempts: e.MaxAttempts, Held: e.Held,
	}
	if c := e.Claim; c != nil {
		j.State, j.Owner = job.Claimed, c.Owner
		if !c.NoExpiry && !c.Ends.IsZero() {
			j.LeaseExpiresAt = shown(c.Ends)
		}
	} else {
		j.NotBefore = shown(e.NotBefore)
	}
	if len(e.Extra) > 0 {
		j.Book = bookOf(e.Extra)
		w := waitingOf(e.Extra)
		if j.After = w.after; e.Held && len(w.after) > 0 {
			j.NotBefore = shown(w.notBefore)
		}
	}
	s := showStatus(j, e.Status)
	if e.Claim != nil && e.Claim.Foreign {
		j.ClaimedAt, j.ClaimLease = time.Time{}, 0 // what the record knows is of an earlier claim
	}
	return j, s
}

// shown is a time as people see it: in microseconds, which is as exact as the
// index knows it, so that one job has one time in every answer.
func shown(t time.Time) time.Time { return t.Round(0).UTC().Truncate(time.Microsecond) }

func bookOf(record []byte) (book job.Book) {
	_ = eachField(record, func(tag uint64, data, _ []byte) error { // it never leaves this process
		switch tag {
		case entryBookUUID:
			book.UUID = string(data)
		case entryBookName:
			book.Name = string(data)
		}
		return nil
	})
	return book
}

// showStatus shows what a status record says of the past, and returns it. One that
// cannot be read says nothing.
func showStatus(j *job.Job, record []byte) status {
	if len(record) == 0 {
		return status{}
	}
	s, err := readStatus(record)
	if err != nil {
		return status{}
	}
	j.Attempt, j.LastReason, j.Reasons, j.StartedAt = s.attempt, s.last, s.reasons, shown(s.startedAt)
	j.OperationStatus, j.OperationPriority = s.operations.status(), s.operationPriority
	j.LogSerial = s.log.last
	if s.hasPriority {
		j.Priority = s.priority
	}
	showAttempts(j, &s)
	return s
}

// showOperations shows the operations of a job, as far as the record has what
// belongs to them.
func showOperations(j *job.Job, rec *driver.Record, status []byte) {
	if s, err := readStatus(status); err == nil {
		steps := stepsOf(rec, &s)
		j.Operations = steps.List()
	}
}

// jobOfRecord shows a job in any state, with the details if the record has
// them.
func (b *Board) jobOfRecord(rec *driver.Record, now time.Time) *job.Job {
	j := jobOf(b.entryOf(rec, now))
	j.State, j.Outcome, j.EndedAt = rec.State, rec.Outcome, shown(rec.EndedAt)
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
