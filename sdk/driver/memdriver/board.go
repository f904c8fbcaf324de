package memdriver

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/poll"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// A board is all that is kept for one board.
type board struct {
	dropped chan struct{} // closed when the board is no more

	capabilities driver.Capabilities
	bell         poll.Bell // rings at each change

	mu         sync.Mutex
	spec       driver.BoardSpec
	generation uint64
	passage    transition.Passage
	position   driver.Position
	sequence   uint64
	epoch      uint64

	jobs   map[job.ID]*entry // open and trashed
	ended  map[job.ID]*past  // those that Read shows as Complete
	limits map[string]int64  // and what groups count, see transition.GroupKey
	keys   map[string]transition.Entry
	past   memory
	events log
}

// An entry is a job that is on the board or in the trash. The byte slices in
// it are replaced, never written to, since records share them.
type entry struct {
	record   driver.Record // without what depends on the time or is large
	details  []byte
	attached map[string][]byte
	holder   *holder
	limits   []driver.Limit
}

type holder struct {
	owner    string
	token    job.Token
	noExpiry bool
	ends     time.Time // on the monotonic clock
	since    time.Time
	limits   []driver.Limit
}

func capabilities() driver.Capabilities {
	c := driver.CapabilityAll()
	c.Moves, c.Empties = true, true
	return c
}

func newBoard() *board {
	return &board{
		dropped: make(chan struct{}), generation: 1, capabilities: capabilities(),
		jobs: map[job.ID]*entry{}, ended: map[job.ID]*past{}, limits: map[string]int64{}, keys: map[string]transition.Entry{},
		past: newMemory(),
	}
}

// size is what its jobs were given to keep, in bytes.
func (b *board) size() (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.jobs {
		n += int64(len(e.details) + len(e.record.Status) + len(e.record.Posting.Extra))
		for _, data := range e.attached {
			n += int64(len(data))
		}
	}
	return n
}

// open sets the board's settings. id is the store's.
func (b *board) open(spec driver.BoardSpec, events int, id [8]byte) (driver.BoardStatus, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := driver.Witness{Store: id, Generation: b.generation, Position: b.position}
	generation, loss, err := now.Compare(&spec)
	if err != nil {
		return driver.BoardStatus{}, err
	}
	if generation != b.generation {
		b.begin(generation)
		now.Generation = generation
	}
	b.spec, b.events.max = spec.WithDefaults(), max(events, 1)
	b.forget(time.Now())
	return driver.BoardStatus{
		Generation: generation, Position: b.position, Durability: driver.Volatile, Capabilities: b.capabilities,
		Window: b.spec.Window, Witness: now.Bytes(), Loss: loss,
	}, nil
}

// begin begins a new generation and makes every claim of the old one lapse.
// The caller holds b.mu.
func (b *board) begin(generation uint64) {
	b.generation = generation
	for _, e := range b.jobs {
		if e.holder != nil {
			h := *e.holder
			h.noExpiry, h.ends = false, time.Now()
			e.holder = &h
		}
	}
}

// newHolder begins a lease.
func newHolder(h *driver.Holder, limits []driver.Limit, now time.Time) *holder {
	return &holder{
		owner: h.Owner, token: h.Token, noExpiry: h.NoExpiry, ends: now.Add(h.Remaining), since: h.Since, limits: limits,
	}
}

// counts returns the limits that a claim counts; nil has none.
func (h *holder) counts() []driver.Limit {
	if h == nil {
		return nil
	}
	return h.limits
}

// view returns a new record of the job's present state. Its slices are shared.
func (e *entry) view(now time.Time, parts driver.Parts) *driver.Record {
	r := e.record
	if parts&driver.Details != 0 {
		r.Posting.Details = e.details
	}
	if parts&driver.Attached != 0 {
		r.Attached = attachments(e.attached)
	}
	if h := e.holder; h != nil {
		r.State = job.Claimed
		r.Holder = &driver.Holder{Owner: h.owner, Token: h.token, NoExpiry: h.noExpiry, Since: h.since}
		if !h.noExpiry {
			r.Holder.Remaining = h.ends.Sub(now)
		}
	}
	return &r
}

func attachments(m map[string][]byte) []driver.Attachment {
	list := make([]driver.Attachment, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, driver.Attachment{Name: name, Data: m[name]})
	}
	return list
}

func (b *board) read(ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.passage.Left(); err != nil {
		return nil, err
	}
	now := time.Now()
	b.forget(now)
	records := make([]driver.Record, len(ids))
	for i, id := range ids {
		if r := b.find(id, now, parts); r != nil {
			records[i] = *r
		} else {
			records[i] = driver.Record{Posting: driver.Posting{ID: id}}
		}
	}
	return records, nil
}

// find returns whatever is known of a job, or nil. The caller holds b.mu.
func (b *board) find(id job.ID, now time.Time, parts driver.Parts) *driver.Record {
	if e := b.jobs[id]; e != nil {
		return e.view(now, parts)
	}
	if p := b.ended[id]; p != nil {
		return p.view(parts)
	}
	return nil
}

func (b *board) count() driver.Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(time.Now())
	c := driver.Counts{Ended: int64(len(b.ended)), Tombstones: int64(len(b.past.stamps)), Finals: int64(len(b.past.finals)), FinalBytes: b.past.bytes, Limits: maps.Clone(b.limits)}
	maps.DeleteFunc(c.Limits, func(key string, _ int64) bool { return transition.OfGroup(key) })
	for _, e := range b.jobs {
		switch {
		case e.record.State == job.Trashed:
			c.Trashed++
		case e.holder != nil:
			c.Claimed++
			c.Open++
		default:
			c.Open++
		}
	}
	return c
}

// sum returns what a limit or a group counts. The caller holds b.mu.
func (b *board) sum(key string) int64 { return b.limits[key] }

// raise moves the counters of limits and groups. The caller holds b.mu.
func (b *board) raise(moves transition.Moves) {
	for _, m := range moves {
		b.limits[m.Key] += m.By
		if b.limits[m.Key] == 0 {
			delete(b.limits, m.Key)
		}
	}
}
