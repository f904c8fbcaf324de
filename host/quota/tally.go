package quota

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// overshoot bounds how far all hosts together may go above a limit that no store counts
// in one place: by one part in so many of the limit.
const overshoot = 100

// tally keeps a limit of which the parts are counted in several places, or by a store
// that does not count in the step in which it changes something: what a tenant has on
// all its boards, or a board on such a store. This host lets through so much since it
// last asked for the counts, and then asks anew. What all hosts may have let through
// that the others don't see yet is then a hundredth of the limit, and one for each host
// at least. The zero value knows nothing yet.
type tally struct {
	mu    sync.Mutex
	asked time.Time
	sum   driver.Counts
	away  driver.Counts // what boards had that were here as this host got its part of the limit

	going, done map[string]int64 // since then, by key: what is not answered yet, and what is
}

// counted returns the count of one limit.
func counted(c *driver.Counts, key string) int64 {
	switch key {
	case keyOpenJobs:
		return c.Open
	case keyClaims:
		return c.Claimed
	}
	return c.Limits[key]
}

// take takes up to n of what is left of a limit, and returns how much. settle must be
// called for it. most is asked for the limit when nothing else is taken. count asks the
// store, or several; it waits for none that does not answer.
func (t *tally) take(ctx context.Context, key string, n, hosts int64, most func() int64, count func(context.Context) driver.Counts) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin()
	limit := most()
	age := time.Since(t.asked)
	unseen := t.going[key] + t.done[key] + n
	if age > countsFor || unseen > max(1, limit/(overshoot*max(1, hosts))) || age > countsForNear && t.left(key, limit) < n {
		t.asked = time.Now()
		t.sum = count(ctx)
		clear(t.done)
	}
	n = max(0, min(n, t.left(key, limit)))
	t.going[key] += n
	return n
}

// begin makes the maps. The caller has mu.
func (t *tally) begin() {
	if t.going == nil {
		t.going, t.done = map[string]int64{}, map[string]int64{}
	}
}

// now counts anew, and returns what there is of a limit, with what is not answered yet.
func (t *tally) now(count func() driver.Counts) (use func(key string) int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin()
	t.asked, t.sum = time.Now(), count()
	clear(t.done)
	sum, going := t.sum, maps.Clone(t.going)
	return func(key string) int64 { return counted(&sum, key) + going[key] }
}

// used returns what there is of a limit, as far as this host knows.
func (t *tally) used(key string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return -t.left(key, 0) - counted(&t.away, key)
}

// left returns what is left of a limit, as far as this host knows.
func (t *tally) left(key string, limit int64) int64 {
	return limit - counted(&t.sum, key) - counted(&t.away, key) - t.going[key] - t.done[key]
}

// account says how much of what was taken is used.
func (t *tally) account(key string, taken, used int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.going[key] -= taken
	t.done[key] += used
}

// share is what one Apply has of a limit. A nil one is not bounded.
type share struct {
	limit int64
	whose string // the limit is
	left  int64
	used  int64
	taken []taken
}

// taken is what was taken of one tally.
type taken struct {
	tally *tally
	n     int64
}

// take takes from the tallies what the ops may use: from the board's where the store
// does not count, and from the tenant's where it has several boards.
func (b *bounded) take(ctx context.Context, ops []driver.Op) {
	var jobs, bytes, claims int64
	for i := range ops {
		switch op := &ops[i]; op.Kind {
		case driver.Post:
			jobs++
			bytes += int64(len(op.Posting.Details))
		case driver.Claim:
			claims += int64(op.Claim.Count)
		default: // whatever ends something makes room
		}
	}
	b.share(ctx, keyOpenJobs, jobs, b.board.OpenJobs, b.tenant.OpenJobs)
	b.share(ctx, keyDetailBytes, bytes, 0, b.tenant.DetailBytes)
	b.share(ctx, keyClaims, claims, b.board.Claims, b.tenant.Claims)
}

func (b *bounded) share(ctx context.Context, key string, n, ofBoard, ofTenant int64) {
	q, name := b.of.quotas, b.of.spec.Tenant
	s := &share{left: n}
	from := func(t *tally, limit int64, whose string, take func(n int64) int64) {
		got := take(s.left)
		if len(s.taken) == 0 || got < s.left {
			s.limit, s.whose = limit, whose
		}
		s.left, s.taken = got, append(s.taken, taken{t, got})
	}
	if n > 0 && ofBoard > 0 && !b.itself {
		from(&b.tally, ofBoard, "board", func(n int64) int64 {
			return b.tally.take(ctx, key, n, q.sharing(), func() int64 { return ofBoard }, func(ctx context.Context) driver.Counts { return b.count(ctx, 0, 0) })
		})
	}
	if n > 0 && ofTenant > 0 && (!b.itself || len(q.Boards(name)) > 1 || q.counts()) {
		t := q.Tenant(name)
		from(&t.tally, ofTenant, "tenant", func(n int64) int64 { return q.take(ctx, name, t, key, n, ofTenant) })
	}
	if len(s.taken) > 0 {
		b.shares[key] = s
	}
}

// sharing is how many hosts let through of one limit what the others do not see yet.
func (q *Quotas) sharing() int64 {
	if q.Ledger != nil {
		return 1
	}
	return q.hosts.Load()
}

// take takes of a tenant's limit on what lies on its boards. Where this host's part of it is
// too small, a larger one is asked for.
func (q *Quotas) take(ctx context.Context, name string, t *Tenant, key string, n, limit int64) int64 {
	most := func() int64 { return q.atOnce(t, key, limit, time.Now()) }
	if !q.counts() {
		return t.tally.take(ctx, key, n, q.sharing(), most, func(ctx context.Context) driver.Counts { return countAll(ctx, q.Boards(name), 0) })
	}
	count := func(ctx context.Context) driver.Counts { return t.countHere(ctx, q.Boards(name)) }
	w := t.wanted(key)
	w.ask(0)
	q.begin(ctx, name, t, nil)
	got := t.tally.take(ctx, key, n, 1, most, count)
	if got < n {
		w.ask(n - got)
		q.Ledger.Ask(ctx, name)
		got += t.tally.take(ctx, key, n-got, 1, most, count)
	}
	return got
}

func (s *share) short(n int64) bool    { return s != nil && s.left < n }
func (s *share) over(key string) error { return Over(key, s.limit, s.whose) }

func (s *share) give(n int64) {
	if s != nil {
		s.left -= n
	}
}

// use notes what an op used. Of one whose outcome is unknown that is all that it could
// have.
func (b *bounded) use(op *driver.Op, r *driver.Result) {
	if r.Kind != job.NoKind && r.Kind != job.OutcomeUnknown {
		return
	}
	add := func(key string, n int64) {
		if s := b.shares[key]; s != nil {
			s.used += n
		}
	}
	switch {
	case op.Kind == driver.Post:
		add(keyOpenJobs, 1)
		add(keyDetailBytes, int64(len(op.Posting.Details)))
	case op.Kind == driver.Claim && r.Kind == job.NoKind:
		add(keyClaims, int64(len(r.Claims)))
	case op.Kind == driver.Claim:
		add(keyClaims, int64(op.Claim.Count))
	}
}

// giveBack gives back what was taken and not used.
func (b *bounded) giveBack() {
	for key, s := range b.shares {
		for _, t := range s.taken {
			t.tally.account(key, t.n, s.used)
		}
	}
}
