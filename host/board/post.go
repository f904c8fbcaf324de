package board

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Post puts jobs on the board. A posting with an ID of its own may come twice:
// an equal one is answered with the job that stands, or that it is Complete;
// another one with AlreadyExists. The error is about the whole call.
func (b *Board) Post(ctx context.Context, postings []job.Posting) ([]JobResult, error) {
	opened, err := b.changing(ctx)
	if err != nil {
		return nil, err
	}
	if len(postings) > MaxBatch {
		return nil, job.Errorf(job.Invalid, "jobs: %d are too many: want at most %d", len(postings), MaxBatch)
	}
	results := make([]JobResult, len(postings))
	p := poster{
		board: b, opened: opened, results: results, room: b.room(opened), now: time.Now(),
		ids: make([]job.ID, 0, len(postings)), ops: make([]driver.Op, 0, len(postings)),
		extras: make([]record.Extra, 0, len(postings)), of: make([]int, 0, len(postings)),
	}
	for i := range postings {
		if err := p.prepare(ctx, i, &postings[i]); err != nil {
			results[i].Err = err
		}
	}
	if len(p.ids) > 0 {
		if err := p.postAll(ctx); err != nil {
			return nil, err
		}
	}
	for i := range results {
		if results[i].Err != nil && job.KindOf(results[i].Err) == job.QuotaExceeded {
			b.metrics.PostsRefused.Add(1)
		}
	}
	return results, nil
}

// room returns for how many more jobs the store has room.
func (b *Board) room(opened *driver.BoardStatus) int64 {
	most := opened.Capabilities.MaxJobs
	if most <= 0 {
		return math.MaxInt64
	}
	c := b.index.Count()
	return max(most-c.Ready-c.Delayed-c.Claimed, 0)
}

// stands reports whether a job is known already, so that posting it takes no
// room.
func (b *Board) stands(ctx context.Context, id job.ID) bool {
	if id == (job.ID{}) {
		return false
	}
	records, err := b.read(ctx, []job.ID{id}, 0)
	return err == nil && records[0].State != job.Unknown
}

// poster is one call of Post. Of ids, ops, extras and of, each item is one posting that
// passed; of is its place in the results.
type poster struct {
	board   *Board
	opened  *driver.BoardStatus
	results []JobResult
	now     time.Time
	room    int64 // for so many jobs
	ids     []job.ID
	ops     []driver.Op
	extras  []record.Extra
	of      []int

	tick      string // the key of the schedule whose tick this is; "": of none
	tickTaken job.ID // the job that has it

	someWait bool           // for other jobs
	byID     map[job.ID]int // the items, if some wait
}

func (p *poster) prepare(ctx context.Context, i int, posting *job.Posting) error {
	labels, after, err := checkWhole(posting, &p.opened.Capabilities, p.now)
	if err != nil {
		return err
	}
	ext := record.Extra{
		Labels: labels, MaxAttempts: posting.MaxAttempts, NotBefore: posting.NotBefore, Timeout: posting.Timeout, Unique: posting.Unique, Batch: posting.Batch,
		After: after, Operations: posting.Operations,
	}
	dp := stored(posting, &ext)
	if most := p.opened.Capabilities.MaxRecord; most > 0 && len(dp.Extra) > most {
		return job.Errorf(job.Invalid, "labels, operations and after: %d bytes are more than this store keeps: want at most %d", len(dp.Extra), most)
	}
	if int64(len(p.ids)) >= p.room && !p.board.stands(ctx, dp.ID) {
		return job.Errorf(job.QuotaExceeded, "this store keeps at most %d open jobs on a board", p.opened.Capabilities.MaxJobs)
	}
	dp.Digest = digest(dp)
	if dp.ID == (job.ID{}) {
		dp.ID = p.board.random.newID(p.now)
	}
	op := driver.Op{Kind: driver.Post, Job: dp.ID, Request: p.board.random.next(), Posting: dp, Keys: keysOf(&posting.Unique), Group: posting.Batch, Event: job.Posted}
	if posting.NotBefore.After(p.now) {
		op.Hold = &driver.Hold{Until: posting.NotBefore}
	}
	if len(after) > 0 {
		op.Hold, p.someWait = &driver.Hold{Always: true}, true
	}
	if len(posting.Operations) > 0 {
		s := record.Status{Operations: record.NewOperations(posting.Operations)}
		s.OperationPriority = s.Operations.Priority()
		encoded := s.Encode()
		op.Status = &encoded
	}
	p.ids, p.ops, p.of = append(p.ids, dp.ID), append(p.ops, op), append(p.of, i)
	p.extras = append(p.extras, ext)
	return nil
}

