package store

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// An entry of a board's stream has the changes of one call of the script.
type entry struct {
	first  uint64 // the position of its first change
	last   uint64 // of its last: the entry's id
	events []event
}

// An event is one change of one job.
type event struct {
	kind     job.EventType
	state    job.State
	outcome  job.Outcome
	id       job.ID
	position uint64
	at       time.Time
	reason   string
	owner    string
	meta     []byte // of a job on the board or in the trash; what is left of one that ended
	posting  []byte // without details, where the job came onto the board and it is small
}

func decodeEntry(m *redis.XMessage) (entry, error) {
	unreadable := job.Errorf(job.Corrupt, "entry %s of the stream of changes cannot be read", m.ID)
	digits, _, _ := strings.Cut(m.ID, "-")
	last, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return entry{}, unreadable
	}
	text, _ := m.Values["f"].(string)
	first, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return entry{}, unreadable
	}
	e := entry{first: first, last: last}
	raw, _ := m.Values["e"].(string)
	u := unpacker{b: []byte(raw)}
	for len(u.b) > 0 {
		one := unpacker{b: u.take(u.u32())}
		v := event{kind: job.EventType(one.u8()), state: job.State(one.u8()), outcome: job.Outcome(one.u8())}
		v.id = one.id()
		v.position, v.at = one.u64(), one.time()
		v.reason, v.owner = one.text(), one.text()
		v.meta, v.posting = one.blob(), one.blob()
		if one.short || u.short {
			return entry{}, unreadable
		}
		e.events = append(e.events, v)
	}
	return e, nil
}

// change returns the event as a driver.Change.
func (e *event) change() driver.Change {
	c := driver.Change{Event: e.kind, Job: e.id, Position: driver.Position(e.position), At: e.at, Reason: e.reason, Owner: e.owner}
	r := &driver.Record{
		Posting: driver.Posting{ID: e.id}, State: e.state, Outcome: e.outcome, Position: c.Position, ModifiedAt: e.at,
	}
	c.Record, c.Sparse = r, true
	switch e.state {
	case job.Complete:
		p, _ := decodePast(e.meta)
		r.Posting.Digest, r.Version, r.EndedAt = p.digest, p.version, p.at
		return c
	case job.Unknown:
		r.EndedAt = e.at
		return c
	}
	m, _ := decodeMeta(e.meta)
	r.Status, r.Version, r.Held, r.NotBefore, r.EndedAt = m.status, m.version, m.held, m.notBefore, m.ended
	r.Posting.Digest = m.digest
	if m.claim || m.foreign {
		r.State = job.Claimed
		r.Holder = &driver.Holder{Owner: m.owner, Token: m.token, Foreign: m.foreign, NoExpiry: m.noExpiry, Since: m.since}
		if !m.noExpiry {
			r.Holder.Remaining = m.deadline.Sub(e.at)
		}
	}
	if posting, err := decodePosting(e.id.String(), e.posting, 0); err == nil {
		posting.Digest = m.digest
		r.Posting, c.Sparse = posting, false
	}
	return c
}

// ontoBoard reports whether watchers are to be shown the posting.
func (e *event) ontoBoard() bool {
	return e.kind == job.Posted || e.kind == job.Restored || e.kind == job.ForeignChange && e.state == job.Unclaimed
}

// complete fetches the postings that were too large for the stream, or cannot be read. A
// job that is not there any more has a later change that says so.
func (b *board) complete(ctx context.Context, st *opening, events []event, list []driver.Change) error {
	for i := range list {
		c := &list[i]
		if !c.Sparse || !events[i].ontoBoard() {
			if c.Event == job.ForeignChange {
				b.bad.remove(c.Job.String())
			}
			continue
		}
		id := c.Job.String()
		for _, key := range []string{st.keys.listings, st.keys.trash} {
			raw, err := b.store.client.HGet(ctx, key, id).Bytes()
			if errors.Is(err, redis.Nil) {
				continue
			}
			if err != nil {
				return readFailed(ctx, err)
			}
			posting, err := decodePosting(id, raw, 0)
			switch {
			case err == nil:
				posting.Digest = c.Record.Posting.Digest
				c.Record.Posting, c.Sparse = posting, false
			case key == st.keys.listings:
				b.cannotRead(id, err)
			}
			break
		}
	}
	return nil
}
