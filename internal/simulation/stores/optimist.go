package stores

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// hosts is how many hosts work on an Optimist.
const hosts = 2

// An Optimist is a store over package transition that decides first and commits later,
// as a driver of a store without scripts has to: each host decides by what it read or
// believes, and the commit finds out whether that is still so. A step may come between
// the two.
type Optimist struct {
	flaw Flaw
	skew time.Duration // of the wall clock
	disk image         // what is there after a crash
	kept image         // what a backup has

	image
	believed [hosts]map[job.ID]*row // what each host believes of a job; no entry: it has to read
}

// An image is all that the store has on its disk. Rows are replaced, never changed.
type image struct {
	spec       driver.BoardSpec
	store      [8]byte
	generation uint64
	position   driver.Position
	epoch      uint64
	sequence   uint64
	revision   uint64
	rows       map[job.ID]*row
	sums       map[string]int64
	stamps     []*stamp
	finals     []job.ID
	changes    []driver.Change
}

// A row is a job: on the board, in the trash, or ended.
type row struct {
	revision    uint64
	record      driver.Record // without a holder
	details     []byte
	attached    map[string][]byte
	holder      *driver.Holder // Remaining is not used
	ends        time.Time
	counts      []driver.Limit
	claimCounts []driver.Limit

	by               job.Token
	tombstone, final bool
	until            time.Time
	size             int64
}

type stamp struct {
	transition.Stamp
	claims []driver.Claimed
	given  bool // they were told again
	at     time.Time
	ended  job.ID // by a Remove; zero: by none
	row    uint64 // the revision that it ended with
}

// NewOptimist returns a store with a flaw; NoFlaw is none.
func NewOptimist(flaw Flaw) *Optimist {
	o := &Optimist{flaw: flaw, image: image{generation: 1, store: [8]byte{1}, rows: map[job.ID]*row{}, sums: map[string]int64{}}}
	o.believed = [hosts]map[job.ID]*row{{}, {}}
	o.keep()
	return o
}

func (o *Optimist) wall() time.Time { return time.Now().Add(o.skew) }

// keep makes the present state the one on the disk.
func (o *Optimist) keep() { o.disk = o.image.clone() }

func (m *image) clone() image {
	c := *m
	c.rows, c.sums = maps.Clone(m.rows), maps.Clone(m.sums)
	c.stamps = append([]*stamp(nil), m.stamps...)
	c.finals = append([]job.ID(nil), m.finals...)
	c.changes = append([]driver.Change(nil), m.changes...)
	return c
}

// Crash loses everything that is not on the disk.
func (o *Optimist) Crash() {
	o.image = o.disk.clone()
	o.forgetBeliefs()
}

// Jump leaves a thousand positions out, as a store does whose transactions are counted
// for all of its boards.
func (o *Optimist) Jump() {
	o.position += 1000
	o.disk.position = o.position
}

// BackUp and PutBack are what an operator does. A store that was put back tells nobody.
func (o *Optimist) BackUp() { o.kept = o.image.clone() }

// PutBack returns false if there is no backup.
func (o *Optimist) PutBack() bool {
	if o.kept.rows == nil {
		return false
	}
	o.image = o.kept.clone()
	o.keep()
	o.forgetBeliefs()
	return true
}

func (o *Optimist) forgetBeliefs() { o.believed = [hosts]map[job.ID]*row{{}, {}} }

// Open is OpenBoard.
func (o *Optimist) Open(spec driver.BoardSpec) (driver.BoardStatus, error) {
	if o.flaw == LossUnseen {
		spec.Seen = 0
	}
	now := driver.Witness{Store: o.store, Generation: o.generation, Position: o.position}
	generation, loss, err := now.Compare(&spec)
	if err != nil {
		return driver.BoardStatus{}, err
	}
	if generation != o.generation {
		o.generation, now.Generation = generation, generation
		for id, r := range o.rows {
			if r.holder == nil {
				continue
			}
			c := *r
			h := *r.holder
			h.NoExpiry, c.holder, c.ends = false, &h, time.Now()
			if o.flaw != ClaimsOutliveLoss {
				o.put(id, &c)
			}
		}
	}
	o.spec = spec.WithDefaults()
	o.forget()
	o.keep()
	return driver.BoardStatus{Generation: generation, Position: o.position, Window: o.spec.Window, Witness: now.Bytes(), Loss: loss}, nil
}

