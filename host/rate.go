package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// tokenBucket lets through so many things a second, and as many at once after a still
// second. The zero tokenBucket is full.
type tokenBucket struct {
	mu   sync.Mutex
	used float64 // of one second's worth
	at   time.Time
}

// take takes n out of the bucket, if there are as many in it.
func (b *tokenBucket) take(n, perSecond float64, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if elapsed := now.Sub(b.at).Seconds(); elapsed > 0 {
		b.used, b.at = max(0, b.used-elapsed*perSecond), now
	}
	if b.used+n > max(perSecond, 1) {
		return false
	}
	b.used += n
	return true
}

// meter counts what a tenant, or a board, uses on this host.
type meter struct {
	requests, posts tokenBucket
	fuel            fuelBucket
	watchers        atomic.Int64
	putting         sync.Mutex // held while a policy of the tenant is put: what it may put depends on what it has
}

// meters are those of tenants, by name.
type meters struct{ byTenant sync.Map }

func (m *meters) of(tenant string) *meter {
	if found, ok := m.byTenant.Load(tenant); ok {
		return found.(*meter)
	}
	found, _ := m.byTenant.LoadOrStore(tenant, &meter{})
	return found.(*meter)
}

// share is this host's part of a rate that all hosts have together.
func (h *Host) share(limit int64) float64 { return float64(limit) / float64(max(1, h.hosts.Load())) }

// rate refuses what is more than a tenant, or a board, may do in a second.
func (h *Host) rate(b *tokenBucket, n int, limit int64, name, whose string) error {
	if limit == 0 || b.take(float64(n), h.share(limit), time.Now()) {
		return nil
	}
	return overLimit(name, limit, whose)
}

// overLimit is the error of what would be above a limit.
func overLimit(name string, limit int64, whose string) error {
	return job.Errorf(job.QuotaExceeded, "the limit %s of the %s is reached: %d", name, whose, limit)
}

// countHosts keeps up how many hosts share the rates.
func (h *Host) countHosts(ctx context.Context) {
	for {
		if c := h.catalog.open(); c != nil {
			b := h.catalog.backend
			if p := b.present(h, b.running.Load().driver.Documents()); p != nil {
				if hosts, err := p.Hosts(ctx); err == nil {
					h.hosts.Store(int64(len(hosts)))
				}
			}
		}
		if sleep.For(ctx, countHostsEvery) != nil {
			return
		}
	}
}

const countHostsEvery = 5 * time.Second

// Tenant returns the name of the session's tenant.
func (s *Session) Tenant() string { return s.principal.Tenant }

// Admit counts a call, and refuses it where the tenant made too many.
func (s *Session) Admit() error {
	limit := s.host.limitsOf(s.principal.Tenant).RequestsPerSecond
	if limit == 0 {
		return nil
	}
	return s.host.rate(&s.host.meters.of(s.principal.Tenant).requests, 1, limit, "requests_per_second", "tenant")
}

// watching are the calls that look at a board for a long time.
var watching = map[string]bool{"WatchBoard": true, "ListEvents": true, "GetLog": true, "ReadLog": true}

// meter counts a call on a board, and refuses it where there were too many.
func (s *Session) meter(b *hosted, call string) error {
	limits := *b.limits.Load()
	if err := s.host.rate(&b.meter.requests, 1, limits.RequestsPerSecond, "requests_per_second", "board"); err != nil {
		return err
	}
	if !watching[call] || s.cancel == nil {
		return nil
	}
	for _, w := range []struct {
		meter *meter
		limit int64
		whose string
	}{{&b.meter, limits.Watchers, "board"}, {s.host.meters.of(s.principal.Tenant), s.host.limitsOf(s.principal.Tenant).Watchers, "tenant"}} {
		if n := w.meter.watchers.Add(1); w.limit > 0 && n > w.limit {
			w.meter.watchers.Add(-1)
			return overLimit("watchers", w.limit, w.whose)
		}
		s.release = append(s.release, func() bool { w.meter.watchers.Add(-1); return true })
	}
	return nil
}

// stored reports whether some of the limits are counted in the store.
func stored(l config.Limits) bool {
	return l.OpenJobs > 0 || l.Claims > 0 || l.DetailBytes > 0 || l.PostsPerSecond > 0
}
