package board

import (
	"bytes"
	"context"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A Copy brings all that one store keeps of a board to another one, in which the board
// receives for a move (see driver.Mover). The board is frozen in the first. What was brought
// before is known again, so a copy that was cut off is begun anew.
type Copy struct {
	From, To driver.Driver
	Key      string // of the board, in both
	Move     [16]byte
	Target   driver.BoardStatus // of the board in the second store, as it receives
	History  time.Duration
	Frozen   time.Time                          // since when no lease could be extended, by this host's clock
	Counted  func(op *driver.Op) []driver.Limit // what the store is to count of an import's post or claim; nil: nothing
	Progress func(jobs int64)                   // told how many jobs there are already; nil: nobody

	random entropy
}

// Copied says what a copy brought.
type Copied struct {
	Open, Claimed, Trashed, Ended int64 // Claimed are among Open
	Lost                          int64 // claims that could not come along, among Open
}

// copiedSpaces are the spaces whose documents go along: all that is a board's own, but not
// who works there, which says so again.
var copiedSpaces = []string{driver.BookSpace, driver.SettingSpace, tickSpace, bookmarkSpace}

// Documents brings the documents, as long as the board in the second store takes them. What
// is not in the first is taken away.
func (c *Copy) Documents(ctx context.Context) error {
	docs := c.To.Documents()
	for _, name := range copiedSpaces {
		space := driver.Space{Board: c.Key, Name: name}
		there := map[string]driver.Document{}
		if err := eachDocument(ctx, docs, space, func(doc *driver.Document) error {
			there[doc.Name] = *doc
			return nil
		}); err != nil {
			return err
		}
		if err := eachDocument(ctx, c.From.Documents(), space, func(doc *driver.Document) error {
			before := there[doc.Name]
			delete(there, doc.Name)
			if name == driver.SettingSpace {
				doc.Data = movedBatch(doc)
			}
			if name == driver.SettingSpace && doc.Name == lossDocument || before.Version > 0 && bytes.Equal(before.Data, doc.Data) {
				return nil // a loss is of generations and positions of the first store
			}
			_, err := docs.Put(ctx, space, driver.Document{Name: doc.Name, Data: doc.Data, Expires: doc.Expires}, before.Version)
			return err
		}); err != nil {
			return err
		}
		for _, doc := range there {
			if err := docs.Delete(ctx, space, doc.Name, doc.Version); err != nil && job.KindOf(err) != job.NotFound {
				return err
			}
		}
	}
	return nil
}

// eachDocument goes through the documents of a space, of which each may have megabytes.
func eachDocument(ctx context.Context, docs driver.Documents, space driver.Space, do func(*driver.Document) error) error {
	for after := ""; ; {
		page, err := docs.List(ctx, space, after, 8)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			after = page[i].Name
			if err := do(&page[i]); err != nil {
				return err
			}
		}
	}
}

// Bounds on what is brought at once.
const (
	copyMost  = 64
	copyBytes = 1 << 20
)

// Jobs brings the jobs: those that ended, the trash, and the open ones in the order in which
// they were posted, each with all that belongs to it.
func (c *Copy) Jobs(ctx context.Context) (Copied, error) {
	b := copier{Copy: c, ctx: ctx, taking: taking{random: &c.random, history: c.History, lost: MovedReason, groups: c.Target.Capabilities.Groups, now: time.Now()}}
	x := exporter{from: keptBoard{c.From, c.Key}, job: b.take}
	open, _, err := x.open(ctx)
	if err == nil {
		err = x.jobs(ctx, open)
	}
	if err == nil {
		err = b.send()
	}
	return b.sum, err
}

// A copier is one run of a Copy.
type copier struct {
	*Copy
	taking

	ctx  context.Context //nolint:containedctx // of the one call that the copier is made for
	ops  []driver.Op
	size int
	sum  Copied
}

