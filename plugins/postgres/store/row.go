package store

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A row is a job as it stands, without its larger parts.
type row struct {
	driver.Record

	limits, claimLimits []driver.Limit // what job and claim count for
	endedBy             job.Token

	lease, ends int64 // of the claim, in nanoseconds: as granted (0: no expiry), and on the server's clock
	tombstone   int64
	keepUntil   int64
	size        int64

	damage error            // why it cannot be read
	sizes  map[string]int64 // of its larger parts, where they are wanted; see batch.ends
	stored bool             // the table has it
	ctid   pgtype.TID       // where
	dirty  bool             // it has to be written
	gone   bool             // it has to be deleted
	bared  bool             // its posting was cut down, and has to be written too
}

// place returns the scan that finds the job, and where in it.
func (r *row) place() (shelf driver.Set, place int64) {
	switch r.State {
	case job.Trashed:
		return driver.TrashedJobs, int64(r.Position) //nolint:gosec // it came from a bigint
	case job.Complete:
		return driver.EndedJobs, int64(r.Position) //nolint:gosec // likewise
	default:
		return driver.OpenJobs, int64(r.Posting.Sequence) //nolint:gosec // likewise
	}
}

// at fills in what depends on the time.
func (r *row) at(now time.Time) {
	if h := r.Holder; h != nil {
		h.NoExpiry, h.Remaining = r.lease == 0, 0
		if !h.NoExpiry {
			h.Remaining = time.Duration(r.ends - now.UnixNano())
		}
	}
	if r.State == job.Complete && r.keepUntil > 0 && r.keepUntil <= now.UnixNano() {
		r.strip() // its time has come, and nobody has removed it yet
	}
}

// past reports whether a job that ended has neither a tombstone nor a final record any
// more, though the table still has it.
func (r *row) past(now time.Time, window time.Duration) bool {
	return r.State == job.Complete && r.keepUntil <= now.UnixNano() &&
		(r.tombstone == 0 || !r.EndedAt.Add(window).After(now))
}

// strip leaves of the record what a tombstone knows.
func (r *row) strip() {
	r.bare()
	r.Status, r.Final, r.Attached = nil, nil, nil
}

// bare leaves of the posting what a tombstone knows.
func (r *row) bare() {
	p := &r.Posting
	r.Posting = driver.Posting{ID: p.ID, Name: p.Name, Digest: p.Digest, CreatedAt: p.CreatedAt, Sequence: p.Sequence}
	r.bared = true
}

// owner returns who holds the job, if anybody does.
func (r *row) owner() string {
	if r.Holder == nil {
		return ""
	}
	return r.Holder.Owner
}

// encodePosting writes what never changes of a job, without its details.
func encodePosting(p *driver.Posting, limits []driver.Limit) []byte {
	w := newWriter(96 + len(p.Name) + len(p.Extra))
	w.posting(p)
	w.limits(limits)
	return w.out
}

func (w *writer) posting(p *driver.Posting) {
	w.text(p.Name)
	w.int(int64(p.Priority))
	w.text(p.Book.UUID)
	w.text(p.Book.Name)
	w.byte(byte(p.Encoding))
	w.bytes(p.Extra)
	w.raw(p.Digest[:])
	w.time(p.CreatedAt)
	w.uint(p.Sequence)
}

func (d *reader) posting(p *driver.Posting) {
	p.Name = d.text()
	p.Priority = job.Priority(d.int()) //nolint:gosec // as it was written
	p.Book.UUID, p.Book.Name = d.text(), d.text()
	p.Encoding = job.Encoding(d.upTo(byte(job.Msgpack)))
	p.Extra = d.bytes()
	d.raw(p.Digest[:])
	p.CreatedAt, p.Sequence = d.time(), d.uint()
}

func (w *writer) limits(list []driver.Limit) {
	w.uint(uint64(len(list)))
	for i := range list {
		w.text(list[i].Key)
		w.int(list[i].Weight)
		w.int(list[i].Max)
	}
}

func (d *reader) limits() (list []driver.Limit) {
	for range d.count() {
		list = append(list, driver.Limit{Key: d.text(), Weight: d.int(), Max: d.int()})
	}
	return list
}

// encodeRecord writes what changes of a job and has no column.
func (r *row) encodeRecord() []byte {
	w := newWriter(128 + len(r.Status))
	w.record(r)
	w.limits(r.claimLimits)
	w.token(r.endedBy)
	return w.out
}

func (w *writer) record(r *row) {
	w.flags(r.Held, r.Holder != nil)
	w.bytes(r.Status)
	w.uint(r.Version)
	w.uint(uint64(r.Position))
	w.time(r.NotBefore)
	w.time(r.ModifiedAt)
	w.time(r.EndedAt)
	w.byte(byte(r.Outcome))
	if h := r.Holder; h != nil {
		w.text(h.Owner)
		w.token(h.Token)
		w.time(h.Since)
	}
}

func (d *reader) record(r *row) {
	var held bool
	d.flags(&r.Held, &held)
	r.Status, r.Version, r.Position = d.bytes(), d.uint(), driver.Position(d.uint())
	r.NotBefore, r.ModifiedAt, r.EndedAt = d.time(), d.time(), d.time()
	r.Outcome = job.Outcome(d.upTo(byte(job.Purged)))
	if held {
		r.Holder = &driver.Holder{Owner: d.text(), Token: d.token(), Since: d.time()}
	}
}

// decode reads what encodePosting and encodeRecord wrote. The row shares their bytes.
func (r *row) decode(posting, record []byte) error {
	d := newReader(posting)
	d.posting(&r.Posting)
	r.limits = d.limits()
	if err := d.end(); err != nil {
		return err
	}
	d = newReader(record)
	d.record(r)
	r.claimLimits, r.endedBy = d.limits(), d.token()
	return d.end()
}
