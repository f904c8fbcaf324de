package memdriver

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// A stamp remembers one op, so that its retry is answered in the same way. It is a
// tombstone when it also stands for a job that ended.
type stamp struct {
	transition.Stamp
	claims []driver.Claimed // of the answer to a claim
	given  bool             // it was given again: no more claims are added
	at     time.Time
	job    *past // the job that this op ended, if it did
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
	stamps map[transition.Key]*stamp
	order  []*stamp
	finals []*past // oldest first
	bytes  int64   // of finals
	next   time.Time
}

func newMemory() memory { return memory{stamps: map[transition.Key]*stamp{}} }

func (m *memory) add(s *stamp) {
	m.stamps[s.Key] = s
	m.order = append(m.order, s)
}

// stamp returns what is kept under a key.
func (m *memory) stamp(key transition.Key) transition.Stamp {
	if s := m.stamps[key]; s != nil {
		return s.Stamp
	}
	return transition.Stamp{}
}

// remember keeps the stamp of what was done, and the tombstone of what ended.
func (b *board) remember(plan *transition.Plan, now time.Time) {
	s := &stamp{Stamp: plan.Stamp, at: now}
	if plan.Do == driver.Remove {
		s.Key.Job, s.job = plan.Job, b.ended[plan.Job]
	}
	if s.Kind != 0 || s.job != nil {
		b.past.add(s)
		b.forget(now)
	}
}

// forget drops what is older than the board remembers or more than it may.
func (b *board) forget(now time.Time) {
	m := &b.past
	for len(m.order) > 0 && (now.Sub(m.order[0].at) >= b.spec.Window || int64(len(m.order)) > b.spec.MaxTombstones) {
		s := m.order[0]
		m.order = m.order[1:]
		if m.stamps[s.Key] == s {
			delete(m.stamps, s.Key)
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

// bury forgets a job that ended when neither tombstone nor final record is left.
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
	} else {
		r.EndedBy = p.token
	}
	return &r
}

// end takes a job off the board for good.
func (b *board) end(plan *transition.Plan, e *entry, now time.Time) {
	e.record.EndedAt, e.record.Outcome = plan.At, plan.Ending.Outcome
	p := &past{record: e.record, tombstone: true, token: plan.EndedBy}
	delete(b.jobs, plan.Job)
	b.ended[plan.Job] = p
	if plan.Ending.Keep == 0 {
		p.record.Status, p.record.Posting = nil, bare(p.record.Posting)
		return
	}
	p.final, p.until = true, now.Add(plan.Ending.Keep)
	p.record.Final = bytes.Clone(plan.Ending.Data)
	p.size = int64(len(p.record.Final) + len(p.record.Status))
	if plan.Ending.KeepPosting {
		p.details = e.details
		p.size += int64(len(p.details) + len(p.record.Posting.Extra))
	} else {
		p.record.Posting = bare(p.record.Posting)
	}
	if plan.Ending.KeepAttached {
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

// purge removes everything of a job but its stamps.
func (b *board) purge(plan *transition.Plan, e *entry) {
	p := b.ended[plan.Job]
	delete(b.jobs, plan.Job)
	delete(b.ended, plan.Job)
	if p != nil {
		b.past.finals = slices.DeleteFunc(b.past.finals, func(f *past) bool { return f == p })
		b.dropFinal(p)
	}
	e.record.Outcome, e.record.EndedAt = job.Purged, plan.At
}