// stored is the posting as a driver keeps it, but for its digest.
func stored(posting *job.Posting, ext *record.Extra) *driver.Posting {
	dp := &driver.Posting{
		ID: posting.ID, Name: posting.Name, Priority: posting.Priority, Book: posting.Book,
		Encoding: job.JSON, Details: posting.Details, Extra: ext.Encode(),
	}
	switch {
	case posting.Raw != nil:
		dp.Encoding, dp.Details = posting.Raw.Encoding, posting.Raw.Data
	case posting.Details == nil:
		dp.Details = []byte("{}")
	}
	return dp
}

// digest is of everything that a poster says, the uuid included if it gave one.
func digest(p *driver.Posting) [16]byte {
	buffer := digestBuffers.Get().(*[]byte)
	b := append((*buffer)[:0], 1) // the form of this text
	b = append(b, p.ID[:]...)
	b = append(b, byte(p.Priority), byte(p.Encoding))
	for _, text := range []string{p.Name, p.Book.UUID, p.Book.Name} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Extra)))
	b = append(b, p.Extra...)
	b = append(b, p.Details...)
	sum := sha256.Sum256(b)
	if cap(b) <= 64<<10 {
		*buffer = b
		digestBuffers.Put(buffer)
	}
	return [16]byte(sum[:16])
}

var digestBuffers = sync.Pool{New: func() any { return new([]byte) }}

// post sends the items and returns what is news to the index.
func (p *poster) post(ctx context.Context, items []int) []*index.Entry {
	ops := p.ops
	if len(items) != len(p.ops) {
		ops = make([]driver.Op, len(items))
		for i, at := range items {
			ops[i] = p.ops[at]
		}
	}
	news := make([]*index.Entry, 0, len(items))
	var kept, replaced conflicts
	now := time.Now()
	for i, r := range p.board.send(ctx, p.opened, ops) {
		item := items[i]
		switch does := p.extras[item].Unique.OnConflict; {
		case r.Taken == (job.ID{}), r.Message != p.tick && does == job.Reject:
			news = p.answer(item, &r, now, news)
		case r.Message == p.tick:
			p.tickTaken = r.Taken
		case does == job.Replace:
			replaced.add(item, r.Taken, false)
		default:
			kept.add(item, r.Taken, false)
		}
	}
	p.keep(ctx, &kept)
	return p.replace(ctx, &replaced, news)
}

// answer makes an item's result of the store's answer, and adds to news what is news to the
// index.
func (p *poster) answer(item int, r *driver.Result, now time.Time, news []*index.Entry) []*index.Entry {
	op, result := &p.ops[item], &p.results[p.of[item]]
	result.Err = nil // of a try before
	if r.Kind != job.NoKind {
		if result.Err = itemError(op.Job, r); r.Kind == job.Precondition && op.Group != "" {
			result.Err = batchClosed(op)
		}
		return news
	}
	if result.again = r.Repeated; result.again {
		p.board.metrics.PostedAgain.Add(1)
	} else {
		p.board.metrics.Posted.Add(1)
		if op.Group != "" && p.board.batches.watched.Load() > 0 {
			p.board.batches.hint(op.Group)
		}
	}
	rec := r.Record
	if rec == nil {
		result.Err = &job.Error{Job: op.Job, Kind: job.OutcomeUnknown, Message: "the driver broke its contract: it did not show the posted job"}
		return news
	}
	if !isOpen(rec.State) {
		result.Job = p.board.jobOfRecord(rec, now)
		return news
	}
	e := p.board.entryWith(rec, &p.extras[item], now) // an equal posting has equal extras
	if e.Position == 0 {
		e.Position = r.Position
	}
	p.board.learnFacts(op.Posting, e.Sequence)
	result.Job = jobOf(e)
	showDetails(result.Job, op.Posting)
	showOperations(result.Job, &driver.Record{Posting: *op.Posting}, rec.Status) // what stands is an equal posting
	return append(news, e)
}

// batchClosed refuses a posting whose batch takes no more jobs.
func batchClosed(op *driver.Op) error {
	return &job.Error{Job: op.Job, Kind: job.NotEligible, Message: fmt.Sprintf("batch: %q is closed and takes no more jobs; want another name", op.Group)}
}
