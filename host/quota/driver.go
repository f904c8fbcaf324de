package quota

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// The keys of the counters that a store keeps for a board, where it can.
const (
	keyOpenJobs    = "open_jobs"
	keyClaims      = "claims"
	keyDetailBytes = "detail_bytes"
)

// How old counts may be: usually, and where they would refuse something.
const (
	countsFor     = time.Second
	countsForNear = 50 * time.Millisecond
)

// metered is a driver through which one board is bounded. A store that can, counts
// in the same step in which it makes a change, so that any number of hosts
// together never go above a board's limit. A tally keeps what it does not count:
// every limit on other stores, and what a tenant has on several boards.
type metered struct {
	driver.Driver

	of *Board

	mu      sync.Mutex
	limits  bool // the store counts by itself
	counted counting
	tally   tally // of the board, where the store does not count
}

// OpenBoard notes what the store can do.
func (m *metered) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := m.Driver.OpenBoard(ctx, spec)
	if err == nil {
		m.mu.Lock()
		m.limits = status.Capabilities.Limits
		m.mu.Unlock()
		m.of.quotas.opened(m.of.spec.Tenant)
	}
	return status, err
}

// allowance is what a board may have now. A field of 0 is no limit, -1 nothing.
type allowance struct {
	openJobs, claims, detailBytes int64
	whose                         map[string]string // by key: the board's limit or the tenant's
	said                          map[string]int64  // what that limit is
}

// allowed returns what the board may have.
func (m *metered) allowed(ctx context.Context, board, tenant config.Limits) allowance {
	a := allowance{whose: map[string]string{}, said: map[string]int64{}}
	others := m.of.others(ctx, tenant)
	own := m.uncounted()
	q, now := m.of.quotas, time.Now()
	of := q.Tenant(m.of.spec.Tenant)
	fit := func(key string, ofBoard, ofTenant, others, own int64) int64 {
		most := int64(0)
		if ofBoard > 0 {
			most, a.whose[key], a.said[key] = max(ofBoard-own, -1), "board", ofBoard
		}
		if left := q.atOnce(of, key, ofTenant, now) - others - own; ofTenant > 0 && (ofBoard == 0 || left < most) {
			most, a.whose[key], a.said[key] = max(left, -1), "tenant", ofTenant
		}
		if most == 0 && a.said[key] > 0 {
			most = -1
		}
		return most
	}
	a.openJobs = fit(keyOpenJobs, board.OpenJobs, tenant.OpenJobs, others.Open, own.Open)
	a.claims = fit(keyClaims, board.Claims, tenant.Claims, others.Claimed, own.Claimed)
	a.detailBytes = fit(keyDetailBytes, board.DetailBytes, tenant.DetailBytes, others.Limits[keyDetailBytes], 0)
	return a
}

// uncounted returns how many jobs and claims the store's counters do not know,
// since they were made before there was a limit, or by other programs.
func (m *metered) uncounted() driver.Counts {
	if !m.countsItself() {
		return driver.Counts{}
	}
	counts := m.counted.now()
	return driver.Counts{
		Open:    max(0, counts.Open-counts.Limits[keyOpenJobs]),
		Claimed: max(0, counts.Claimed-counts.Limits[keyClaims]),
	}
}

// others returns what the tenant's other boards have, where it has a limit.
func (b *Board) others(ctx context.Context, limits config.Limits) driver.Counts {
	if limits.OpenJobs == 0 && limits.Claims == 0 && limits.DetailBytes == 0 {
		return driver.Counts{Limits: map[string]int64{}}
	}
	others := slices.DeleteFunc(b.quotas.Boards(b.spec.Tenant), func(o *Board) bool { return o.spec.Name == b.spec.Name })
	return countAll(ctx, others, countsFor)
}

// Apply bounds posts and claims, and lets everything else through.
func (m *metered) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	ofBoard, ofTenant := m.of.Limits(), m.of.quotas.Limits(m.of.spec.Tenant)
	if !stored(ofBoard) && !stored(ofTenant) || !slices.ContainsFunc(ops, bounds) {
		return m.Driver.Apply(ctx, board, ops)
	}
	if ofTenant.PostsPerSecond > 0 && slices.ContainsFunc(ops, func(op driver.Op) bool { return op.Kind == driver.Post }) {
		t := m.of.quotas.Tenant(m.of.spec.Tenant)
		m.of.quotas.begin(ctx, m.of.spec.Tenant, t, &t.meter.posts)
	}
	m.count(ctx, countsFor, 0)
	b := bounded{
		metered: m, board: ofBoard, tenant: ofTenant, itself: m.countsItself(), shares: map[string]*share{},
	}
	b.take(ctx, ops)
	b.allowance = m.allowed(ctx, ofBoard, ofTenant) // after it, since a larger part may have been had
	results := make([]driver.Result, len(ops))
	var through []driver.Op
	var at []int
	for i := range ops {
		op := ops[i]
		if err := b.bound(&op); err != nil {
			results[i] = driver.Failed(err)
			continue
		}
		through, at = append(through, op), append(at, i)
	}
	if len(through) > 0 {
		for i, r := range m.Driver.Apply(ctx, board, through) {
			b.use(&through[i], &r)
			results[at[i]] = b.said(&through[i], r)
		}
	}
	b.giveBack()
	return results
}

