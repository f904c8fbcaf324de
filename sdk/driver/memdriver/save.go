package memdriver

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Save writes all that d, which Open returned, keeps of a board and of its
// documents, as one JSON object. A driver that keeps boards in files needs no
// more: see examples/driver-go. The empty name stands for the documents of no
// board. What watchers were told is not saved: they have to scan again.
func Save(d driver.Driver, board string, w io.Writer) error {
	s, ok := d.(*store)
	if !ok {
		return fmt.Errorf("save board %q: a %T is not this driver's", board, d)
	}
	out := saved{Store: s.id, Name: board}
	s.mu.Lock()
	b := s.boards[board]
	if b == nil {
		b = s.loaded[board]
	}
	s.mu.Unlock()
	if b != nil {
		out.Board = b.save(time.Now())
	}
	out.Documents, out.DocumentVersion = s.documents.save(board)
	return json.NewEncoder(w).Encode(out)
}

// Load reads into d, which Open returned, what Save wrote. It comes before the
// first OpenBoard. A lease has as much left as it had when it was saved.
func Load(d driver.Driver, r io.Reader) error {
	s, ok := d.(*store)
	if !ok {
		return fmt.Errorf("load a board: a %T is not this driver's", d)
	}
	var in saved
	if err := json.NewDecoder(r).Decode(&in); err != nil {
		return fmt.Errorf("load a board: %w", err)
	}
	s.id = in.Store
	s.documents.load(in.Documents, in.DocumentVersion)
	if in.Board == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded == nil {
		s.loaded = map[string]*board{}
	}
	s.loaded[in.Name] = in.Board.load(time.Now())
	return nil
}

// A saved is what Save writes.
type saved struct {
	Store           [8]byte
	Name            string
	Board           *savedBoard // nil: only documents
	Documents       []savedDocument
	DocumentVersion uint64
}

type savedDocument struct {
	Space    driver.Space
	Document driver.Document
}

type savedBoard struct {
	Generation uint64
	Position   driver.Position
	Sequence   uint64
	Epoch      uint64
	Jobs       []savedJob
	Ended      []savedPast // final records first, oldest first
	Stamps     []savedStamp
}

type savedJob struct {
	Record driver.Record // with its details and attached records
	Holder *savedHolder
	Limits []driver.Limit
}

type savedHolder struct {
	Owner    string
	Token    job.Token
	Lease    time.Duration
	NoExpiry bool
	Left     time.Duration
	Since    time.Time
	Limits   []driver.Limit
}

type savedPast struct {
	Record    driver.Record
	Token     job.Token
	Tombstone bool
	Final     bool
	Until     time.Time
	Size      int64
}

type savedStamp struct {
	Job     job.ID
	Stamp   [16]byte
	Kind    driver.OpKind
	Must    driver.Precondition
	Outcome job.Outcome
	Token   job.Token
	Result  driver.Result
	At      time.Time
	Ended   bool // it stands for the job that ended
}

func (b *board) save(now time.Time) *savedBoard {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := &savedBoard{Generation: b.generation, Position: b.position, Sequence: b.sequence, Epoch: b.epoch}
	for _, e := range b.jobs {
		j := savedJob{Record: whole(e.record, e.details, e.attached), Limits: e.limits}
		if h := e.holder; h != nil {
			j.Holder = &savedHolder{h.owner, h.token, h.lease, h.noExpiry, h.ends.Sub(now), h.since, h.limits}
		}
		out.Jobs = append(out.Jobs, j)
	}
	past := func(p *past) {
		out.Ended = append(out.Ended, savedPast{whole(p.record, p.details, p.attached), p.token, p.tombstone, p.final, p.until, p.size})
	}
	for _, p := range b.past.finals {
		past(p)
	}
	for _, p := range b.ended {
		if !p.final {
			past(p)
		}
	}
	for _, s := range b.past.order {
		ended := s.job != nil && b.ended[s.key.job] == s.job
		out.Stamps = append(out.Stamps, savedStamp{s.key.job, s.key.stamp, s.kind, s.must, s.outcome, s.token, s.result, s.at, ended})
	}
	return out
}

func whole(r driver.Record, details []byte, attached map[string][]byte) driver.Record {
	r.Posting.Details, r.Attached = details, attachments(attached)
	return r
}

// parts takes a whole record apart.
func parts(r driver.Record) (record driver.Record, details []byte, attached map[string][]byte) {
	details = r.Posting.Details
	for _, a := range r.Attached {
		if attached == nil {
			attached = map[string][]byte{}
		}
		attached[a.Name] = a.Data
	}
	r.Posting.Details, r.Attached = nil, nil
	return r, details, attached
}

func (in *savedBoard) load(now time.Time) *board {
	b := newBoard()
	b.generation, b.position, b.sequence, b.epoch = in.Generation, in.Position, in.Sequence, in.Epoch
	for _, j := range in.Jobs {
		e := &entry{limits: j.Limits}
		e.record, e.details, e.attached = parts(j.Record)
		if h := j.Holder; h != nil {
			e.holder = &holder{h.Owner, h.Token, h.Lease, h.NoExpiry, now.Add(h.Left), h.Since, h.Limits}
			b.raise(h.Limits, 1)
		}
		if e.record.State != job.Trashed {
			b.raise(e.limits, 1)
		}
		b.jobs[e.record.Posting.ID] = e
	}
	for _, s := range in.Ended {
		p := &past{token: s.Token, tombstone: s.Tombstone, final: s.Final, until: s.Until, size: s.Size}
		p.record, p.details, p.attached = parts(s.Record)
		b.ended[p.record.Posting.ID] = p
		if p.final {
			b.past.finals = append(b.past.finals, p)
			b.past.bytes += p.size
		}
	}
	for _, s := range in.Stamps {
		added := &stamp{
			key: stampKey{s.Job, s.Stamp}, kind: s.Kind, must: s.Must, outcome: s.Outcome, token: s.Token, result: s.Result, at: s.At,
		}
		if s.Ended {
			added.job = b.ended[s.Job]
		}
		b.past.add(added)
	}
	return b
}

func (d *documents) save(board string) ([]savedDocument, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []savedDocument
	for at, doc := range d.docs {
		if at.space.Board == board && !doc.Expired(time.Now()) {
			list = append(list, savedDocument{at.space, doc})
		}
	}
	return list, d.version
}

func (d *documents) load(list []savedDocument, version uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version = max(d.version, version)
	for _, s := range list {
		d.docs[place{s.Space, s.Document.Name}] = s.Document
	}
}

// takeLoaded returns a board that Load brought, or a new one. The caller has s.mu.
func (s *store) takeLoaded(name string) *board {
	b := s.loaded[name]
	delete(s.loaded, name)
	if b == nil {
		b = newBoard()
	}
	return b
}