// take brings a job, with others.
func (b *copier) take(r *driver.Record) error {
	op, err := b.moved(r)
	if err != nil {
		return err
	}
	b.ops = append(b.ops, op)
	b.size += len(op.Posting.Details) + len(op.Posting.Extra) + len(r.Status) + len(r.Final)
	for i := range op.Attach {
		b.size += len(op.Attach[i].Data)
	}
	if len(b.ops) >= min(copyMost, max(1, b.Target.Capabilities.MaxBatch)) || b.size >= copyBytes {
		return b.send()
	}
	return nil
}

// moved is the op that brings a job.
func (b *copier) moved(r *driver.Record) (driver.Op, error) {
	line := exported(r)
	holder := b.holding(r)
	if holder != nil {
		line.State = job.Unclaimed.String() // the claim comes by itself
	}
	op, err := b.op(line)
	if err != nil {
		return op, &job.Error{Job: r.Posting.ID, Kind: job.Corrupt, Message: "the job cannot be brought to another store", Err: err}
	}
	op.Reason, op.Import.Move = "moved", b.Move
	switch r.State {
	case job.Complete:
		if b.sum.Ended++; !r.EndedBy.IsZero() { // so that a retry of the ending is answered there, too
			op.Import.Then.Precondition, op.Import.Then.Token = driver.HeldByToken, r.EndedBy
		}
	case job.Trashed:
		b.sum.Trashed++
	case job.Unknown, job.Unclaimed, job.Claimed:
		b.sum.Open++
	}
	if holder != nil {
		op.Import.Then, op.Import.EndedAt = holder, r.Holder.Since
		if op.Import.EndedAt.IsZero() {
			op.Import.EndedAt = b.now
		}
		b.sum.Claimed++
	} else if r.State == job.Claimed {
		b.sum.Lost++
	}
	if b.Counted != nil {
		op.Limits = b.Counted(&op)
		if holder != nil {
			holder.Limits = b.Counted(holder)
		}
	}
	return op, nil
}

// holding is the claim of a job as it comes along, with its token and a whole lease; nil: there
// is none, or it does not. One whose lease ran out since the board is frozen comes along, since
// nobody could extend it.
func (b *copier) holding(r *driver.Record) *driver.Op {
	h := r.Holder
	if r.State != job.Claimed || h == nil || h.Foreign || h.Token.Generation != b.Target.Generation ||
		!h.NoExpiry && h.Remaining+time.Since(b.Frozen) <= 0 {
		return nil
	}
	then := &driver.Op{
		Kind: driver.Claim, Job: r.Posting.ID, Owner: h.Owner, Token: h.Token, NoExpiry: h.NoExpiry,
		Event: job.ClaimedEvent, Reason: "moved",
	}
	if !h.NoExpiry {
		s, _ := record.ReadStatus(r.Status) // op reads it again
		then.Lease = max(s.Present.Lease, h.Remaining, job.MinLease)
	}
	return then
}

// send brings what was gathered.
func (b *copier) send() error {
	ops := b.ops
	if len(ops) == 0 {
		return nil
	}
	for i := range ops {
		if err := ops[i].Check(b.Target.Capabilities); err != nil {
			return &job.Error{Job: ops[i].Job, Kind: job.Invalid, Message: "the other store does not take this job", Err: err}
		}
	}
	results := b.To.Apply(b.ctx, b.Key, ops)
	if len(results) != len(ops) {
		return job.Errorf(job.Internal, "the driver broke its contract: it did not answer each op")
	}
	for i := range results {
		r := &results[i]
		if r.Kind == job.NoKind {
			continue
		}
		if r.Taken != (job.ID{}) {
			return taken(ops[i].Job, r)
		}
		return r.Err(&ops[i])
	}
	b.ops, b.size = b.ops[:0], 0
	if b.Progress != nil {
		b.Progress(b.sum.Open + b.sum.Trashed + b.sum.Ended)
	}
	return nil
}
