package wasm

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Allowance is what the processes of policies may take together.
type Allowance struct {
	Processes int64
	Memory    int64 // bytes, as Module.Memory counts them
}

// The default allowances: of one account, and of an engine.
var (
	DefaultOfAccount = Allowance{Processes: 16, Memory: 1 << 30}
	DefaultOfEngine  = Allowance{Processes: 64, Memory: 4 << 30}
)

func (a Allowance) withDefaults(d Allowance) Allowance {
	if a.Processes <= 0 {
		a.Processes = d.Processes
	}
	if a.Memory <= 0 {
		a.Memory = d.Memory
	}
	return a
}

// What one process is charged besides twice the memory that its module may have:
// the Go runtime, the compiled code, the block.
const processMemory = 32 << 20

// Patience is how long a call waits for a process when all that are allowed are
// in use.
const Patience = time.Second

// Account is whom processes and compilations are charged to, such as a tenant. An
// engine has any number of them, and bounds of its own over all of them.
type Account struct {
	engine *Engine
	limit  func() Allowance

	used  Allowance // with the budget's lock
	turns turns
}

// Account returns an account whose allowance is asked for whenever it matters. A
// value of 0 is the default.
func (e *Engine) Account(limit func() Allowance) *Account { return &Account{engine: e, limit: limit} }

// Usage is what is in use now.
type Usage struct {
	Allowance

	Compiling int   // compilations that run
	Queued    int   // compilations that wait
	Refused   int64 // processes and compilations that were refused so far
}

// Usage returns what the account has in use.
func (a *Account) Usage() Usage {
	b := &a.engine.budget
	b.mu.Lock()
	u := Usage{Allowance: a.used}
	b.mu.Unlock()
	u.Compiling, u.Queued = a.turns.load()
	return u
}

// Usage returns what all accounts together have in use.
func (e *Engine) Usage() Usage {
	b := &e.budget
	b.mu.Lock()
	u := Usage{Allowance: b.used, Refused: b.refused}
	b.mu.Unlock()
	u.Compiling, u.Queued = e.turns.load()
	u.Refused += e.turns.refusals.Load()
	return u
}

// budget bounds the processes of an engine. Its lock comes before that of a pool.
type budget struct {
	mu      sync.Mutex
	limit   func() Allowance // nil: the default
	used    Allowance
	pools   map[*pool]struct{}
	refused int64
	waiting atomic.Int64  // not guarded by mu
	change  chan struct{} // closed, and made anew, when something may have become free and somebody waits
}

func (b *budget) init(limit func() Allowance) {
	b.limit, b.pools, b.change = limit, map[*pool]struct{}{}, make(chan struct{})
}

// changed returns a channel that is closed when something may have become free.
func (b *budget) changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.change
}

// freed tells those who wait that something may have become free.
func (b *budget) freed() {
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.change)
	b.change = make(chan struct{})
}

func (b *budget) enter(p *pool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools[p] = struct{}{}
}

func (b *budget) leave(p *pool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pools, p)
}

// reserve charges one process. Where that is too much, it returns a process that
// nobody uses now, for the caller to close and to try again, or says what there is
// too much of.
func (b *budget) reserve(p *pool) (victim runner, lack string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cost := Allowance{1, p.module.Memory()}
	if a := p.account; a != nil {
		if lack := a.used.lack(a.limit().withDefaults(DefaultOfAccount), cost); lack != "" {
			return b.idlest(a), lack + " for the tenant's policies"
		}
	}
	if lack := b.used.lack(b.allowance(), cost); lack != "" {
		return b.idlest(nil), lack + " for the policies on this server"
	}
	b.charge(p.account, cost)
	return nil, ""
}

// allowance returns the bounds of all processes. The caller holds b.mu.
func (b *budget) allowance() Allowance {
	if b.limit == nil {
		return DefaultOfEngine
	}
	return b.limit().withDefaults(DefaultOfEngine)
}

// lack says what is missing for cost besides what is used; nothing if it fits.
func (a Allowance) lack(limit, cost Allowance) string {
	switch {
	case a.Processes+cost.Processes > limit.Processes:
		return fmt.Sprintf("%d processes are the most", limit.Processes)
	case a.Memory+cost.Memory > limit.Memory:
		return fmt.Sprintf("%d MiB of memory are the most", limit.Memory>>20)
	}
	return ""
}

// charge counts what an account uses. The caller holds b.mu.
func (b *budget) charge(a *Account, cost Allowance) {
	b.used.Processes += cost.Processes
	b.used.Memory += cost.Memory
	if a != nil {
		a.used.Processes += cost.Processes
		a.used.Memory += cost.Memory
	}
}

// release gives back what was charged for one process.
func (b *budget) release(p *pool) {
	b.mu.Lock()
	b.charge(p.account, Allowance{-1, -p.module.Memory()})
	b.mu.Unlock()
	b.freed()
}

// idlest takes the process that was not used for longest out of its pool: one of
// an account, or any. It is nil if all are in use. The caller holds b.mu; the locks of
// the pools are taken after it, one at a time.
func (b *budget) idlest(of *Account) runner {
	var oldest *pool
	var since time.Time
	for p := range b.pools {
		if of != nil && p.account != of {
			continue
		}
		if at, ok := p.idleSince(); ok && (oldest == nil || at.Before(since)) {
			oldest, since = p, at
		}
	}
	if oldest == nil {
		return nil
	}
	return oldest.giveUp()
}

// refuse counts and says that there is too much.
func (b *budget) refuse(lack string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused++
	return job.Errorf(job.QuotaExceeded, "%s, and all are in use: try again later", lack)
}