// bounds reports whether an op takes something of a limit. Whatever ends something makes room, and is
// counted when the store is asked for its counts.
func bounds(op driver.Op) bool { return op.Kind == driver.Post || op.Kind == driver.Claim }

// bounded is one Apply.
type bounded struct {
	*metered

	allowance allowance

	board, tenant config.Limits

	itself bool              // the store counts by itself
	shares map[string]*share // of the tallies, by key
}

// bound refuses an op that would go above a limit, or has the store look.
func (b *bounded) bound(op *driver.Op) error {
	a := &b.allowance
	switch op.Kind {
	case driver.Post:
		if err := b.of.quotas.boardRate(&b.of.meter().posts, b.board.PostsPerSecond, postsName); err != nil {
			return err
		}
		of := b.of.quotas.Tenant(b.of.spec.Tenant)
		if err := b.of.quotas.rate(b.of.spec.Tenant, of, &of.meter.posts, b.tenant.PostsPerSecond, postsName); err != nil {
			return err
		}
		size := int64(len(op.Posting.Details))
		if b.shares[keyDetailBytes].short(size) {
			return b.shares[keyDetailBytes].over(keyDetailBytes)
		}
		if b.shares[keyOpenJobs].short(1) {
			return b.shares[keyOpenJobs].over(keyOpenJobs)
		}
		b.shares[keyDetailBytes].give(size)
		b.shares[keyOpenJobs].give(1)
		if !b.itself {
			return nil
		}
		op.Limits = append(op.Limits, limit(keyOpenJobs, 1, a.openJobs)...)
		op.Limits = append(op.Limits, limit(keyDetailBytes, size, a.detailBytes)...)
	case driver.Claim:
		share := b.shares[keyClaims]
		if share.short(1) {
			return share.over(keyClaims)
		}
		spec := *op.Claim
		if share != nil {
			spec.Count = int(min(int64(spec.Count), share.left))
		}
		share.give(int64(spec.Count))
		if op.Claim = &spec; !b.itself {
			return nil
		}
		spec.Candidates = append([]driver.Candidate(nil), spec.Candidates...)
		for i := range spec.Candidates {
			c := &spec.Candidates[i]
			c.Limits = append(c.Limits, limit(keyClaims, 1, a.claims)...)
		}
	default: // whatever ends something makes room
	}
	return nil
}

func (m *metered) countsItself() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.limits
}

// limit is what the store is to count; nothing where there is no limit.
func limit(key string, weight, most int64) []driver.Limit {
	if most == 0 {
		return nil
	}
	return []driver.Limit{{Key: key, Weight: max(weight, 1), Max: max(most, 0)}}
}

func (b *bounded) over(key string) error {
	return Over(key, b.allowance.said[key], b.allowance.whose[key])
}

// said puts the store's refusals into words. A claim that got nothing because of
// a limit is refused as a whole: it would find the same at every other job.
func (b *bounded) said(op *driver.Op, r driver.Result) driver.Result {
	if r.Kind == job.QuotaExceeded && b.allowance.said[r.Message] > 0 {
		r.Message = b.over(r.Message).Error()
	}
	if op.Kind != driver.Claim || r.Kind != job.NoKind {
		return r
	}
	for i := range r.Skipped {
		gone := &r.Skipped[i]
		if gone.Kind != job.QuotaExceeded || b.allowance.said[gone.Message] == 0 {
			continue
		}
		gone.Message = b.over(gone.Message).Error()
		if len(r.Claims) == 0 {
			r.Kind, r.Message = job.QuotaExceeded, gone.Message
			return r
		}
	}
	return r
}

// stored reports whether some of the limits are counted in the store.
func stored(l config.Limits) bool {
	return l.OpenJobs > 0 || l.Claims > 0 || l.DetailBytes > 0 || l.PostsPerSecond > 0
}
