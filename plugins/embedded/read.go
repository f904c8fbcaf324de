package embedded

import (
	"context"
	"fmt"
	"maps"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// view reads one board in one transaction.
type view struct {
	board *board
	at    instant
	parts driver.Parts
	table func(n int) *table // of the board, always the same one
}

// instant reads the clocks, for who looks at the board.
func (b *board) instant() instant {
	at := b.store.instant()
	at.generation = b.generation.Load()
	return at
}

func (b *board) view(m *snapshot, parts driver.Parts) *view {
	var tables [inRoot]*table
	return &view{board: b, at: b.instant(), parts: parts, table: func(n int) *table {
		if tables[n] == nil {
			tables[n] = m.table(b, n)
		}
		return tables[n]
	}}
}

// record reads whatever is known of a job, or returns nil.
func (v *view) record(r ref) (*driver.Record, error) {
	if r == 0 {
		return nil, nil
	}
	key := uintKey(r.key())
	value := v.table(bucketOf(r.set())).get(key)
	if value == nil {
		return nil, fmt.Errorf("%s/%d is missing", r.bucket(), r.key())
	}
	rec, err := v.decode(r.set(), key, value)
	if err != nil {
		return nil, fmt.Errorf("%s/%d: %w", r.bucket(), r.key(), err)
	}
	return rec, nil
}

// decode makes a record of a stored one. It is nil where an ended job is no
// longer remembered.
func (v *view) decode(set ref, key, value []byte) (*driver.Record, error) {
	if set == refOpen || set == refTrash {
		var j jobRecord
		if err := j.open(key, value); err != nil {
			return nil, err
		}
		details, err := v.join(&j.posting)
		if err != nil {
			return nil, err
		}
		rec := j.public(v.at)
		return rec, v.addParts(rec, &j.posting, details)
	}
	var e endedRecord
	if err := e.open(key, value); err != nil {
		return nil, err
	}
	switch {
	case !v.board.stands(&e, v.at):
		return nil, nil
	case e.final && !e.keeps(v.at):
		e = e.stripped()
	}
	details, err := v.join(&e.posting)
	if err != nil {
		return nil, err
	}
	rec := e.public(v.parts)
	return rec, v.addParts(rec, &e.posting, details)
}

// join takes in what lies beside a job's record, as far as it is asked for, and returns
// the details.
func (v *view) join(p *posting) ([]byte, error) {
	if p.apart == 0 && (p.details == 0 || v.parts&driver.Details == 0) {
		return nil, nil
	}
	key := uintKey(p.sequence)
	return p.join(key, v.table(inDetails).get(key))
}

// addParts adds to a job's record what is asked for of what lies beside it.
func (v *view) addParts(rec *driver.Record, p *posting, details []byte) error {
	if v.parts&driver.Details != 0 {
		rec.Posting.Details = clone(details)
	}
	if v.parts&driver.Attached == 0 || p.attached == 0 {
		return nil
	}
	key := uintKey(p.sequence)
	cursor := v.table(inAttached).cursor()
	for k, value := cursor.seek(key); len(k) > 8 && string(k[:8]) == string(key); k, value = cursor.next() {
		body, err := unseal(kindAttached, k, value)
		if err != nil {
			return fmt.Errorf("its attached record %q: %w", k[8:], err)
		}
		rec.Attached = append(rec.Attached, driver.Attachment{Name: string(k[8:]), Data: clone(body)})
	}
	if n := uint64(len(rec.Attached)); n != p.attached {
		return fmt.Errorf("it has %d attached records, and %d are there", p.attached, n)
	}
	return nil
}

// Read returns jobs as they stand.
func (s *Store) Read(ctx context.Context, name string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, &job.Error{Kind: job.Interrupted, Err: err}
	}
	b, err := s.board(name)
	if err != nil {
		return nil, err
	}
	refs := make([]ref, len(ids))
	var left error
	prime := func() {
		left = b.state.passage.Left()
		for i, id := range ids {
			refs[i] = b.refs[id]
		}
	}
	records := make([]driver.Record, len(ids))
	err = s.read(prime, func(m *snapshot) error {
		if left != nil {
			return left
		}
		v := b.view(m, parts)
		for i, id := range ids {
			rec, err := v.record(refs[i])
			switch {
			case err != nil:
				return &job.Error{Op: "read", Job: id, Kind: job.Corrupt, Message: "the record cannot be read", Err: err}
			case rec == nil:
				records[i] = driver.Record{Posting: driver.Posting{ID: id}}
			default:
				records[i] = *rec
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// Count returns how many records of each sort the board has. It reads nothing.
func (s *Store) Count(ctx context.Context, name string) (driver.Counts, error) {
	if err := ctx.Err(); err != nil {
		return driver.Counts{}, &job.Error{Kind: job.Interrupted, Err: err}
	}
	b, err := s.board(name)
	if err != nil {
		return driver.Counts{}, err
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	n := b.counts
	c := driver.Counts{
		Open: n.open, Claimed: n.claimed, Trashed: n.trashed, Ended: n.tombstones + n.finals,
		Tombstones: n.tombstones + n.finals + n.answers, Bad: int64(len(b.bad)),
		Finals: n.finals, FinalBytes: n.finalBytes,
		Limits: make(map[string]int64, len(b.limits)),
	}
	maps.Copy(c.Limits, b.limits)
	maps.DeleteFunc(c.Limits, func(key string, _ int64) bool { return transition.OfGroup(key) })
	return c, nil
}
