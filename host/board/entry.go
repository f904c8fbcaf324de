package board

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// The fields of an entry's Extra: what is rarely there and the index need not
// know.
const (
	entryBookUUID  = 1
	entryBookName  = 2
	entryPriority  = 3 // the posting's, where the status record names another
	entryAfter     = 4 // one of the jobs that it waits for
	entryNotBefore = 5 // as posted, of a job that waits for others
	entryTimeout   = 6 // in microseconds
	entryUnique    = 7
	entryWindow    = 8 // of the key, in microseconds
	entryBatch     = 9
)

// entryOf makes what the index is told of a job out of a record that is not
// sparse.
func (b *Board) entryOf(rec *driver.Record, now time.Time) *index.Entry {
	ext, err := record.ReadExtra(rec.Posting.Extra)
	if err != nil {
		b.unreadable(rec.Posting.ID, "posting", err)
	}
	return b.entryWith(rec, &ext, now)
}

// entryWith is entryOf where it is known what the posting's Extra says.
func (b *Board) entryWith(rec *driver.Record, ext *record.Extra, now time.Time) *index.Entry {
	e := b.entryAlone(rec, ext, now)
	if e.Held && len(ext.After) > 0 && isOpen(rec.State) {
		b.waiting.add(rec.Posting.ID, ext.After)
	}
	return e
}

// entryAlone is entryWith of a job that may not be on the board: nobody waits for what it
// waits for.
func (b *Board) entryAlone(rec *driver.Record, ext *record.Extra, now time.Time) *index.Entry {
	p := &rec.Posting
	e := &index.Entry{
		ID: p.ID, Name: p.Name, Priority: p.Priority,
		Labels: ext.Labels, MaxAttempts: ext.MaxAttempts,
		CreatedAt: p.CreatedAt, Sequence: p.Sequence,
	}
	if p.Book != (job.Book{}) {
		e.Extra = record.AppendText(record.AppendText([]byte{record.Version}, entryBookUUID, p.Book.UUID), entryBookName, p.Book.Name)
	}
	if len(ext.After) > 0 {
		e.Extra = withVersion(e.Extra)
		for i := range ext.After {
			e.Extra = record.AppendField(e.Extra, entryAfter, record.AppendPrerequisite(nil, &ext.After[i]))
		}
		e.Extra = record.AppendTime(e.Extra, entryNotBefore, ext.NotBefore)
	}
	if ext.Timeout != 0 {
		e.Extra = record.AppendNumber(withVersion(e.Extra), entryTimeout, ext.Timeout.Microseconds())
	}
	if u := &ext.Unique; u.Key != "" {
		e.Extra = record.AppendNumber(record.AppendText(withVersion(e.Extra), entryUnique, u.Key), entryWindow, u.Window.Microseconds())
	}
	if ext.Batch != "" {
		e.Extra = record.AppendText(withVersion(e.Extra), entryBatch, ext.Batch)
	}
	b.renew(e, rec, p.Priority, now)
	return e
}

// withVersion begins an Extra, if nothing did.
func withVersion(extra []byte) []byte {
	if len(extra) == 0 {
		return []byte{record.Version}
	}
	return extra
}

// renew writes into an entry what changes during a job's life. own is the posting's
// priority. The index keeps the entry, so bytes and texts are cloned: they must not
// keep the message in memory that the record came in.
func (b *Board) renew(e *index.Entry, rec *driver.Record, own job.Priority, now time.Time) {
	b.setStatus(e, bytes.Clone(rec.Status), own)
	e.ModifiedAt = rec.ModifiedAt
	if e.ModifiedAt.IsZero() {
		e.ModifiedAt = e.CreatedAt
	}
	e.Version, e.Position = rec.Version, rec.Position
	e.NotBefore, e.Held = rec.NotBefore, rec.Held
	e.Claim = nil
	if h := rec.Holder; h != nil && rec.State == job.Claimed {
		e.Claim = &index.Claim{
			Owner: strings.Clone(h.Owner), Token: h.Token, Foreign: h.Foreign, NoExpiry: h.NoExpiry, Since: h.Since,
		}
		if !h.NoExpiry {
			e.Claim.Ends = now.Add(h.Remaining)
		}
	}
}

