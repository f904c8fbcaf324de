package wasm

import (
	"context"
	"encoding/binary"
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
	engine *Engine
	module *Module
	name   string
	form   []byte
	fuel   Fuel
	gauge  Gauge         // nil: nobody is charged
	seats  chan struct{} // one entry for each seat that is borrowed
	used   atomic.Int64

	starting sync.Mutex // held while the first runner starts: it gives all others their state

	mu       sync.Mutex
	state    *state // nil until then
	idle     []idleRunner
	timer    *time.Timer
	closed   bool
	out      int // borrowed
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
	r, err := p.take(ctx)
	if err != nil {
		<-p.seats
		return nil, err
	}
	return &seat{pool: p, runner: r}, nil
}

// take returns the runner that was used last, or a new one.
func (p *pool) take(ctx context.Context) (runner, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, job.Errorf(job.Unavailable, "the policy %s was closed", p.name)
	}
	if n := len(p.idle); n > 0 {
		r := p.idle[n-1].runner
		p.idle = p.idle[:n-1]
		p.out++
		p.mu.Unlock()
		return r, nil
	}
	p.out++
	p.mu.Unlock()
	r, err := p.start(ctx)
	if err != nil {
		p.mu.Lock()
		p.out--
		p.finish()
		p.mu.Unlock()
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

// give takes a runner back. One that can't be used again is closed.
func (p *pool) give(r runner, fit bool) {
	if fit {
		if err := r.reset(); err != nil {
			fit = false
			p.engine.log.Debug("a policy's instance is not used again", "policy", p.name, "error", err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out--
	if !fit || p.closed {
		r.close()
		p.finish()
		return
	}
	p.idle = append(p.idle, idleRunner{runner: r, since: time.Now()})
	if p.timer == nil {
		p.timer = time.AfterFunc(IdleTime, p.tidy)
	}
}

// tidy closes what was idle for long.
func (p *pool) tidy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for len(p.idle) > 0 && now.Sub(p.idle[0].since) >= IdleTime {
		p.idle[0].runner.close()
		p.idle = p.idle[1:]
	}
	p.timer = nil
	if len(p.idle) > 0 && !p.closed {
		p.timer = time.AfterFunc(IdleTime-now.Sub(p.idle[0].since), p.tidy)
	}
}

// Close implements block.Machine: what is borrowed is closed when it comes back.
func (p *pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	for _, i := range p.idle {
		i.runner.close()
	}
	p.idle = nil
	p.finish()
	return nil
}

// finish gives the image and the module up when the last instance is closed.
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
