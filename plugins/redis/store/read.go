package store

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// readAtOnce is how many jobs are read in one transaction.
const readAtOnce = 128

// Read returns jobs as they stand. It uses plain reads in a transaction, which
// every user may make who may read the board at all.
func (s *Store) Read(ctx context.Context, name string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	b, err := s.board(name)
	if err == nil {
		err = ended(ctx)
	}
	if err != nil {
		return nil, err
	}
	st := b.opening.Load()
	records := make([]driver.Record, 0, len(ids))
	for len(ids) > 0 {
		n := min(readAtOnce, len(ids))
		stored, at, err := b.lookAt(ctx, st, texts(ids[:n]), nil, parts)
		if err == nil {
			err = at.left
		}
		if err != nil {
			return nil, err
		}
		for i := range stored {
			r, err := stored[i].record(at, parts)
			switch {
			case err != nil: // a posting that cannot be read is no job
				r = &driver.Record{Corrupt: err.Error()}
			case r == nil:
				r = &driver.Record{Corrupt: b.bad.problem(ids[i])}
			case r.State == job.Unknown:
				r.Corrupt = b.bad.problem(ids[i])
			}
			r.Posting.ID = ids[i]
			records = append(records, *r)
		}
		ids = ids[n:]
	}
	return records, nil
}

// A reading is the commands of one look at some jobs.
type reading struct {
	time                           *redis.TimeCmd
	listings, trash, jobs, moved   *redis.SliceCmd
	owners, modified, past, finals *redis.SliceCmd
	left                           []time.Duration
	attached                       []*redis.MapStringStringCmd
}

// lookAt looks at jobs in one moment. open has their postings if it is known that
// they were on the board a moment ago.
func (b *board) lookAt(ctx context.Context, st *opening, ids []string, open [][]byte, parts driver.Parts) ([]storedJob, scene, error) {
	k := &st.keys
	var r reading
	err := b.atOnce(ctx, st, func(p redis.Pipeliner) error {
		r = reading{time: p.Time(ctx)} // they may be asked for again
		owners, modified := make([]string, len(ids)), make([]string, len(ids))
		for i, id := range ids {
			owners[i], modified[i] = k.owner(id), k.modified(id)
			if parts&driver.Attached != 0 {
				r.attached = append(r.attached, p.HGetAll(ctx, k.attached(id)))
			}
		}
		r.jobs, r.owners, r.modified = p.HMGet(ctx, k.jobs, ids...), p.MGet(ctx, owners...), p.MGet(ctx, modified...)
		if open == nil {
			r.listings, r.trash = p.HMGet(ctx, k.listings, ids...), p.HMGet(ctx, k.trash, ids...)
			r.past, r.finals = p.HMGet(ctx, k.ended, ids...), p.HMGet(ctx, k.finals, ids...)
			r.moved = p.HMGet(ctx, k.head, "moved")
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, scene{}, readFailed(ctx, err)
	}
	if err := b.leases(ctx, &r, ids, k); err != nil {
		return nil, scene{}, err
	}
	at := scene{now: r.time.Val(), generation: st.generation, window: st.spec.Window}
	if r.moved != nil {
		passage, err := transition.ReadPassage(value(r.moved, 0))
		if err != nil {
			return nil, scene{}, err
		}
		at.left = passage.Left()
	}
	stored := make([]storedJob, len(ids))
	for i, id := range ids {
		stored[i] = r.storedJob(i, id, open)
	}
	return stored, at, nil
}

// lookAtOpen looks at jobs that were on the board a moment ago. Most of a large
// board nobody has, so when a claim was last modified is asked of the others
// only, together with all else once more.
func (b *board) lookAtOpen(ctx context.Context, st *opening, list []listing, parts driver.Parts) ([]storedJob, scene, error) {
	if len(list) == 0 {
		return nil, scene{}, nil
	}
	ids, open := make([]string, len(list)), make([][]byte, len(list))
	for i := range list {
		ids[i], open[i] = list[i].id, list[i].value
	}
	if parts&driver.Attached != 0 {
		return b.lookAt(ctx, st, ids, open, parts)
	}
	var r reading
	err := b.atOnce(ctx, st, func(p redis.Pipeliner) error {
		owners := make([]string, len(ids))
		for i, id := range ids {
			owners[i] = st.keys.owner(id)
		}
		r.time, r.jobs, r.owners = p.Time(ctx), p.HMGet(ctx, st.keys.jobs, ids...), p.MGet(ctx, owners...)
		return nil
	})
	if err != nil {
		return nil, scene{}, readFailed(ctx, err)
	}
	at := scene{now: r.time.Val(), generation: st.generation, window: st.spec.Window}
	stored := make([]storedJob, len(ids))
	var taken []int
	for i, id := range ids {
		s := storedJob{id: id, state: job.Unclaimed, posting: open[i], meta: value(r.jobs, i), owner: value(r.owners, i)}
		stored[i] = s
		if s.owner != nil && string(s.owner) != holder || flagsOf(s.meta)&(flagClaim|flagForeign) != 0 {
			taken = append(taken, i)
		}
	}
	if len(taken) == 0 {
		return stored, at, nil
	}
	for n, i := range taken {
		ids[n], open[n] = ids[i], open[i] // n is at most i
	}
	again, at, err := b.lookAt(ctx, st, ids[:len(taken)], open[:len(taken)], parts)
	for n := range again {
		stored[taken[n]] = again[n]
	}
	return stored, at, err
}

// leases asks how long the owners' keys last, of those jobs that have one: most
// of a large board have none. A lease that ran out since has 0 left.
func (b *board) leases(ctx context.Context, r *reading, ids []string, k *keys) error {
	asked := make([]*redis.DurationCmd, len(ids))
	owned := false
	for i := range ids {
		owned = owned || value(r.owners, i) != nil
	}
	r.left = make([]time.Duration, len(ids))
	if !owned {
		return nil
	}
	_, err := b.store.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			if value(r.owners, i) != nil {
				asked[i] = p.PTTL(ctx, k.owner(id))
			}
		}
		return nil
	})
	if err != nil {
		return readFailed(ctx, err)
	}
	for i, cmd := range asked {
		if cmd != nil {
			r.left[i] = leftOf(cmd.Val())
		}
	}
	return nil
}

