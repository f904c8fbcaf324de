// Package stores simulates stores of jobs: the driver contract, on the reference
// driver and on a small store over package transition that is stepped inside its
// ops. A Book, which was written from the contract alone, says what is right.
package stores

import (
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A Book is the contract of package driver in the plainest way: lists that are gone
// through, and sums that are counted anew each time. It decides nothing by package
// transition, so that the two can be compared.
//
// It does not give out positions, versions and tokens: those that a store gave are
// checked to grow, and then written into it.
type Book struct {
	spec       driver.BoardSpec
	wall       func() time.Time
	generation uint64
	position   driver.Position // the highest that the store gave
	tokens     []job.Token     // all that the store gave, in order

	jobs   []*entry // on the board, in the trash, or ended
	deeds  []*deed  // what counts as a tombstone, oldest first
	finals []*entry // oldest first
}

// An entry is what is known of a job.
type entry struct {
	posting  driver.Posting
	state    job.State // Unclaimed while it is on the board, claimed or not
	status   []byte
	attached map[string]string
	version  uint64
	position driver.Position

	held      bool
	notBefore time.Time
	modified  time.Time
	ended     time.Time

	claim  *claim
	counts []driver.Limit // of the posting

	outcome   job.Outcome
	by        job.Token // that ended it
	tombstone bool
	final     bool
	until     time.Time // of the final record
	data      []byte
	size      int64
}

type claim struct {
	owner   string
	token   job.Token
	endless bool
	ends    time.Time
	counts  []driver.Limit
}

// A deed is something that was done, so that its repetition gets the same answer.
type deed struct {
	op     driver.Op // as it was asked for
	known  bool      // it can be recognised
	job    job.ID
	at     time.Time // on the clock that windows are counted on
	answer driver.Result
	given  bool   // answer, a claim's, was given again
	ended  *entry // by a Remove
}

// NewBook returns the book of an empty board.
func NewBook(spec driver.BoardSpec, wall func() time.Time) *Book {
	return &Book{spec: spec.WithDefaults(), wall: wall, generation: 1}
}

// Open is OpenBoard with other bounds. lost says that the store went back, so that
// every claim lapses in a new generation.
func (b *Book) Open(spec driver.BoardSpec, lost bool, generation uint64) {
	b.spec, b.generation = spec.WithDefaults(), generation
	if lost {
		for _, e := range b.jobs {
			if e.claim != nil {
				e.claim.endless, e.claim.ends = false, time.Now()
			}
		}
	}
	b.forget()
}

func (b *Book) find(id job.ID) *entry {
	for _, e := range b.jobs {
		if e.posting.ID == id {
			return e
		}
	}
	return nil
}

// live reports whether somebody holds the job by a lease that has not run out.
func (e *entry) live() bool {
	return e.claim != nil && (e.claim.endless || time.Now().Before(e.claim.ends))
}

// sum counts a limit's key anew, without the claims and postings of one job.
func (b *Book) sum(key string) (n int64) {
	for _, e := range b.jobs {
		if e.state == job.Unclaimed {
			n += weigh(e.counts, key)
		}
		if e.claim != nil {
			n += weigh(e.claim.counts, key)
		}
	}
	return n
}

func weigh(list []driver.Limit, key string) (n int64) {
	for i := range list {
		if list[i].Key == key {
			n += max(1, list[i].Weight)
		}
	}
	return n
}

// full returns the first limit that adding the whole list would go above, if the job's
// present claim is not counted any more.
func (b *Book) full(list []driver.Limit, e *entry) string {
	for i := range list {
		key := list[i].Key
		n := b.sum(key) + weigh(list, key)
		if e != nil && e.claim != nil {
			n -= weigh(e.claim.counts, key)
		}
		if n > list[i].Max {
			return key
		}
	}
	return ""
}

// forget drops what is older than the board remembers, and the oldest of what is more
// than it may remember.
func (b *Book) forget() {
	now := time.Now()
	for len(b.deeds) > 0 && (now.Sub(b.deeds[0].at) >= b.spec.Window || int64(len(b.deeds)) > b.spec.MaxTombstones) {
		if e := b.deeds[0].ended; e != nil {
			e.tombstone = false
			b.bury(e)
		}
		b.deeds = b.deeds[1:]
	}
	for len(b.finals) > 0 && (b.spec.MaxFinals > 0 && int64(len(b.finals)) > b.spec.MaxFinals ||
		b.spec.MaxFinalBytes > 0 && b.finalBytes() > b.spec.MaxFinalBytes) {
		b.dropFinal(b.finals[0])
	}
	for _, e := range slices.Clone(b.finals) {
		if !now.Before(e.until) {
			b.dropFinal(e)
		}
	}
}

func (b *Book) finalBytes() (n int64) {
	for _, e := range b.finals {
		n += e.size
	}
	return n
}

// dropFinal leaves nothing but the tombstone of a job that ended.
func (b *Book) dropFinal(e *entry) {
	b.finals = slices.DeleteFunc(b.finals, func(f *entry) bool { return f == e })
	e.final, e.data, e.status, e.attached = false, nil, nil, nil
	e.posting = bare(e.posting)
	b.bury(e)
}

func bare(p driver.Posting) driver.Posting {
	return driver.Posting{ID: p.ID, Name: p.Name, Digest: p.Digest, CreatedAt: p.CreatedAt, Sequence: p.Sequence}
}

// bury forgets a job of which nothing is left.
func (b *Book) bury(e *entry) {
	if !e.tombstone && !e.final {
		b.jobs = slices.DeleteFunc(b.jobs, func(o *entry) bool { return o == e })
	}
}

// repeated returns the deed that an op repeats, or nil.
func (b *Book) repeated(op *driver.Op) *deed {
	for _, d := range slices.Backward(b.deeds) {
		if d.known && sameDeed(op, &d.op) {
			return d
		}
	}
	return nil
}

// sameDeed reports whether op is the one that was done, come again.
func sameDeed(op, done *driver.Op) bool {
	switch {
	case op.Kind != done.Kind || op.Kind == driver.Post || op.Kind == driver.Extend:
		return false
	case op.Kind == driver.Claim:
		return op.Claim.Remember && op.Request == done.Request
	case op.Job != done.Job || outcomeOf(op) != outcomeOf(done) || endsByToken(op) != endsByToken(done):
		return false
	case endsByToken(op):
		return op.Token == done.Token && op.Precondition == done.Precondition
	}
	return op.Request == done.Request && op.Request != [16]byte{}
}

// endsByToken reports whether an op is known by its token when it comes again.
func endsByToken(op *driver.Op) bool {
	byToken := op.Precondition == driver.HeldByToken || op.Precondition == driver.Lapsed
	return byToken && (op.Kind == driver.Release || op.Kind == driver.Remove || op.Kind == driver.Trash)
}

func outcomeOf(op *driver.Op) job.Outcome {
	switch {
	case op.Ending != nil:
		return op.Ending.Outcome
	case op.Kind == driver.Remove:
		return job.Consumed
	}
	return job.NoOutcome
}
