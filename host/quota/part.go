package quota

import (
	"context"
	"maps"
	"math"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/ledger"
	"github.com/boardd/boardd/sdk/driver"
)

// The limits of a tenant that are rates, and the one on how many watch.
const (
	requestsName = "requests_per_second"
	postsName    = "posts_per_second"
	watchersName = "watchers"
)

// stillAfter is for how long nothing was asked for when a tenant counts as being at rest.
const stillAfter = 10 * time.Second

// parts are what this host has of a tenant's limits, where the servers of a fleet share
// them. They are not changed, but replaced.
type parts struct {
	until, keptUntil time.Time
	grants           map[string]ledger.Grant
}

// of returns what there is of a limit, if that holds.
func (p *parts) of(name string, now time.Time) (share float64, ok bool) {
	if p == nil {
		return 0, false
	}
	g, ok := p.grants[name]
	until := p.until
	if g.Kind == ledger.Kept {
		until = p.keptUntil
	}
	return g.Share, ok && now.Before(until)
}

// tenantRate is one limit of a tenant on how much there may be in a second.
type tenantRate struct {
	name   string
	limit  int64
	bucket *bucket
}

// rates are those limits of a tenant that are rates.
func (t *Tenant) rates(l *config.Limits) [3]tenantRate {
	return [3]tenantRate{
		{requestsName, l.RequestsPerSecond, &t.meter.requests},
		{postsName, l.PostsPerSecond, &t.meter.posts},
		{fuelName, l.PolicyFuelPerSecond, &t.meter.fuel},
	}
}

// divided is this host's part of a rate that all hosts share evenly.
func (q *Quotas) divided(limit int64) float64 {
	return float64(limit) / float64(max(1, q.hosts.Load()))
}

// perSecond is this host's part of a tenant's rate.
func (q *Quotas) perSecond(t *Tenant, name string, limit int64, now time.Time) float64 {
	if q.Ledger == nil {
		return q.divided(limit)
	}
	m := q.Ledger.Mode()
	if m.Accounts {
		if share, ok := t.parts.Load().of(name, now); ok {
			return max(share, m.Floor(float64(limit)))
		}
	}
	switch {
	case m.Whole(now):
		return float64(limit)
	case m.Base == ledger.Even:
		return q.divided(limit)
	}
	return m.Floor(float64(limit))
}

// atOnce is this host's part of what a tenant may have of something at once.
func (q *Quotas) atOnce(t *Tenant, name string, limit int64, now time.Time) int64 {
	if q.Ledger == nil {
		return limit
	}
	m := q.Ledger.Mode()
	if m.Accounts {
		if share, ok := t.parts.Load().of(name, now); ok {
			return int64(share)
		}
	}
	if m.Whole(now) || m.Base == ledger.Even {
		return limit
	}
	return int64(math.Floor(m.Floor(float64(limit))))
}

// counts reports whether this host's part of a tenant's limits is in an account, so that it
// lets through no more than that of what lies on boards.
func (q *Quotas) counts() bool { return q.Ledger != nil && q.Ledger.Mode().Accounts }

// keptLimit is one limit of a tenant on what lies on its boards.
type keptLimit struct {
	name   string
	limit  int64
	wanted *wanted
}

// keptLimits are those limits of a tenant.
func (t *Tenant) keptLimits(l *config.Limits) [3]keptLimit {
	return [3]keptLimit{
		{keyOpenJobs, l.OpenJobs, &t.kept.openJobs},
		{keyClaims, l.Claims, &t.kept.claims},
		{keyDetailBytes, l.DetailBytes, &t.kept.detailBytes},
	}
}

// wanted is what was asked for of one of them, by its name.
func (t *Tenant) wanted(name string) *wanted {
	for _, k := range t.keptLimits(&config.Limits{}) {
		if k.name == name {
			return k.wanted
		}
	}
	return nil
}

// keeps reports whether limits bound what lies on boards.
func keeps(l *config.Limits) bool { return l.OpenJobs > 0 || l.Claims > 0 || l.DetailBytes > 0 }

// begin has this host take a part of a tenant's limits if it has none, and waits for that
// for a moment. b is the bucket of the rate that is asked for, or nil.
func (q *Quotas) begin(ctx context.Context, name string, t *Tenant, b *bucket) {
	if q.Ledger == nil {
		return
	}
	now := time.Now()
	if p := t.parts.Load(); p != nil && now.Before(p.until) || !q.Ledger.Mode().Accounts {
		return
	}
	if b != nil {
		b.mu.Lock()
		b.last = now
		b.mu.Unlock()
	}
	q.Ledger.Ask(ctx, name)
}

// short has this host soon take a larger part of a tenant's limits, if there is one.
func (q *Quotas) short(tenant string) {
	if q.Ledger != nil {
		q.Ledger.Short(tenant)
	}
}

