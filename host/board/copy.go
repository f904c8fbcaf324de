package board

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A Copy brings all that one store keeps of a board to another one, in which the board
// receives for a move (see driver.Mover): everything, and then in rounds what has changed
// meanwhile, while the board is at work in the first. Jobs that somebody holds come without
// their claims, which Rest brings when the board is frozen there.
type Copy struct {
	From, To driver.Driver
	Key      string // of the board, in both
	Move     [16]byte
	Target   driver.BoardStatus // of the board in the second store, as it receives
	History  time.Duration
	Frozen   time.Time                          // since when no lease could be extended, by this host's clock; zero: the board is at work
	Counted  func(op *driver.Op) []driver.Limit // what the store is to count of an import's post or claim; nil: nothing
	Progress func(jobs int64)                   // told how many jobs were brought; nil: nobody

	random  entropy
	changed changedJobs
	jobs    int64 // that were brought
	lost    int64 // claims that could not come along
}

// copiedSpaces are the spaces whose documents go along: all that is a board's own, but not
// who works there, which says so again.
var copiedSpaces = []string{driver.BookSpace, driver.SettingSpace, tickSpace, bookmarkSpace}

// Documents brings the documents, as long as the board in the second store takes them. What
// is not in the first is taken away. Of a frozen board they come after its jobs, as the records
// of batches then say what the first store has counted and the second has not.
func (c *Copy) Documents(ctx context.Context) error {
	docs := c.To.Documents()
	for _, name := range copiedSpaces {
		space := driver.Space{Board: c.Key, Name: name}
		there := map[string]driver.Document{}
		if err := eachPage(ctx, docs, space, func(page []driver.Document) error {
			for i := range page {
				there[page[i].Name] = page[i]
			}
			return nil
		}); err != nil {
			return err
		}
		if err := eachPage(ctx, c.From.Documents(), space, func(page []driver.Document) error {
			return c.page(ctx, space, page, there)
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

// page brings a few documents of a space, and takes them out of those that are there.
func (c *Copy) page(ctx context.Context, space driver.Space, page []driver.Document, there map[string]driver.Document) error {
	if space.Name == driver.SettingSpace {
		if err := c.batches(ctx, page); err != nil {
			return err
		}
	}
	for i := range page {
		doc := &page[i]
		before := there[doc.Name]
		delete(there, doc.Name)
		if space.Name == driver.SettingSpace && doc.Name == lossDocument || before.Version > 0 && bytes.Equal(before.Data, doc.Data) {
			continue // a loss is of generations and positions of the first store
		}
		if _, err := c.To.Documents().Put(ctx, space, driver.Document{Name: doc.Name, Data: doc.Data, Expires: doc.Expires}, before.Version); err != nil {
			return err
		}
	}
	return nil
}

// eachPage goes through the documents of a space, a few at once: each may have megabytes.
func eachPage(ctx context.Context, docs driver.Documents, space driver.Space, do func([]driver.Document) error) error {
	for after := ""; ; {
		page, err := docs.List(ctx, space, after, 8)
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].Name
		if err := do(page); err != nil {
			return err
		}
	}
}

// Bounds on what is brought at once.
const (
	copyMost  = 64
	copyBytes = 1 << 20
)

// Everything brings the jobs: those that ended, the trash, and the open ones in the order in
// which they were posted, each with all that belongs to it. The board in the second store is
// empty. What changes meanwhile is told by Follow, and left to a Round.
func (c *Copy) Everything(ctx context.Context) error {
	c.jobs, c.lost = 0, 0
	c.changed.knowsHeld()
	b := c.copier(ctx)
	x := exporter{from: keptBoard{c.From, c.Key}, job: b.take}
	open, _, err := x.open(ctx)
	if err == nil {
		err = x.jobs(ctx, open)
	}
	if err == nil {
		err = b.send()
	}
	return err
}

// Lost returns how many claims could not come along.
func (c *Copy) Lost() int64 { return c.lost }

func (c *Copy) copier(ctx context.Context) *copier {
	return &copier{Copy: c, ctx: ctx, taking: taking{random: &c.random, history: c.History, lost: MovedReason, groups: c.Target.Capabilities.Groups, now: time.Now()}}
}

// A copier is one run through jobs of a Copy.
type copier struct {
	*Copy
	taking

	ctx   context.Context //nolint:containedctx // of the one call that the copier is made for
	steps [][]driver.Op   // what is to be sent, one after the other: a job's first op, its second, ...
	ops   int             // in all
	size  int

	postponed bool // some are left to the next round
}

// take brings a job that the second store does not know, with others.
func (b *copier) take(r *driver.Record) error {
	if r.State == job.Claimed {
		b.changed.holds(r.Posting.ID)
	}
	b.now = time.Now() // what is left of a key's window is counted from when it is sent
	op, err := b.moved(r)
	if err != nil {
		return err
	}
	return b.add(op)
}

// add has ops on one job sent, in this order.
func (b *copier) add(ops ...driver.Op) error {
	for i := range ops {
		if len(b.steps) == i {
			b.steps = append(b.steps, nil)
		}
		op := &ops[i]
		b.steps[i] = append(b.steps[i], *op)
		if op.Posting != nil {
			b.size += len(op.Posting.Details) + len(op.Posting.Extra)
		}
		if op.Status != nil {
			b.size += len(*op.Status)
		}
		for n := range op.Attach {
			b.size += len(op.Attach[n].Data)
		}
	}
	if b.ops += len(ops); b.ops >= min(copyMost, max(1, b.Target.Capabilities.MaxBatch)) || b.size >= copyBytes {
		return b.send()
	}
	return nil
}

// moved is the op that posts a job.
func (b *copier) moved(r *driver.Record) (driver.Op, error) {
	line := exported(r)
	holder := b.holding(r)
	if holder != nil || b.Frozen.IsZero() && r.State == job.Claimed {
		line.State = job.Unclaimed.String() // the claim comes by itself
	}
	op, err := b.op(line)
	if err != nil {
		return op, &job.Error{Job: r.Posting.ID, Kind: job.Corrupt, Message: "the job cannot be brought to another store", Err: err}
	}
	if ext, _ := record.ReadExtra(line.Posting); stands(r) && ext.Batch != "" && !b.groups {
		return op, uncounted(ext.Batch)
	}
	op.Reason, op.Import.Move = "moved", b.Move
	if r.State == job.Complete && !r.EndedBy.IsZero() { // so that a retry of the ending is answered there, too
		op.Import.Then.Precondition, op.Import.Then.Token = driver.HeldByToken, r.EndedBy
	}
	if holder != nil {
		op.Import.Then, op.Import.EndedAt = holder, r.Holder.Since
		if op.Import.EndedAt.IsZero() {
			op.Import.EndedAt = b.now
		}
	} else if r.State == job.Claimed && !b.Frozen.IsZero() {
		b.Copy.lost++
	}
	if b.Counted != nil {
		op.Limits = b.Counted(&op)
		if holder != nil {
			holder.Limits = b.Counted(holder)
		}
	}
	return op, nil
}

// holding is the claim of a job as it comes along, with its token and a whole lease, or what its
// job's timeout leaves of one; nil: there is none, or it does not. One whose lease ran out since
// the board is frozen has a whole one, too: nobody could extend it.
func (b *copier) holding(r *driver.Record) *driver.Op {
	h := r.Holder
	if b.Frozen.IsZero() || r.State != job.Claimed || h == nil || h.Foreign || h.Token.Generation != b.Target.Generation {
		return nil
	}
	then := &driver.Op{
		Kind: driver.Claim, Job: r.Posting.ID, Owner: h.Owner, Token: h.Token, NoExpiry: h.NoExpiry,
		Event: job.ClaimedEvent, Reason: "moved",
	}
	switch left := h.Remaining + time.Since(b.Frozen); { // when it was frozen
	case h.NoExpiry:
	case left <= 0: // before the board was frozen: it ends there for the reason for which it would have ended here
		then.Lease = job.MinLease
	default:
		s, _ := record.ReadStatus(r.Status) // op reads it again
		then.Lease = max(min(max(s.Present.Lease, h.Remaining), b.rest(r, left)), job.MinLease)
	}
	return then
}

// rest is for how much longer a claim may stand by its job's timeout, which does not run while
// the board is frozen. It is not below what the first store would have left it: the clocks of
// the store and of this host may differ.
func (b *copier) rest(r *driver.Record, left time.Duration) time.Duration {
	ext, err := record.ReadExtra(r.Posting.Extra)
	if err != nil || ext.Timeout == 0 || r.Holder.Since.IsZero() {
		return math.MaxInt64
	}
	return max(ext.Timeout-b.Frozen.Sub(r.Holder.Since), min(left, ext.Timeout))
}

// send brings what was gathered.
func (b *copier) send() error {
	for _, ops := range b.steps {
		for part := range slices.Chunk(ops, max(1, b.Target.Capabilities.MaxBatch)) {
			if err := b.apply(part); err != nil {
				return err
			}
		}
	}
	b.steps, b.ops, b.size = b.steps[:0], 0, 0
	if b.Progress != nil {
		b.Progress(b.jobs)
	}
	return nil
}

func (b *copier) apply(ops []driver.Op) error {
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
		switch {
		case r.Kind == job.NoKind:
			if ops[i].Kind == driver.Post && !r.Repeated {
				b.jobs++
			}
		case r.Kind == job.AlreadyExists && b.Frozen.IsZero():
			b.changed.again(ops[i].Job) // it, or who has its key, became another meanwhile
			b.postponed = true
		case r.Kind == job.AlreadyExists && r.Taken != (job.ID{}):
			return &job.Error{Job: ops[i].Job, Kind: job.Aborted, Message: "the other store has its key taken still", Err: taken(ops[i].Job, r)}
		default:
			return r.Err(&ops[i])
		}
	}
	return nil
}
