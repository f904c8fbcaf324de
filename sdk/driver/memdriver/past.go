package memdriver

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A stamp remembers one op, so that its retry is answered in the same way: an
// ending by the nonce of its token, everything else by Op.Request. It is a
// tombstone when it also stands for a job that ended.
type stamp struct {
	key     stampKey
	kind    driver.OpKind
	must    driver.Precondition
	outcome job.Outcome
	token   job.Token
	result  driver.Result
	at      time.Time
	job     *past // the job that this op ended, if it did
}

type stampKey struct {
	job   job.ID // zero for an answer to a claim
	stamp [16]byte
}

// A past is what is left of a job that ended. It is there while its tombstone
// is, or its final record.
type past struct {
	record   driver.Record // Complete
	details  []byte
	attached map[string][]byte
	token    job.Token // that ended it; zero if none did

	tombstone bool
	final     bool
	until     time.Time // of the final record
	size      int64
}

// A memory is the stamps of a board, oldest first.
type memory struct {
	stamps map[stampKey]*stamp
	order  []*stamp
	finals []*past // oldest first
	bytes  int64   // of finals
	next   time.Time
}

func newMemory() memory { return memory{stamps: map[stampKey]*stamp{}} }

func (m *memory) add(s *stamp) {
	m.stamps[s.key] = s
	m.order = append(m.order, s)
}

// keyOf returns what an op is recognised by; false: by nothing.
func keyOf(op *driver.Op) (stampKey, bool) {
	switch {
	case op.Kind == driver.Extend:
		return stampKey{}, false
	case endsByToken(op):
		return stampKey{op.Job, op.Token.Nonce}, true
	}
	return stampKey{op.Job, op.Request}, op.Request != [16]byte{}
}

func endsByToken(op *driver.Op) bool { return op.Precondition.ByToken() && op.Kind != driver.Update }

// repeat answers an op that was done before.
func (m *memory) repeat(op *driver.Op) (driver.Result, bool) {
	key, ok := keyOf(op)
	s := m.stamps[key]
	if !ok || s == nil || s.kind != op.Kind || s.outcome != outcomeOf(op) {
		return driver.Result{}, false
	}
	if endsByToken(op) && (s.token != op.Token || s.must != op.Precondition) {
		return driver.Result{}, false
	}
	r := s.result
	r.Repeated = true
	return r, true
}

// outcomeOf returns how the op ends the job.
func outcomeOf(op *driver.Op) job.Outcome {
	switch {
	case op.Kind != driver.Remove:
		return job.NoOutcome
	case op.Ending == nil:
		return job.Consumed
	}
	return op.Ending.Outcome
}

// remember keeps the answer to an op; ended is the job that it ended, or nil.
func (b *board) remember(op *driver.Op, r *driver.Result, ended *past) {
	key, ok := keyOf(op)
	if !ok && ended == nil {
		return
	}
	s := &stamp{key: key, kind: op.Kind, must: op.Precondition, outcome: outcomeOf(op), result: *r, at: time.Now(), job: ended}
	if endsByToken(op) {
		s.token = op.Token
	}
	b.past.add(s)
	b.forget(s.at)
}

// forget drops what is older than the board remembers or more than it may.
func (b *board) forget(now time.Time) {
	m := &b.past
	for len(m.order) > 0 && (now.Sub(m.order[0].at) >= b.spec.Window || int64(len(m.order)) > b.spec.MaxTombstones) {
		s := m.order[0]
		m.order = m.order[1:]
		if m.stamps[s.key] == s {
			delete(m.stamps, s.key)
		}
		if s.job != nil {
			s.job.tombstone = false
			b.bury(s.job)
		}
	}
	over := func() bool {
		return b.spec.MaxFinals > 0 && int64(len(m.finals)) > b.spec.MaxFinals ||
			b.spec.MaxFinalBytes > 0 && m.bytes > b.spec.MaxFinalBytes
	}
	for over() {
		b.dropFinal(m.finals[0])
		m.finals = m.finals[1:]
	}
	if len(m.finals) > 0 && !now.Before(m.next) {
		b.expireFinals(now)
	}
}

// expireFinals goes through all final records, and notes when the next is due.
func (b *board) expireFinals(now time.Time) {
	m := &b.past
	m.next = now.Add(24 * time.Hour)
	m.finals = slices.DeleteFunc(m.finals, func(p *past) bool {
		if now.Before(p.until) {
			if p.until.Before(m.next) {
				m.next = p.until
			}
			return false
		}
		b.dropFinal(p)
		return true
	})
}

// dropFinal takes a final record away; its tombstone stays.
func (b *board) dropFinal(p *past) {
	if !p.final {
		return // purged
	}
	b.past.bytes -= p.size
	p.final, p.details, p.attached = false, nil, nil
	p.record.Final, p.record.Status = nil, nil
	p.record.Posting = bare(p.record.Posting)
	b.bury(p)
}

