package embedded

import (
	"context"
	"fmt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// loadPage is how many records are read in one transaction while a board is
// loaded.
const loadPage = 16384

// load fills the board's memory from the file. Nobody changes the board
// meanwhile, since it is not open yet.
func (b *board) load(ctx context.Context) error {
	s := b.store
	b.refs, b.answers, b.limits = map[job.ID]ref{}, map[[16]byte]uint64{}, map[string]int64{}
	b.counts, b.bad, b.exists = counts{}, nil, false
	var f floor // of that moment: another board may be dropped meanwhile
	err := s.read(func() { f = s.floor }, func(m *snapshot) error { return b.loadState(m, f) })
	b.generation.Store(b.state.generation)
	if err != nil || !b.exists {
		return err
	}
	// What is on the board stands above what it once was: it comes last.
	for _, part := range []struct {
		table  int
		record func(key, value []byte) error
	}{
		{inTombstones, b.loadEnded(refTombstone)},
		{inFinals, b.loadEnded(refFinal)},
		{inAnswers, b.loadAnswer},
		{inGroups, b.loadGroup},
		{inTrash, b.loadJob(refTrash)},
		{inJobs, b.loadJob(refOpen)},
	} {
		if err := b.loadTable(ctx, part.table, part.record); err != nil {
			return err
		}
	}
	if len(b.bad) > 0 {
		s.logger.Error("records of a board cannot be read; the others are not concerned",
			"board", b.name, "records", len(b.bad), "first", b.bad[0].Key, "problem", b.bad[0].Problem)
	}
	return nil
}

func (b *board) loadState(m *snapshot, f floor) error {
	b.state = boardState{position: f.position, generation: max(1, f.generation), forgotten: f.position}
	value := m.table(b, inRoot).get(stateKey)
	jobs := m.table(b, inJobs).below()
	if value == nil && m.root == nil {
		return nil
	}
	b.exists = true
	body, err := unseal(kindState, stateKey, value)
	if err == nil {
		err = b.state.decode(body)
	}
	if err != nil {
		return &job.Error{Kind: job.Corrupt, Message: fmt.Sprintf("board %q: its own record cannot be read", b.name), Err: err}
	}
	if jobs != nil {
		if last, _ := jobs.Cursor().Last(); last != nil {
			if n, err := keyUint(last); err == nil {
				b.refs = make(map[job.ID]ref, min(n, uint64(jobs.Stats().KeyN)))
			}
		}
	}
	return nil
}

func (b *board) loadTable(ctx context.Context, n int, record func(key, value []byte) error) error {
	var after []byte
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return &job.Error{Kind: job.Interrupted, Err: err}
		}
		err := b.store.read(nil, func(m *snapshot) error {
			more = false
			cursor := m.table(b, n).cursor()
			seen := 0
			for key, value := cursor.seekAfter(after); key != nil; key, value = cursor.next() {
				if err := record(key, value); err != nil {
					b.bad = append(b.bad, badRecord(bucketNames[n], key, err))
				}
				if seen++; seen == loadPage {
					after, more = append(after[:0], key...), true
					return nil
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func badRecord(bucket, key []byte, err error) driver.BadRecord {
	where := fmt.Sprintf("%s/%x", bucket, key)
	if n, err := keyUint(key); err == nil {
		where = fmt.Sprintf("%s/%d", bucket, n)
	}
	return driver.BadRecord{Key: where, Problem: err.Error()}
}

func (b *board) loadJob(set ref) func(key, value []byte) error {
	var j jobRecord
	raise := func(key []byte, weight int64) {
		if !transition.OfGroup(string(key)) { // what groups count has a table of its own
			b.limits[string(key)] += weight
		}
	}
	return func(key, value []byte) error {
		at, err := keyUint(key)
		if err != nil {
			return err
		}
		if err := j.open(key, value); err != nil {
			// Its uuid can often still be told, so that the job is known to be
			// there, and nobody posts it again.
			if id, ok := likelyID(value); ok && b.refs[id] == 0 {
				b.refs[id] = newRef(set, at)
			}
			return err
		}
		if j.trashed != (set == refTrash) || set == refOpen && j.sequence != at {
			return fmt.Errorf("it belongs elsewhere")
		}
		b.refs[j.id] = newRef(set, at)
		if set == refTrash {
			b.counts.trashed++
			return nil
		}
		b.counts.open++
		if len(j.limits) > 0 {
			_ = eachLimit(j.limits, raise) // checked when it was decoded
		}
		if j.claimed {
			b.counts.claimed++
			_ = eachLimit(j.holder.limits, raise)
		}
		return nil
	}
}

// likelyID reads the uuid of a job's record whose checksum is wrong.
func likelyID(value []byte) (job.ID, bool) {
	if len(value) < checksumSize+16 {
		return job.ID{}, false
	}
	id := job.ID(value[checksumSize : checksumSize+16])
	return id, id != job.ID{}
}

func (b *board) loadEnded(set ref) func(key, value []byte) error {
	var e endedRecord
	return func(key, value []byte) error {
		at, err := keyUint(key)
		if err != nil {
			return err
		}
		if err := e.open(key, value); err != nil {
			return err
		}
		if e.position != at {
			return fmt.Errorf("it belongs to position %d", e.position)
		}
		if b.refs[e.id].key() <= at {
			b.refs[e.id] = newRef(set, at)
		}
		if set == refFinal {
			b.counts.finals++
			b.counts.finalBytes += e.size
			return nil
		}
		b.counts.tombstones++
		return nil
	}
}

func (b *board) loadAnswer(key, value []byte) error {
	at, err := keyUint(key)
	if err != nil {
		return err
	}
	var a answer
	if err := a.open(key, value); err != nil {
		return err
	}
	b.answers[a.key] = at
	b.counts.answers++
	return nil
}
