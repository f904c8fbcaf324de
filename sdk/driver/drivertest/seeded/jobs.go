package seeded

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

func jobBugs() []Bug {
	return []Bug{
		{Name: "drops-writes", Doc: "acknowledges every fifth post and does not make it", Check: "post/acknowledged", Open: wrap(dropsWrites)},
		{
			Name: "writes-behind", Doc: "acknowledges a post before it is written, and loses it when it is closed",
			Check: "restart/again-and-again", Open: writesBehind(), Lasting: true,
		},
		{Name: "post-not-idempotent", Doc: "refuses a post that comes again", Check: "post/again", Open: eachOp(postNotIdempotent)},
		{Name: "ignores-digest", Doc: "takes another posting for the one that stands", Check: "post/other-digest", Open: eachOp(ignoresDigest)},
		{Name: "keeps-buffers", Doc: "keeps its caller's buffers", Check: "post/copies", Open: wrap(keepsBuffers)},
		{Name: "no-tombstone", Doc: "leaves nothing of a job that was removed", Check: "retry/remove-by-token", Open: wrap(noTombstone)},
		{Name: "forgets-release", Doc: "does not know a release again once the job is another's", Check: "retry/release-by-token", Open: eachOp(forgetsRelease)},
		{Name: "trash-loses-details", Doc: "keeps no details in the trash", Check: "trash/keeps-everything", Open: wrap(func(d driver.Driver) driver.Driver { return trashLosesDetails{d} })},
		{Name: "batch-stops", Doc: "stops a batch at the first item that fails", Check: "batch/goes-on", Open: wrap(func(d driver.Driver) driver.Driver { return batchStops{d} })},
		{Name: "cancel-lies", Doc: "says Interrupted of what it does all the same", Check: "cancel/before", Open: wrap(func(d driver.Driver) driver.Driver { return cancelLies{d} })},
		{Name: "keeps-no-finals", Doc: "keeps tombstones and no final records", Check: "remove/final", Open: eachOp(keepsNoFinals)},
		{Name: "purge-forbids", Doc: "refuses to post what was purged", Check: "remove/purge-final", Open: wrap(purgeForbids)},
		{Name: "imports-as-new", Doc: "takes an imported job for one that was posted just now", Check: "import/open", Open: eachOp(importsAsNew)},
		{Name: "measures-pages", Doc: "counts pages of 4 KiB where bytes are wanted", Check: "board/usage", Open: wrap(func(d driver.Driver) driver.Driver { return measuresPages{d} })},
		{Name: "imports-no-token", Doc: "does not know by which token an imported job ended", Check: "import/ended", Open: eachOp(importsNoToken)},
	}
}

type measuresPages struct{ driver.Driver }

func (m measuresPages) Measure(ctx context.Context) (driver.Usage, error) {
	u, err := m.Driver.(driver.Measurer).Measure(ctx) //nolint:forcetypeassert // memdriver is one
	u.Used = (u.Used + 4<<10 - 1) / (4 << 10)
	return u, err
}

func importsAsNew(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Import != nil && op.Import.Then == nil && !op.Import.CreatedAt.IsZero() {
		op.Import = &driver.Import{CreatedAt: time.Now()}
	}
	return one(ctx, d, board, op)
}

func importsNoToken(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Import != nil && op.Import.Then != nil && op.Import.Then.Precondition == driver.HeldByToken {
		i := *op.Import
		then := *i.Then
		then.Precondition, then.Token = driver.Whatever, job.Token{}
		i.Then, op.Import = &then, &i
	}
	return one(ctx, d, board, op)
}

func dropsWrites(d driver.Driver) driver.Driver {
	var n, last atomic.Uint64
	return perOp{d, func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
		if op.Kind == driver.Post && n.Add(1)%5 == 0 {
			record := &driver.Record{Posting: *op.Posting, State: job.Unclaimed, Version: 1, Position: driver.Position(last.Load())}
			return driver.Result{Position: record.Position, Version: 1, At: time.Now(), Record: record}
		}
		r := one(ctx, d, board, op)
		last.Store(uint64(r.Position))
		return r
	}}
}

// behind is a driver whose store lasts, but for the posts that came last.
type behind struct {
	driver.Driver
	mu      sync.Mutex
	pending map[string][]job.ID // by board
}

// writesBehind opens drivers on one store.
func writesBehind() func(context.Context, driver.Config) (driver.Driver, error) {
	var once sync.Once
	var store driver.Driver
	var err error
	return func(ctx context.Context, c driver.Config) (driver.Driver, error) {
		once.Do(func() { store, err = memdriver.Open(ctx, c) })
		return &behind{Driver: store, pending: map[string][]job.ID{}}, err
	}
}

