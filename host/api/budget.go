package api

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Bounds on the requests that are held in memory at once, in bytes: bodies as they
// were sent and, where they were compressed, what they are without. A request of at
// most MaxUncounted bytes is bounded by the number of calls alone. What other servers of
// the fleet have passed on has as much room of its own.
const (
	MaxBytes       = 128 << 20 // of all tenants
	MaxTenantBytes = 64 << 20  // of one
	MaxUncounted   = 4 << 10   // of one request that is not counted
)

// Bounds on the work that goes on at once, in items of calls (jobs, claims, uuids); every
// bytesOfWork bytes of a request are worth another item. A call with little work is
// bounded by the number of calls alone.
const (
	MaxWork       = 2048 // of all tenants
	MaxTenantWork = 1024 // of one
	MaxLightWork  = 8    // of one call that is not counted

	bytesOfWork = 8 << 10
	workWithin  = 2 * time.Second // then a call counts as one that waits for a slow store
)

// budget is an amount of something that is shared out among tenants: each has a bound
// of its own, and what becomes free goes to those who have least. Who finds nothing
// waits in line.
type budget struct {
	most, mostOfTenant int

	mu      sync.Mutex
	used    int
	tenants map[string]int // without those that have nothing
	waiting []*portion     // oldest first

	refused int64 // who waited too long
}

// portion is one request's part of a budget. It may become smaller, and ends with the
// call.
type portion struct {
	budget *budget
	tenant string
	size   int
	given  chan struct{} // closed when there is room
}

// fits reports whether there is so much more for a tenant. The caller holds n.mu.
func (n *budget) fits(tenant string, size int) bool {
	return n.used+size <= n.most && n.tenants[tenant]+size <= n.mostOfTenant
}

// add changes what a tenant has. The caller holds n.mu.
func (n *budget) add(tenant string, size int) {
	if n.tenants == nil {
		n.tenants = map[string]int{}
	}
	n.used += size
	if n.tenants[tenant] += size; n.tenants[tenant] == 0 {
		delete(n.tenants, tenant)
	}
}

// reserve waits until the request, which has less, has so much in all.
func (p *portion) reserve(ctx context.Context, size int) error {
	if p.try(size) {
		return nil
	}
	n := p.budget
	n.mu.Lock()
	more := size - p.size
	want := &portion{budget: n, tenant: p.tenant, size: more, given: make(chan struct{})}
	n.waiting = append(n.waiting, want)
	n.advance() // there may be room since it was tried
	n.mu.Unlock()
	if err := want.wait(ctx); err != nil {
		return err
	}
	n.mu.Lock()
	p.size += more
	n.mu.Unlock()
	return nil
}

// try is reserve for those who don't wait.
func (p *portion) try(size int) bool {
	n := p.budget
	n.mu.Lock()
	defer n.mu.Unlock()
	more := size - p.size
	if more <= 0 {
		return true
	}
	if !n.fits(p.tenant, more) || slices.ContainsFunc(n.waiting, func(w *portion) bool { return w.tenant == p.tenant }) {
		return false
	}
	n.add(p.tenant, more)
	p.size = size
	return true
}

// wait waits in line.
func (p *portion) wait(ctx context.Context) error {
	timer := time.NewTimer(queuedFor)
	defer timer.Stop()
	err := errBusy
	select {
	case <-p.given:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
	}
	n := p.budget
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-p.given: // just now
		return nil
	default:
	}
	n.waiting = slices.DeleteFunc(n.waiting, func(w *portion) bool { return w == p })
	if ctx.Err() == nil {
		n.refused++
	}
	n.advance() // those behind may fit
	return err
}

// shrink gives back what is above a size; 0 gives back all.
func (p *portion) shrink(size int) {
	n := p.budget
	n.mu.Lock()
	defer n.mu.Unlock()
	if size >= p.size {
		return
	}
	n.add(p.tenant, size-p.size)
	p.size = size
	n.advance()
}

// advance gives what is free to those in line: the first of the tenant that has least,
// of those that fit. The caller holds n.mu.
func (n *budget) advance() {
	for {
		var next *portion
		seen := map[string]bool{}
		for _, w := range n.waiting {
			if !seen[w.tenant] && n.fits(w.tenant, w.size) && (next == nil || n.tenants[w.tenant] < n.tenants[next.tenant]) {
				next = w
			}
			seen[w.tenant] = true
		}
		if next == nil {
			return
		}
		n.waiting = slices.DeleteFunc(n.waiting, func(w *portion) bool { return w == next })
		n.add(next.tenant, next.size)
		close(next.given)
	}
}

// held returns how much is used, and how many requests were refused.
func (n *budget) held() (used int, refused int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.used, n.refused
}

type portionKey struct{}

// shrinks gives back what the request of this context doesn't need any more, now that
// it is a message of so many bytes.
func shrinks(ctx context.Context, size func() int) {
	if p, ok := ctx.Value(portionKey{}).(*portion); ok && p.size > MaxUncounted {
		p.shrink(size())
	}
}
