package wasm

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy/abi"
	"github.com/boardd/boardd/sdk/policy/block"
)

// pool has the runners of one rule: the last one that was used is the next, and
// those that nobody needs are closed after IdleTime.
type pool struct {
	engine  *Engine
	module  *Module
	name    string
	form    []byte
	fuel    Fuel
	gauge   Gauge         // nil: nobody is charged
	account *Account      // nil: the engine's own bounds are all
	seats   chan struct{} // one entry for each seat that is borrowed
	used    atomic.Int64

	starting sync.Mutex // held while an instance is made in this process

	mu       sync.Mutex
	state    *state // that the first instance gives all others; nil until then
	idle     []idleRunner
	timer    *time.Timer
	closed   bool
	retired  bool // nothing is kept idle
	out      int  // borrowed
	finished bool
}

type idleRunner struct {
	runner runner
	since  time.Time
}

// Borrow implements block.Machine. Who waits for fuel holds no runner meanwhile.
func (p *pool) Borrow(ctx context.Context) (block.Seat, error) {
	if p.gauge != nil {
		if err := p.gauge.Wait(ctx); err != nil {
			return nil, err
		}
	}
	return p.borrow(ctx)
}

func (p *pool) borrow(ctx context.Context) (*seat, error) {
	select {
	case p.seats <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r, err := p.acquire(ctx)
	if err != nil {
		<-p.seats
		return nil, err
	}
	return &seat{pool: p, runner: r}, nil
}

// acquire returns the runner that was used last, or a new one. Where there may be no
// new one now, it waits for a while.
func (p *pool) acquire(ctx context.Context) (runner, error) {
	if p.engine.config.Child == nil {
		if r, err := p.reuse(); r != nil || err != nil {
			return r, err
		}
		return p.begin(ctx)
	}
	budget := &p.engine.budget
	var patience <-chan time.Time
	var changed <-chan struct{}
	for {
		if patience != nil {
			changed = budget.changed() // before it looks, so that nothing is missed
		}
		if r, err := p.reuse(); r != nil || err != nil {
			return r, err
		}
		victim, lack := budget.reserve(p)
		switch {
		case lack == "":
			return p.begin(ctx)
		case victim != nil:
			victim.close()
			continue
		case patience == nil:
			timer := time.NewTimer(Patience)
			defer timer.Stop()
			patience = timer.C
			budget.waiting.Add(1)
			defer budget.waiting.Add(-1)
			continue
		}
		select {
		case <-changed:
		case <-patience:
			return nil, budget.refuse(lack)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reuse returns the runner that was used last; nil if there is none.
func (p *pool) reuse() (runner, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, p.closedError()
	}
	n := len(p.idle)
	if n == 0 {
		return nil, nil //nolint:nilnil // a new one is needed
	}
	r := p.idle[n-1].runner
	p.idle = p.idle[:n-1]
	p.out++
	return r, nil
}

func (p *pool) closedError() error {
	return job.Errorf(job.Unavailable, "the policy %s was closed", p.name)
}

// begin starts a runner; a process was charged before.
func (p *pool) begin(ctx context.Context) (runner, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		if p.engine.config.Child != nil {
			p.engine.budget.release(p)
		}
		return nil, p.closedError()
	}
	p.out++
	p.mu.Unlock()
	r, err := p.start(ctx)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.out--
		p.finish()
	}
	return r, err
}

// start makes a runner, off the lock: that may take a while, and others come back
// meanwhile.
func (p *pool) start(ctx context.Context) (runner, error) {
	if p.engine.config.Child != nil {
		return startProcess(ctx, p)
	}
	p.starting.Lock()
	defer p.starting.Unlock()
	p.mu.Lock()
	s := p.state
	p.mu.Unlock()
	i, err := newInstance(p, s)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.state = i.state
	p.mu.Unlock()
	return i, nil
}

func (p *pool) log(level int, text string) {
	p.engine.log.Debug("a policy logged", "policy", p.name, "severity", level, "text", text)
}

// give takes a runner back. One that can't be used again is closed, off the lock.
func (p *pool) give(r runner, fit bool) {
	if fit {
		if err := r.reset(); err != nil {
			fit = false
			p.engine.log.Debug("a policy's instance is not used again", "policy", p.name, "error", err)
		}
	}
	if fit && p.keep(r) {
		p.engine.budget.freed()
		return
	}
	r.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out--
	p.finish()
}

// keep has a runner wait for the next call. It reports whether one may come.
func (p *pool) keep(r runner) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.retired {
		return false
	}
	p.out--
	p.idle = append(p.idle, idleRunner{runner: r, since: time.Now()})
	if p.timer == nil {
		p.timer = time.AfterFunc(IdleTime, p.tidy)
	}
	return true
}

// tidy closes what was idle for long.
func (p *pool) tidy() {
	p.mu.Lock()
	now := time.Now()
	n := 0
	for n < len(p.idle) && now.Sub(p.idle[n].since) >= IdleTime {
		n++
	}
	old := p.cut(n)
	p.timer = nil
	if len(p.idle) > 0 && !p.closed {
		p.timer = time.AfterFunc(IdleTime-now.Sub(p.idle[0].since), p.tidy)
	}
	p.mu.Unlock()
	p.end(old)
}

// cut takes the first idle runners out. They count as borrowed until they are ended.
// The caller holds p.mu.
func (p *pool) cut(n int) []idleRunner {
	old := slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	p.out += n
	return old
}

// end closes runners that were cut out.
func (p *pool) end(old []idleRunner) {
	for _, i := range old {
		i.runner.close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out -= len(old)
	p.finish()
}

// idleSince returns since when the runner is idle that is so for longest.
func (p *pool) idleSince() (at time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return at, false
	}
	return p.idle[0].since, true
}

// giveUp takes out the runner that is idle for longest, for the caller to close;
// nil if there is none any more.
func (p *pool) giveUp() runner {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	r := p.idle[0].runner
	p.idle = slices.Delete(p.idle, 0, 1)
	return r
}

// retire closes what is idle, and keeps nothing idle from now on.
func (p *pool) retire() {
	p.mu.Lock()
	p.retired = true
	old := p.cut(len(p.idle))
	p.mu.Unlock()
	p.end(old)
}

// Close implements block.Machine: what is borrowed is closed when it comes back.
func (p *pool) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	old := p.cut(len(p.idle))
	p.mu.Unlock()
	p.engine.budget.leave(p)
	p.end(old)
	return nil
}

// finish gives the image and the module up when the last instance is closed. The caller
// holds p.mu; Engine.mu is taken after it.
func (p *pool) finish() {
	if !p.closed || p.out > 0 || p.finished {
		return
	}
	p.finished = true
	if p.state != nil {
		p.state.image.close()
		p.state = nil
	}
	p.engine.release(p.module.digest)
}

// seat is a runner that is borrowed.
type seat struct {
	pool   *pool
	runner runner
}

func (s *seat) Room() []byte { return s.runner.room() }

func (s *seat) Call(ctx context.Context, call abi.Call, total int) error {
	records := int(binary.LittleEndian.Uint32(s.runner.room()[abi.HCount:]))
	used, err := s.runner.run(ctx, call, total, records)
	s.pool.used.Store(used)
	if g := s.pool.gauge; g != nil {
		g.Spend(used)
	}
	return err
}

func (s *seat) Return(fit bool) {
	s.pool.give(s.runner, fit)
	<-s.pool.seats
}