// Active returns the tenants that have limits which servers share, and may use something of
// them here. It is for the ledger, like the next three.
func (q *Quotas) Active() (names []string) {
	q.tenants.Range(func(name, of any) bool {
		t, limits := of.(*Tenant), q.Limits(name.(string))
		active := limits.Watchers > 0 && t.meter.watchers.Load() > 0 || keeps(&limits) && q.opens(name.(string))
		for _, r := range t.rates(&limits) {
			active = active || r.limit > 0 && r.bucket.still(time.Now()) < stillAfter
		}
		if active {
			names = append(names, name.(string))
		}
		return true
	})
	return names
}

// opens reports whether a board of a tenant is open here.
func (q *Quotas) opens(tenant string) bool {
	for _, b := range q.Boards(tenant) {
		if b.driver.Load() != nil {
			return true
		}
	}
	return false
}

// opened notes that a board of a tenant is open, on which there may be jobs.
func (q *Quotas) opened(tenant string) {
	if q.Ledger == nil {
		return
	}
	_ = q.Tenant(tenant) // so that Active knows it
	if limits := q.Limits(tenant); keeps(&limits) {
		q.Ledger.Short(tenant)
	}
}

// Wishes returns what a tenant uses of each limit that servers share.
func (q *Quotas) Wishes(ctx context.Context, tenant string) (wishes []ledger.Wish) {
	t, limits, now := q.Tenant(tenant), q.Limits(tenant), time.Now()
	for _, r := range t.rates(&limits) {
		if r.limit == 0 {
			continue
		}
		use, waited, still := r.bucket.demand(now)
		w := ledger.Wish{Name: r.name, Kind: ledger.Rate, Limit: float64(r.limit), Use: use, Still: still >= stillAfter}
		if waited { // how much more those would use who waited is not known
			w.More = use / 2
		}
		wishes = append(wishes, w)
	}
	if limits.Watchers > 0 {
		wishes = append(wishes, t.watching.wish(watchersName, ledger.Held, limits.Watchers, t.meter.watchers.Load()))
	}
	if !keeps(&limits) {
		return wishes
	}
	use := t.tally.now(func() driver.Counts { return t.countForTurn(ctx, q.Boards(tenant)) })
	for _, k := range t.keptLimits(&limits) {
		if k.limit > 0 {
			wishes = append(wishes, k.wanted.wish(k.name, ledger.Kept, k.limit, use(k.name)))
		}
	}
	return wishes
}

// wanted is what was asked for of a limit on how much there may be at once.
type wanted struct {
	more atomic.Int64 // refused since it was last said
	last atomic.Int64 // when something was asked for, in Unix nanoseconds
}

func (w *wanted) ask(more int64) {
	w.more.Store(max(more, w.more.Load()))
	w.last.Store(time.Now().UnixNano())
}

func (w *wanted) wish(name string, kind ledger.Kind, limit, use int64) ledger.Wish {
	still := time.Since(time.Unix(0, w.last.Load())) >= stillAfter
	return ledger.Wish{Name: name, Kind: kind, Limit: float64(limit), Use: float64(use), More: float64(w.more.Swap(0)), Still: still}
}

// Narrow says that this host has less of a tenant's limit from now on.
func (q *Quotas) Narrow(tenant, limit string, share float64) float64 {
	t := q.Tenant(tenant)
	before := t.parts.Load()
	back := 0.0
	if had, ok := before.of(limit, time.Now()); ok && share < had {
		next := &parts{before.until, before.keptUntil, maps.Clone(before.grants)}
		next.grants[limit] = ledger.Grant{Name: limit, Kind: before.grants[limit].Kind, Share: share}
		back = q.replace(tenant, t, next)
	}
	switch limit {
	case watchersName:
		return float64(t.meter.watchers.Load())
	case keyOpenJobs, keyClaims, keyDetailBytes:
		return float64(t.tally.used(limit))
	}
	return back
}

// Grant says what this host has of a tenant's limits.
func (q *Quotas) Grant(tenant string, grants []ledger.Grant, until, keptUntil time.Time) {
	t := q.Tenant(tenant)
	t.has(grants != nil)
	if grants == nil {
		q.replace(tenant, t, nil)
		return
	}
	next := &parts{until, keptUntil, map[string]ledger.Grant{}}
	for _, g := range grants {
		next.grants[g.Name] = g
	}
	q.replace(tenant, t, next)
}

// replace puts other parts in the place of the present ones. The ledger calls it once at a
// time for each tenant.
func (q *Quotas) replace(tenant string, t *Tenant, next *parts) (back float64) {
	limits, now := q.Limits(tenant), time.Now()
	rates := t.rates(&limits)
	var before [len(rates)]float64
	for i, r := range rates {
		before[i] = q.perSecond(t, r.name, r.limit, now)
	}
	t.parts.Store(next)
	for i, r := range rates {
		if r.limit == 0 {
			continue
		}
		once := 0.0
		if next != nil {
			once = next.grants[r.name].Once
		}
		back += r.bucket.resize(before[i], q.perSecond(t, r.name, r.limit, now), once, now)
	}
	return back
}