// bury takes a job that ended out of sight when nothing of it is left.
func (b *board) bury(p *past) {
	if !p.tombstone && !p.final && b.ended[p.record.Posting.ID] == p {
		delete(b.ended, p.record.Posting.ID)
	}
}

// bare is what a tombstone keeps of a posting.
func bare(p driver.Posting) driver.Posting {
	return driver.Posting{ID: p.ID, Name: p.Name, Digest: p.Digest, CreatedAt: p.CreatedAt, Sequence: p.Sequence}
}

func (p *past) view(parts driver.Parts) *driver.Record {
	r := p.record
	if parts&driver.Details != 0 {
		r.Posting.Details = p.details
	}
	if parts&driver.Attached != 0 && p.attached != nil {
		r.Attached = attachments(p.attached)
	}
	if parts&driver.FinalData == 0 {
		r.Final = nil
	}
	return &r
}

func (b *board) remove(op *driver.Op, e *entry, now time.Time) driver.Result {
	owner := b.endClaim(e)
	b.raise(e.limits, -1)
	e.write(op, now)
	delete(b.jobs, op.Job)
	e.record.State, e.record.EndedAt, e.record.Outcome = job.Complete, now.Round(0), outcomeOf(op)
	r := b.changed(op, e, now, owner)
	p := &past{record: e.record, tombstone: true}
	p.record.NotBefore, p.record.Held = time.Time{}, false
	if op.Precondition.ByToken() {
		p.token = op.Token
	}
	b.ended[op.Job] = p
	if op.Ending != nil && op.Ending.Keep > 0 {
		b.keep(p, e, op.Ending, now)
	} else {
		p.record.Status, p.record.Posting = nil, bare(p.record.Posting)
	}
	b.remember(op, &r, p)
	return r
}

// keep makes the final record of a job.
func (b *board) keep(p *past, e *entry, ending *driver.Ending, now time.Time) {
	p.final, p.until = true, now.Add(ending.Keep)
	p.record.Final = bytes.Clone(ending.Data)
	p.size = int64(len(ending.Data) + len(p.record.Status))
	if ending.KeepPosting {
		p.details = e.details
		p.size += int64(len(p.details) + len(p.record.Posting.Extra))
	} else {
		p.record.Posting = bare(p.record.Posting)
	}
	if ending.KeepAttached {
		p.attached = maps.Clone(e.attached)
		for _, data := range p.attached {
			p.size += int64(len(data))
		}
	}
	m := &b.past
	m.finals = append(m.finals, p)
	m.bytes += p.size
	if len(m.finals) == 1 || p.until.Before(m.next) {
		m.next = p.until
	}
}

func (b *board) setAside(op *driver.Op, e *entry, now time.Time) driver.Result {
	owner := b.endClaim(e)
	b.raise(e.limits, -1)
	e.write(op, now)
	e.record.State, e.record.EndedAt = job.Trashed, now.Round(0)
	r := b.changed(op, e, now, owner)
	b.remember(op, &r, nil)
	return r
}

func (b *board) restore(op *driver.Op, now time.Time) driver.Result {
	e := b.jobs[op.Job]
	switch {
	case e == nil || e.record.State != job.Trashed:
		return *b.refuse(op, now, job.NotFound, "there is no such job in the trash")
	case op.Version != 0 && op.Version != e.record.Version:
		return *b.refuse(op, now, job.Aborted, "the job was changed meanwhile")
	}
	b.raise(e.limits, 1) // it was on the board before: no limit keeps it off
	e.write(op, now)
	e.record.State, e.record.EndedAt = job.Unclaimed, time.Time{}
	r := b.changed(op, e, now, "")
	b.remember(op, &r, nil)
	return r
}

func (b *board) purge(op *driver.Op, now time.Time) driver.Result {
	e, p := b.jobs[op.Job], b.ended[op.Job]
	if e == nil && p != nil {
		e = &entry{record: p.record}
	}
	switch {
	case e == nil || e.record.State != job.Trashed && e.record.State != job.Complete:
		return *b.refuse(op, now, job.NotFound, "there is no such job in the trash or among the ended ones")
	case op.Version != 0 && op.Version != e.record.Version:
		return *b.refuse(op, now, job.Aborted, "the job was changed meanwhile")
	}
	delete(b.jobs, op.Job)
	delete(b.ended, op.Job)
	if p != nil {
		b.past.finals = slices.DeleteFunc(b.past.finals, func(f *past) bool { return f == p })
		b.dropFinal(p)
	}
	e.record.State, e.record.Outcome, e.record.EndedAt = job.Unknown, job.Purged, now.Round(0)
	r := b.changed(op, e, now, "")
	b.remember(op, &r, nil)
	return r
}