func (o *Optimist) put(id job.ID, r *row) {
	o.revision++
	r.revision = o.revision
	o.rows[id] = r
}

func (o *Optimist) drop(id job.ID) {
	o.revision++
	delete(o.rows, id)
}

// view is the row as a record.
func (r *row) view(parts driver.Parts) *driver.Record {
	v := r.record
	if parts&driver.Details != 0 {
		v.Posting.Details = r.details
	}
	if parts&driver.Attached != 0 {
		for name, data := range r.attached {
			v.Attached = append(v.Attached, driver.Attachment{Name: name, Data: data})
		}
	}
	if parts&driver.FinalData == 0 {
		v.Final = nil
	}
	if r.holder != nil {
		h := *r.holder
		h.Remaining = 0
		if !h.NoExpiry {
			h.Remaining = time.Until(r.ends)
		}
		v.State, v.Holder = job.Claimed, &h
	}
	return &v
}

// facts are what is decided by.
func (o *Optimist) facts(r *row, cached bool) transition.Facts {
	if r == nil {
		return transition.Facts{Now: o.wall(), Generation: o.generation, Cached: cached}
	}
	f := transition.FactsOf(r.view(0), o.wall())
	f.Generation, f.EndedBy, f.Cached = o.generation, r.by, cached
	if o.flaw == LeaseOnWallClock && r.holder != nil && !r.holder.NoExpiry {
		f.Holder.Remaining -= o.skew
	}
	if o.flaw == HoldIgnored {
		f.Held, f.NotBefore = false, time.Time{}
	}
	return f
}

// stampOf returns what is kept under an op's key.
func (o *Optimist) stampOf(op *driver.Op) *stamp {
	key, ok := transition.KeyOf(op)
	if !ok {
		return nil
	}
	for _, s := range slices.Backward(o.stamps) {
		if s.Key == key && s.Kind != 0 || o.flaw == KeyWithoutJob && s.Key.Random == key.Random && s.Kind == op.Kind {
			return s
		}
	}
	return nil
}

// forget drops what is older than the board remembers or more than it may.
func (o *Optimist) forget() {
	now, window := time.Now(), o.spec.Window
	if o.flaw == ForgetsEarly {
		window /= 2
	}
	for len(o.stamps) > 0 && (now.Sub(o.stamps[0].at) >= window || int64(len(o.stamps)) > o.spec.MaxTombstones) {
		s := o.stamps[0]
		o.stamps = o.stamps[1:]
		if r := o.rows[s.ended]; r != nil && s.ended != (job.ID{}) && r.record.State == job.Complete && uint64(r.record.Position) == s.row {
			c := *r
			c.tombstone = false
			o.put(s.ended, &c)
			o.bury(s.ended)
		}
	}
	bytes := int64(0)
	for _, id := range o.finals {
		bytes += o.rows[id].size
	}
	over := func(n int) bool {
		return o.spec.MaxFinals > 0 && int64(n) > o.spec.MaxFinals || o.spec.MaxFinalBytes > 0 && bytes > o.spec.MaxFinalBytes
	}
	kept, dropped := []job.ID(nil), []job.ID(nil)
	for i, id := range o.finals {
		if r := o.rows[id]; over(len(o.finals)-i) || !now.Before(r.until) {
			if over(len(o.finals) - i) {
				bytes -= r.size
			}
			dropped = append(dropped, id)
			continue
		}
		kept = append(kept, id)
	}
	o.finals = kept
	for _, id := range dropped {
		o.dropFinal(id)
	}
}

func (o *Optimist) dropFinal(id job.ID) {
	c := *o.rows[id]
	c.final, c.details, c.attached = false, nil, nil
	c.record.Final, c.record.Status, c.record.Posting = nil, nil, bare(c.record.Posting)
	o.put(id, &c)
	o.bury(id)
}

func (o *Optimist) bury(id job.ID) {
	if r := o.rows[id]; !r.tombstone && !r.final {
		o.drop(id)
	}
}

func clone(b []byte) []byte { return bytes.Clone(b) }