// OpenBoard declares what a store that lasts would.
func (b *behind) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := b.Driver.OpenBoard(ctx, spec)
	status.Durability = driver.Durable
	return status, err
}

func (b *behind) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	results := b.Driver.Apply(ctx, board, ops)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending[board] = nil
	for i := range ops {
		if ops[i].Kind == driver.Post && results[i].Kind == job.NoKind && !results[i].Repeated {
			b.pending[board] = append(b.pending[board], ops[i].Posting.ID)
		}
	}
	return results
}

// Close loses what was not written. It leaves the store open.
func (b *behind) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for board, ids := range b.pending {
		for _, id := range ids {
			for _, kind := range []driver.OpKind{driver.Remove, driver.Purge} {
				one(context.Background(), b.Driver, board, driver.Op{Kind: kind, Job: id})
			}
		}
	}
	return nil
}

func postNotIdempotent(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	r := one(ctx, d, board, op)
	if op.Kind == driver.Post && r.Repeated {
		return driver.Result{Kind: job.AlreadyExists, Message: "there is such a job", Record: r.Record}
	}
	return r
}

func ignoresDigest(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	r := one(ctx, d, board, op)
	if op.Kind == driver.Post && r.Kind == job.AlreadyExists {
		return driver.Result{Repeated: true, Position: r.Record.Position, Version: r.Record.Version, At: time.Now(), Record: r.Record}
	}
	return r
}

type bufferKeeper struct {
	driver.Driver
	mu   sync.Mutex
	kept map[job.ID][]byte
}

func keepsBuffers(d driver.Driver) driver.Driver {
	return &bufferKeeper{Driver: d, kept: map[job.ID][]byte{}}
}

func (b *bufferKeeper) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	b.mu.Lock()
	for i := range ops {
		if p := ops[i].Posting; p != nil {
			b.kept[p.ID] = p.Details
		}
	}
	b.mu.Unlock()
	return b.Driver.Apply(ctx, board, ops)
}

func (b *bufferKeeper) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	records, err := b.Driver.Read(ctx, board, ids, parts)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range records {
		if kept, ok := b.kept[records[i].Posting.ID]; ok && records[i].Posting.Details != nil {
			records[i].Posting.Details = kept
		}
	}
	return records, err
}

func noTombstone(d driver.Driver) driver.Driver {
	var mu sync.Mutex
	removed := map[job.ID]bool{}
	return perOp{d, func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
		mu.Lock()
		defer mu.Unlock()
		if removed[op.Job] && op.Kind != driver.Purge {
			return driver.Result{Kind: job.NotFound, Message: "there is no such job"}
		}
		r := one(ctx, d, board, op)
		if op.Kind == driver.Remove && r.Kind == job.NoKind {
			removed[op.Job] = true
		}
		return r
	}}
}

func forgetsRelease(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Kind == driver.Release && op.Precondition == driver.HeldByToken {
		if h := read(ctx, d, board, op.Job).Holder; h != nil && h.Token != op.Token {
			return driver.Result{Kind: job.LeaseLost, Owner: h.Owner, Message: "somebody else holds the job"}
		}
	}
	return one(ctx, d, board, op)
}

type trashLosesDetails struct{ driver.Driver }

func (t trashLosesDetails) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	records, err := t.Driver.Read(ctx, board, ids, parts)
	for i := range records {
		if records[i].State == job.Trashed {
			records[i].Posting.Details = nil
		}
	}
	return records, err
}

type batchStops struct{ driver.Driver }

func (b batchStops) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	results := make([]driver.Result, len(ops))
	for i := range ops {
		if i > 0 && results[i-1].Kind != job.NoKind {
			results[i] = driver.Result{Kind: job.Unavailable, Message: "an item before it failed"}
			continue
		}
		results[i] = one(ctx, b.Driver, board, ops[i])
	}
	return results
}

type cancelLies struct{ driver.Driver }

func (c cancelLies) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	results := c.Driver.Apply(context.WithoutCancel(ctx), board, ops)
	if err := ctx.Err(); err != nil {
		for i := range results {
			results[i] = driver.Failed(err)
		}
	}
	return results
}

func keepsNoFinals(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Ending != nil {
		ending := *op.Ending
		ending.Keep = 0
		op.Ending = &ending
	}
	return one(ctx, d, board, op)
}

func purgeForbids(d driver.Driver) driver.Driver {
	var mu sync.Mutex
	purged := map[job.ID]bool{}
	return perOp{d, func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind == driver.Post && purged[op.Posting.ID] {
			return driver.Result{Kind: job.AlreadyExists, Message: "it was purged"}
		}
		r := one(ctx, d, board, op)
		if op.Kind == driver.Purge && r.Kind == job.NoKind {
			purged[op.Job] = true
		}
		return r
	}}
}
