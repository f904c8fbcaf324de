// Package quota keeps tenants and boards within their limits: how often they call and
// post, how many jobs, claims and bytes they have, how many watch, and how much fuel
// their policies use. The servers of a fleet share what a tenant may use as it is used (see
// host/ledger); other hosts of one catalog divide rates evenly. What a store can count in
// the step that changes it, it counts; the rest is counted here, with an overshoot that is
// bounded (see tally).
//
// Locks: a Board's counts are read with no lock held but the tally's that asks for
// them; bucket.mu, counting.mu and metered.mu are held for arithmetic only, and none of
// them while another one is taken.
package quota

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/ledger"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Quotas are those of one host. Its fields are set before its methods are called.
type Quotas struct {
	// Limits returns what a tenant may have, defaults included.
	Limits func(tenant string) config.Limits

	// Boards returns the boards of a tenant that are hosted, and Board one of them, or
	// nil.
	Boards func(tenant string) []*Board
	Board  func(tenant, name string) *Board

	// Go runs what asks a store for counts; whoever closes the host waits for it.
	Go func(func())

	Simulations Simulations

	// Ledger shares the limits of tenants out among the servers of a fleet, of which one has
	// all calls of a board; nil: the host is in none, and rates are divided among hosts.
	Ledger *ledger.Ledger

	hosts   atomic.Int64 // that share the rates; 0: not known
	tenants sync.Map     // *Tenant by name
}

// meter counts what a tenant, or a board, uses on this host.
type meter struct {
	requests, posts bucket
	fuel            bucket
	burnt           atomic.Int64 // all the fuel that was used
	watchers        atomic.Int64
}

// Tenant is what a tenant uses on this host.
type Tenant struct {
	// Putting is held while a policy of the tenant is put: what it may put depends on
	// what it has.
	Putting sync.Mutex

	meter    meter
	tally    tally
	here     here // where the servers of a fleet share limits
	parts    atomic.Pointer[parts]
	watching wanted
	kept     struct{ openJobs, claims, detailBytes wanted }
}

// Tenant returns what a tenant uses on this host, by the tenant's name.
func (q *Quotas) Tenant(name string) *Tenant {
	if found, ok := q.tenants.Load(name); ok {
		return found.(*Tenant)
	}
	found, _ := q.tenants.LoadOrStore(name, &Tenant{})
	return found.(*Tenant)
}

// SetHosts says how many hosts share the rates.
func (q *Quotas) SetHosts(n int) { q.hosts.Store(int64(n)) }

// rate refuses what is more than a tenant may do in a second.
func (q *Quotas) rate(tenant string, t *Tenant, b *bucket, limit int64, name string) error {
	now := time.Now()
	if limit == 0 || b.take(1, q.perSecond(t, name, limit, now), now) {
		return nil
	}
	q.short(tenant)
	return Over(name, limit, "tenant")
}

// boardRate refuses what is more than may be done with a board in a second.
func (q *Quotas) boardRate(b *bucket, limit int64, name string) error {
	if limit == 0 || b.take(1, q.boardPerSecond(limit), time.Now()) {
		return nil
	}
	return Over(name, limit, "board")
}

// boardPerSecond is this host's part of a board's rate.
func (q *Quotas) boardPerSecond(limit int64) float64 {
	if q.Ledger != nil {
		return float64(limit)
	}
	return q.divided(limit)
}

// Over is the error of what would be above a limit: QuotaExceeded.
func Over(name string, limit int64, whose string) error {
	return job.Errorf(job.QuotaExceeded, "the limit %s of the %s is reached: %d", name, whose, limit)
}

// Admit counts a call of a tenant, and refuses it where the tenant made too many.
func (q *Quotas) Admit(ctx context.Context, tenant string) error {
	limit := q.Limits(tenant).RequestsPerSecond
	if limit == 0 {
		return nil
	}
	t := q.Tenant(tenant)
	q.begin(ctx, tenant, t, &t.meter.requests)
	return q.rate(tenant, t, &t.meter.requests, limit, requestsName)
}

// Board is what a board uses on this host.
type Board struct {
	quotas *Quotas
	spec   Spec
	limits atomic.Pointer[config.Limits]
	used   atomic.Pointer[meter]   // made when there is something to count: most boards of a fleet are another server's
	driver atomic.Pointer[metered] // nil before the board is opened
}

// Spec says which board it is.
type Spec struct {
	Tenant, Name string
	Limits       *config.Limits // at first; nobody changes them
	Standing     Standing
}

// Standing is how a board stands.
type Standing interface {
	// Running ends with the board: then no store is asked for its counts any more.
	Running() context.Context

	// Ready reports whether the board is open.
	Ready() bool

	// Rests returns what the board had when it was closed since nothing is to be done on it; nil:
	// it was not. It holds until the board is opened.
	Rests() *driver.Counts
}

