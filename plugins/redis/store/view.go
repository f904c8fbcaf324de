package store

import (
	"bytes"
	"time"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A storedJob is what lies in Redis of one job at one moment. What is not there is
// nil.
type storedJob struct {
	id       string
	state    job.State // Unclaimed: on the board, claimed or not
	posting  []byte
	meta     []byte
	owner    []byte
	left     time.Duration // of the owner key; below 0: it has no end
	modified []byte
	past     []byte
	final    []byte
	attached []driver.Attachment
}

// scene is what a stored job is looked at with.
type scene struct {
	now        time.Time
	generation uint64
	window     time.Duration
	left       error // of a read of jobs by their uuids, see transition.Passage
}

// record shows a job as it stands, also where other programs did something that
// our own records do not say yet. nil: nothing is known of it. An error is a
// posting that cannot be read.
func (s *storedJob) record(at scene, parts driver.Parts) (*driver.Record, error) {
	switch s.state {
	case job.Unclaimed:
		return s.onBoard(at, parts)
	case job.Trashed:
		return s.inTrash(parts)
	}
	return s.complete(at, parts)
}

func (s *storedJob) open(parts driver.Parts) (*driver.Record, meta, error) {
	posting, err := decodePosting(s.id, s.posting, parts)
	if err != nil {
		return nil, meta{}, err
	}
	m, ok := decodeMeta(s.meta)
	if !ok {
		m = meta{} // made by another program
	}
	r := &driver.Record{
		Posting: posting, State: job.Unclaimed, Status: m.status, Version: max(m.version, 1),
		Position: driver.Position(m.position), ModifiedAt: m.modified,
	}
	if r.ModifiedAt.IsZero() {
		r.ModifiedAt = posting.CreatedAt
	}
	if parts&driver.Attached != 0 {
		r.Attached = s.attached
	}
	return r, m, nil
}

func (s *storedJob) inTrash(parts driver.Parts) (*driver.Record, error) {
	r, m, err := s.open(parts)
	if err != nil {
		return nil, err
	}
	r.State, r.EndedAt, r.Held, r.NotBefore = job.Trashed, m.ended, m.held, m.notBefore
	if r.EndedAt.IsZero() { // by TaskFlow, which writes last_modified as it does so
		r.EndedAt = r.ModifiedAt
		if at, _, _, err := taskflow.DecodeModified(s.modified); err == nil && at.After(r.EndedAt) {
			r.EndedAt = at
		}
	}
	return r, nil
}

func (s *storedJob) onBoard(at scene, parts driver.Parts) (*driver.Record, error) {
	r, m, err := s.open(parts)
	if err != nil {
		return nil, err
	}
	r.Held, r.NotBefore = m.held, m.notBefore
	holder, stands := s.holder(&m, at)
	if r.Holder = holder; holder != nil {
		r.State = job.Claimed
	}
	if !stands && s.meta != nil {
		r.Version++ // as it will be when our own records say so
	}
	return r, nil
}

// holder returns who has the job, and whether our own record says the same.
func (s *storedJob) holder(m *meta, at scene) (*driver.Holder, bool) {
	key := string(s.owner)
	if m.claim && s.ours(m, at) {
		h := &driver.Holder{Owner: m.owner, Token: m.token, Since: m.since, NoExpiry: m.noExpiry}
		switch {
		case key == m.owner && s.left < 0:
			h.NoExpiry = true
		case key == m.owner && s.left > 0:
			h.NoExpiry, h.Remaining = false, s.left
		default: // it ran out
			h.NoExpiry, h.Remaining = false, min(m.deadline.Sub(at.now), 0)
		}
		return h, true
	}
	if s.owner == nil || key == holder || m.claim && key == m.owner && s.ofBefore(m, at) {
		return nil, !m.claim && !m.foreign
	}
	h := &driver.Holder{Owner: key, Foreign: true, NoExpiry: s.left < 0}
	if !h.NoExpiry {
		h.Remaining = max(s.left, time.Millisecond)
	}
	known := m.foreign && m.owner == key && bytes.Equal(m.extra, s.modified)
	if known {
		h.Since = m.since
	}
	return h, known
}

// reconciled reports whether our own record of a job on the board says all that
// TaskFlow's keys say, so that the script has nothing to reconcile.
func (s *storedJob) reconciled(at scene) bool {
	m, ok := decodeMeta(s.meta)
	if !ok {
		return false
	}
	who, stands := s.holder(&m, at)
	waits := m.held || m.notBefore.After(at.now)
	return stands && (who != nil || s.owner != nil || !waits) && !m.leaseMoved(s, at)
}

// leaseMoved reports whether another program moved the end of a claim's lease, as
// lua/reconcile.lua finds out.
func (m *meta) leaseMoved(s *storedJob, at scene) bool {
	if !m.claim && !m.foreign || string(s.owner) != m.owner || s.left == 0 {
		return false // nobody holds it, or the lease has just run out
	}
	if noExpiry := s.left < 0; noExpiry || m.noExpiry {
		return noExpiry != m.noExpiry
	}
	return at.now.Add(s.left).Sub(m.deadline).Abs() > leaseTolerance
}

// ours reports whether the claim of the meta still stands, as lua/reconcile.lua
// does.
func (s *storedJob) ours(m *meta, at scene) bool {
	return bytes.HasSuffix(s.modified, m.token.Nonce[:]) && m.token.Generation == at.generation &&
		(s.owner == nil || string(s.owner) == m.owner || string(s.owner) == holder)
}

// ofBefore reports whether the claim of the meta would still stand, had the store lost
// nothing. The script takes it away.
func (s *storedJob) ofBefore(m *meta, at scene) bool {
	return bytes.HasSuffix(s.modified, m.token.Nonce[:]) && m.token.Generation != at.generation
}

func (s *storedJob) complete(at scene, parts driver.Parts) (*driver.Record, error) {
	p, ok := decodePast(s.past)
	if !ok {
		return nil, nil
	}
	kept := p.final && p.until.After(at.now)
	if remembered := p.tombstone && p.at.Add(at.window).After(at.now); !kept && !remembered {
		return nil, nil
	}
	id, _ := job.ParseID(s.id)
	r := &driver.Record{
		Posting: driver.Posting{ID: id, Digest: p.digest}, State: job.Complete, Version: p.version, Position: driver.Position(p.position),
		ModifiedAt: p.at, EndedAt: p.at, Outcome: p.outcome,
	}
	if parts&driver.FinalData != 0 {
		r.EndedBy = p.token
	}
	f, ok := decodeFinal(s.final)
	if !kept || !ok {
		return r, nil
	}
	r.Status = f.status
	if parts&driver.FinalData != 0 {
		r.Final = f.data
	}
	if f.keep&keepAttached != 0 && parts&driver.Attached != 0 {
		r.Attached = s.attached
	}
	if f.posting == nil {
		return r, nil
	}
	posting, err := decodePosting(s.id, f.posting, parts)
	if err == nil { // else what TaskFlow could not read is not worth an error any more
		r.Posting = posting
		r.Posting.Digest = p.digest
	}
	return r, nil
}