// gone is what PTTL says of a key that is not there.
const gone = time.Duration(-2)

// leftOf returns what is left of a lease of which PTTL said something; 0: it ran out,
// negative: it does not end. In its last millisecond a key has 0 ms left, and is there.
func leftOf(said time.Duration) time.Duration {
	switch said {
	case gone:
		return 0
	case 0:
		return time.Millisecond
	default:
		return said
	}
}

func (r *reading) storedJob(i int, id string, open [][]byte) storedJob {
	s := storedJob{
		id: id, meta: value(r.jobs, i), owner: value(r.owners, i), modified: value(r.modified, i), left: r.left[i],
	}
	if r.attached != nil {
		for name, data := range r.attached[i].Val() {
			s.attached = append(s.attached, driver.Attachment{Name: name, Data: []byte(data)})
		}
		sortAttachments(s.attached)
	}
	if open != nil {
		s.state, s.posting = job.Unclaimed, open[i]
		return s
	}
	listed, trashed := value(r.listings, i), value(r.trash, i)
	switch {
	case listed != nil:
		s.state, s.posting = job.Unclaimed, listed
	case trashed != nil:
		s.state, s.posting = job.Trashed, trashed
	default:
		s.state, s.past, s.final = job.Complete, value(r.past, i), value(r.finals, i)
	}
	return s
}

// value returns one value of a command that has many; nil if it is not there.
func value(c *redis.SliceCmd, i int) []byte {
	list := c.Val()
	if i >= len(list) {
		return nil
	}
	if text, ok := list[i].(string); ok {
		return []byte(text)
	}
	return nil
}

// Count returns how many records the board has. It asks for sizes only.
func (s *Store) Count(ctx context.Context, name string) (driver.Counts, error) {
	b, err := s.board(name)
	if err == nil {
		err = ended(ctx)
	}
	if err != nil {
		return driver.Counts{}, err
	}
	st := b.opening.Load()
	if !st.spec.Observe && !st.expired() { // what is too old goes first
		if _, _, err := b.script(ctx, st, nil); err != nil {
			return driver.Counts{}, err
		}
	}
	k := &st.keys
	var open, trashed, ended, stones *redis.IntCmd
	var head *redis.SliceCmd
	var limits *redis.MapStringStringCmd
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		open, trashed, ended, stones = p.HLen(ctx, k.listings), p.HLen(ctx, k.trash), p.ZCard(ctx, k.endedBy), p.LLen(ctx, k.order)
		head, limits = p.HMGet(ctx, k.head, "claimed", "finals", "bytes"), p.HGetAll(ctx, k.limits)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return driver.Counts{}, readFailed(ctx, err)
	}
	c := driver.Counts{Open: open.Val(), Trashed: trashed.Val(), Ended: ended.Val(), Tombstones: stones.Val(), Bad: b.bad.count()}
	for i, n := range []*int64{&c.Claimed, &c.Finals, &c.FinalBytes} {
		if text, ok := head.Val()[i].(string); ok { // absent: none; a head that was taken away counts too few
			*n = max(parseInt(text), 0)
		}
	}
	c.Open -= min(c.Bad, c.Open)
	c.Limits = map[string]int64{}
	for key := range limits.Val() {
		c.Limits[key] = parseInt(limits.Val()[key])
	}
	return c, nil
}