// setStatus sets what an entry shows of a status record. The posting's own
// priority counts where the record names none.
func (b *Board) setStatus(e *index.Entry, encoded []byte, own job.Priority) {
	e.Status, e.Attempt, e.OperationPriority, e.Priority = encoded, 0, 0, own
	if len(encoded) == 0 {
		return
	}
	s, err := record.ReadStatus(encoded)
	if err != nil {
		b.unreadable(e.ID, "status", err)
		return
	}
	e.Attempt, e.OperationPriority = s.Attempt, s.OperationPriority
	if s.HasPriority && s.Priority != own {
		if e.Priority = s.Priority; ownPriority(e) != own { // what came out of the index says it already
			e.Extra = record.AppendField(slices.Clip(withVersion(e.Extra)), entryPriority, []byte{byte(own)})
		}
	}
}

// ownPriority returns the priority of an entry's posting.
func ownPriority(e *index.Entry) job.Priority {
	own := e.Priority
	_ = record.EachField(e.Extra, func(tag uint64, data, _ []byte) error { // it never leaves this process
		if tag == entryPriority && len(data) == 1 {
			own = job.Priority(data[0])
		}
		return nil
	})
	return own
}

func (b *Board) unreadable(id job.ID, what string, err error) {
	b.metrics.BadRecords.Add(1)
	b.log.Warn("a record cannot be read and counts as empty", "job", id.String(), "record", what, "error", err)
}

// absorb tells the index how jobs stand, from records without gaps (not sparse).
func (b *Board) absorb(records ...*driver.Record) {
	now := time.Now()
	var open []*index.Entry
	for _, rec := range records {
		switch rec.State {
		case job.Unclaimed, job.Claimed:
			open = append(open, b.entryOf(rec, now))
		case job.Trashed, job.Complete:
			b.drop(rec.Posting.ID, rec.Position)
		case job.Unknown:
		}
	}
	if len(open) > 0 {
		b.index.PutAll(open)
	}
}

// drop takes a job out of the index and remembers it for the event that will
// report why.
func (b *Board) drop(id job.ID, position driver.Position) {
	b.waiting.ended(id)
	b.rules.Load().facts.forget(id)
	if e, ok := b.index.Get(id); ok {
		b.takeOff(e, position)
	} else {
		b.index.Remove(id, position)
	}
}

// takeOff takes a job out of the index. It is remembered first: whoever does not find it in the
// index any more has to find it there.
func (b *Board) takeOff(e *index.Entry, position driver.Position) {
	b.leaving.put(e)
	if !b.index.Remove(e.ID, position) {
		b.leaving.remove(e.ID)
		return
	}
	b.batches.left(e)
}

// missing takes a job out of the index that the store does not know any more. It left at some
// position after the one that was known before the store was asked. What became known since is
// not of what the store said: the job may have been posted meanwhile.
func (b *Board) missing(id job.ID, before index.Sighting) {
	if e, ok := b.index.Get(id); ok && before.Known && e.Position == before.Position {
		b.drop(id, e.Position+1)
	}
}

// leaving keeps the entries of jobs that this host took off the board until the watch
// reports that they left: the reported change has only the job's id.
type leaving struct {
	mu   sync.Mutex
	jobs map[job.ID]*index.Entry
}

// maxLeaving bounds what is kept where a watch lags far behind; events of the
// jobs beyond show no more than their ids.
const maxLeaving = 1 << 16

func (l *leaving) put(e *index.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs == nil {
		l.jobs = make(map[job.ID]*index.Entry)
	}
	if len(l.jobs) < maxLeaving {
		l.jobs[e.ID] = e
	}
}

func (l *leaving) remove(id job.ID) *index.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.jobs[id]
	delete(l.jobs, id)
	return e
}

func (l *leaving) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs = nil
}
