package store

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

// An instant is one reading of the clocks, with what it takes to judge a job by
// it.
type instant struct {
	mono       time.Time // of this process, for leases
	wall       time.Time // about the store's
	generation uint64    // of the board
	offset     uint64    // likewise
	window     time.Duration
}

// shown is a change of the board as everybody knows it. Positions are the numbers of
// ZooKeeper's transactions, which nobody can raise: a board that came from another store, where
// it had come further, adds to them what was missing.
func (i instant) shown(zxid uint64) driver.Position { return driver.Position(zxid + i.offset) }

// zxid is what was shown so; 0 of a position that is the other store's.
func (i instant) zxid(shown driver.Position) uint64 {
	return max(uint64(shown), i.offset) - i.offset
}

func (i instant) millis() int64 { return i.wall.UnixMilli() }

// A clock follows the store's wall clock: ZooKeeper tells the time with each
// change that it makes, and that is how far this machine's clock is off.
type clock struct {
	offset atomic.Int64 // in milliseconds

	mu   sync.Mutex
	last reading
}

// A reading is the leader's clock as it was read once.
type reading struct {
	term   uint64        // of the leader
	since  uint64        // changes before this one were dated by another clock, or before this one was set
	millis int64         // what the leader said,
	at     time.Time     // when, by this process's clock that no setting moves,
	doubt  time.Duration // give or take
}

// heard notes the time that the store gave to a change that was made between
// two moments of this machine.
func (c *clock) heard(zxid uint64, millis int64, before, after time.Time) {
	now := reading{term: termOf(zxid), millis: millis, at: before.Add(after.Sub(before) / 2), doubt: after.Sub(before)/2 + time.Millisecond}
	if after.Sub(before) <= maxHearing {
		c.offset.Store(millis - now.at.UnixMilli())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.last
	off := now.behind(&old)
	switch {
	case old.at.IsZero() || now.term > old.term:
	case now.term < old.term || now.at.Before(old.at):
		return
	case off.Abs() > now.doubt+old.doubt+clockStep:
		now.since = zxid // somebody has set the leader's clock
	case now.doubt > old.doubt+now.at.Sub(old.at)/margin:
		return // what is known says more
	default:
		now.since = old.since
	}
	c.last = now
}

// behind returns how much later the leader's clock is read in r than it would be by
// the old reading.
func (r *reading) behind(old *reading) time.Duration {
	return time.Duration(r.millis-old.millis)*time.Millisecond - r.at.Sub(old.at)
}

// clockStep is how far a clock is moved by who sets it, and not by what it goes
// wrong by.
const clockStep = 100 * time.Millisecond

// age returns how long ago the store made a change, at least: 0 unless the leader
// that dated it is the one whose clock is known, since two clocks say nothing of
// each other.
func (c *clock) age(zxid uint64, millis int64, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.last
	if r.at.IsZero() || termOf(zxid) != r.term || zxid < r.since {
		return 0
	}
	passed := now.Sub(r.at)
	age := time.Duration(r.millis-millis)*time.Millisecond + passed - passed.Abs()/margin - r.doubt
	return max(age, 0)
}

// termOf returns the term of the leader that made a change: half of its number.
func termOf(zxid uint64) uint64 { return zxid >> 32 }

// maxHearing is how long a change may have taken whose time is believed.
const maxHearing = 250 * time.Millisecond

// wall returns the store's time.
func (c *clock) wall(now time.Time) time.Time {
	return now.Round(0).Add(time.Duration(c.offset.Load()) * time.Millisecond)
}