// NewBoard begins to count for a board.
func (q *Quotas) NewBoard(s Spec) *Board {
	b := &Board{quotas: q, spec: s}
	b.limits.Store(s.Limits)
	return b
}

// meter counts what the board uses.
func (b *Board) meter() *meter {
	if m := b.used.Load(); m != nil {
		return m
	}
	b.used.CompareAndSwap(nil, &meter{})
	return b.used.Load()
}

// Limits returns what the board may have now.
func (b *Board) Limits() config.Limits { return *b.limits.Load() }

// SetLimits has other limits hold from now on.
func (b *Board) SetLimits(l config.Limits) { b.limits.Store(&l) }

// Through wraps d in a driver that refuses what would go above the limits.
func (b *Board) Through(d driver.Driver) driver.Driver {
	m := &metered{Driver: d, of: b}
	b.driver.Store(m)
	return m
}

// Admit counts a call on the board, and refuses it where there were too many.
func (b *Board) Admit() error {
	return b.quotas.boardRate(&b.meter().requests, b.Limits().RequestsPerSecond, requestsName)
}

// Watch counts a call that looks at the board for a long time, or refuses it. The caller
// has to call release when the call has ended.
func (b *Board) Watch(ctx context.Context) (release func() bool, err error) {
	q, tenant, limit := b.quotas, b.quotas.Tenant(b.spec.Tenant), b.Limits().Watchers
	if !enter(&b.meter().watchers, limit, limit) {
		return nil, Over(watchersName, limit, "board")
	}
	if !q.watch(ctx, b.spec.Tenant, tenant) {
		b.meter().watchers.Add(-1)
		return nil, Over(watchersName, q.Limits(b.spec.Tenant).Watchers, "tenant")
	}
	return func() bool {
		b.meter().watchers.Add(-1)
		tenant.meter.watchers.Add(-1)
		return true
	}, nil
}

// watch counts a call that watches for a tenant, if there may be one more.
func (q *Quotas) watch(ctx context.Context, name string, t *Tenant) bool {
	limit := q.Limits(name).Watchers
	if limit == 0 || q.Ledger == nil {
		return enter(&t.meter.watchers, limit, limit)
	}
	t.watching.ask(0)
	q.begin(ctx, name, t, nil)
	if enter(&t.meter.watchers, limit, q.atOnce(t, watchersName, limit, time.Now())) {
		return true
	}
	t.watching.ask(1)
	q.Ledger.Ask(ctx, name)
	return enter(&t.meter.watchers, limit, q.atOnce(t, watchersName, limit, time.Now()))
}

// enter counts one more, if there is no limit or there are fewer than most.
func enter(n *atomic.Int64, limit, most int64) bool {
	if now := n.Add(1); limit > 0 && now > most {
		n.Add(-1)
		return false
	}
	return true
}

// Full says which limit keeps the board's jobs from being claimed now, of the board or its
// tenant (job.QuotaExceeded); nil: none, as far as that is counted on this host.
func (b *Board) Full(ctx context.Context) error {
	ofBoard, ofTenant, m := b.Limits(), b.quotas.Limits(b.spec.Tenant), b.driver.Load()
	if m == nil || ofBoard.Claims == 0 && ofTenant.Claims == 0 {
		return nil
	}
	counts := m.count(ctx, 0, countPatience)
	has, a := counts.Claimed, m.allowed(ctx, ofBoard, ofTenant)
	if m.countsItself() {
		has = counts.Limits[keyClaims]
	}
	if has < a.claims {
		return nil
	}
	return Over(keyClaims, a.said[keyClaims], a.whose[keyClaims])
}

// Use counts what a tenant uses now, by the names of its limits, as far as that is
// counted on this host.
func (q *Quotas) Use(ctx context.Context, tenant string) map[string]int64 {
	m := &q.Tenant(tenant).meter
	use := map[string]int64{
		keyOpenJobs: 0, keyClaims: 0, keyDetailBytes: 0,
		"watchers": m.watchers.Load(), "policy_fuel": m.burnt.Load(),
	}
	for _, b := range q.Boards(tenant) {
		var counts driver.Counts
		if d := b.driver.Load(); d != nil {
			if !b.spec.Standing.Ready() {
				continue
			}
			counts = d.count(ctx, countsFor, countPatience)
		} else if r := b.spec.Standing.Rests(); r != nil {
			counts = *r
		}
		use[keyOpenJobs] += counts.Open
		use[keyClaims] += counts.Claimed
		use[keyDetailBytes] += counts.Limits[keyDetailBytes]
	}
	return use
}
