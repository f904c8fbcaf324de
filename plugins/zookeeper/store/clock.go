package store

import (
	"sync/atomic"
	"time"
)

// An instant is one reading of the clocks, with what it takes to judge a job by
// it.
type instant struct {
	mono       time.Time // of this process, for leases
	wall       time.Time // about the store's
	generation uint64    // of the board
	window     time.Duration
}

func (i instant) millis() int64 { return i.wall.UnixMilli() }

// A clock follows the store's wall clock: ZooKeeper tells the time with each
// change that it makes, and that is how far this machine's clock is off.
type clock struct {
	offset atomic.Int64 // in milliseconds
}

// heard notes the time that the store gave to a change that was made between
// two moments of this machine.
func (c *clock) heard(millis int64, before, after time.Time) {
	if after.Sub(before) > maxHearing {
		return // it may have been made at any time of a long wait
	}
	middle := before.Add(after.Sub(before) / 2)
	c.offset.Store(millis - middle.UnixMilli())
}

// maxHearing is how long a change may have taken whose time is believed.
const maxHearing = 250 * time.Millisecond

// wall returns the store's time.
func (c *clock) wall(now time.Time) time.Time {
	return now.Round(0).Add(time.Duration(c.offset.Load()) * time.Millisecond)
}
