package ranking

import (
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/policy"
)

// MaxEdges is how many times between ticks a Clock remembers: those that come first.
const MaxEdges = 64

// Clock is the time as a policy by time sees it: it moves at each tick, and at those
// times in between that the policy's own verdicts named as their Until, in whole
// seconds. Several goroutines may use it.
type Clock struct {
	tick time.Duration
	bell *Bell // nil: nobody needs to hear

	mu    sync.Mutex
	edges []time.Time // in order
}

// NewClock returns the clock of a policy with this tick: 0 is policy.DefaultTick. The
// bell rings when the clock is to move sooner than Next said; it may be nil.
func NewClock(tick time.Duration, bell *Bell) *Clock {
	if tick <= 0 {
		tick = policy.DefaultTick
	}
	return &Clock{tick: max(tick, policy.MinTick), bell: bell}
}

// At returns what the policy is shown at a time.
func (c *Clock) At(now time.Time) time.Time {
	at := now.Truncate(c.tick)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.edges {
		if !e.After(now) && e.After(at) {
			at = e
		}
	}
	return at
}

// Next returns when At changes next.
func (c *Clock) Next(now time.Time) time.Time {
	next := now.Truncate(c.tick).Add(c.tick)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.edges {
		if e.After(now) && e.Before(next) {
			next = e
		}
	}
	return next
}

// Until notes that a verdict given at a time stands until another one.
func (c *Clock) Until(now, until time.Time) {
	if until.IsZero() || !until.After(now) || until.Sub(now) > policy.MaxTick {
		return // it is asked again at a tick long before
	}
	edge := until.Add(policy.MinTick - 1).Truncate(policy.MinTick)
	if edge.Equal(edge.Truncate(c.tick)) {
		return
	}
	if c.note(now, edge) {
		c.bell.Ring()
	}
}

func (c *Clock) note(now, edge time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, known := slices.BinarySearchFunc(c.edges, edge, time.Time.Compare)
	if known {
		return false
	}
	c.edges = slices.Insert(c.edges, i, edge)
	start := now.Truncate(c.tick)
	for len(c.edges) > 1 && !c.edges[0].After(start) {
		c.edges = c.edges[1:]
	}
	if len(c.edges) > MaxEdges {
		c.edges = c.edges[:MaxEdges]
	}
	return true
}

// Bell tells any number of goroutines that something has happened. A nil one is
// silent, the zero value ready.
type Bell struct {
	mu   sync.Mutex
	rung chan struct{}
}

// C returns a channel that is closed the next time the bell rings.
func (b *Bell) C() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

// Ring closes the channel.
func (b *Bell) Ring() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}
