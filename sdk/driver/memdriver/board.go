package memdriver

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A board is all that is kept for one board, under one mutex.
type board struct {
	dropped chan struct{} // closed when the board is no more

	capabilities driver.Capabilities

	mu         sync.Mutex
	spec       driver.BoardSpec
	generation uint64
	position   driver.Position
	sequence   uint64
	epoch      uint64

	jobs   map[job.ID]*entry // open and trashed
	ended  map[job.ID]*past  // of which Read says Complete
	limits map[string]int64
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
	lease    time.Duration
	noExpiry bool
	ends     time.Time // on the monotonic clock
	since    time.Time
	limits   []driver.Limit
}

func newBoard() *board {
	return &board{
		dropped: make(chan struct{}), generation: 1, capabilities: driver.CapabilityAll(),
		jobs: map[job.ID]*entry{}, ended: map[job.ID]*past{}, limits: map[string]int64{},
		past: newMemory(), events: log{changed: make(chan struct{})},
	}
}

// open sets the board's settings. id is the store's.
func (b *board) open(spec driver.BoardSpec, events int, id [8]byte) driver.BoardStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	if spec.Window <= 0 {
		spec.Window = driver.DefaultWindow
	}
	if spec.MaxTombstones <= 0 {
		spec.MaxTombstones = driver.DefaultMaxTombstones
	}
	b.spec, b.events.max = spec, max(events, 1)
	status := driver.BoardStatus{
		Position: b.position, Durability: driver.Volatile, Capabilities: b.capabilities, Window: spec.Window,
	}
	switch before := generationOf(spec.Witness); {
	case before != 0 && before < b.generation && [8]byte(spec.Witness) == id: // whatever else it says is from before
		status.Loss = fmt.Sprintf("the board lost changes before, and is in generation %d since, after generation %d", b.generation, before)
	case b.lost(&spec, id):
		b.begin(max(b.generation, before) + 1)
		status.Loss = "the store is gone or was put back to an earlier state: what was done on this board since is lost"
	}
	status.Generation = b.generation
	status.Witness = binary.BigEndian.AppendUint64(id[:], b.generation)
	status.Witness = binary.BigEndian.AppendUint64(status.Witness, uint64(b.position))
	b.forget(time.Now())
	return status
}

// memorySize is that of BoardStatus.Memory: the store's id, the generation and
// the position.
const memorySize = 24

// lost reports whether what the host remembers is of another store, or of a later
// state.
func (b *board) lost(spec *driver.BoardSpec, id [8]byte) bool {
	return spec.Seen > b.position || len(spec.Witness) == memorySize &&
		([8]byte(spec.Witness) != id || binary.BigEndian.Uint64(spec.Witness[16:]) > uint64(b.position) || generationOf(spec.Witness) > b.generation)
}

// generationOf returns the generation that a host remembers, or 0.
func generationOf(memory []byte) uint64 {
	if len(memory) != memorySize {
		return 0
	}
	return binary.BigEndian.Uint64(memory[8:])
}

// begin begins a new generation, in which no token of before is good.
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

// lapsed reports whether the lease has run out.
func (h *holder) lapsed(now time.Time) bool { return !h.noExpiry && !now.Before(h.ends) }

// live returns who holds the job under a lease that still runs, or nil.
func (e *entry) live(now time.Time) *holder {
	if e.holder == nil || e.holder.lapsed(now) {
		return nil
	}
	return e.holder
}

// waits reports whether the job is held back.
func (e *entry) waits(now time.Time) bool {
	return e.record.Held || now.Before(e.record.NotBefore)
}

// view returns the job as it stands, as a record of the caller's own.
func (e *entry) view(now time.Time, parts driver.Parts) *driver.Record {
	r := e.record
	r.NotBefore = r.NotBefore.Round(0)
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

func (b *board) read(ids []job.ID, parts driver.Parts) []driver.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
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
	return records
}

// find returns whatever is known of a job, or nil.
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

// full returns the key of the first limit that would be exceeded, or "".
func (b *board) full(limits []driver.Limit) string {
	sum := map[string]int64{}
	for _, l := range limits {
		sum[l.Key] += weight(l)
		if b.limits[l.Key]+sum[l.Key] > l.Max {
			return l.Key
		}
	}
	return ""
}

// raise counts limits, or with sign -1 takes them back.
func (b *board) raise(limits []driver.Limit, sign int64) {
	for _, l := range limits {
		b.limits[l.Key] += sign * weight(l)
		if b.limits[l.Key] == 0 {
			delete(b.limits, l.Key)
		}
	}
}

func weight(l driver.Limit) int64 {
	if l.Weight == 0 {
		return 1
	}
	return l.Weight
}
