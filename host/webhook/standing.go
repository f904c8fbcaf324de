package webhook

import (
	"time"

	"github.com/boardd/boardd/host/board"
)

// standing is how a teller stands that has told everything.
type standing struct {
	hook   *Hook
	cursor string // up to which that is
	waits  bool   // it has told that the oldest job waits
}

// stand keeps how a teller stands.
func (c *Courier) stand(key string, s *standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == nil {
		delete(c.stands, key)
		return
	}
	c.stands[key] = *s
}

// Rest reports whether nothing is to be told of a board, and no delivery to be sent, whose
// changes end at a cursor and which has so many jobs. due is when something is to be told
// although nothing happens there, since the oldest job waits; zero: never.
func (c *Courier) Rest(cursor string, counts *board.Counts) (due time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for t, h := range c.want {
		s, told := c.stands[t.hook]
		if t.sends || !told || s.cursor != cursor || !s.hook.equal(h) {
			return time.Time{}, false
		}
		at, ok := s.alarm(counts, time.Now())
		if !ok {
			return time.Time{}, false
		}
		if due.IsZero() || !at.IsZero() && at.Before(due) {
			due = at
		}
	}
	return due, true
}

// alarm returns when it is to be told that the oldest job waits; zero: never. ok is false if
// it is to be noted now that it does not wait for long any more.
func (s *standing) alarm(counts *board.Counts, now time.Time) (at time.Time, ok bool) {
	waits, most := counts.Ready > 0 && !counts.OldestReadyAt.IsZero(), s.hook.Waiting
	switch {
	case most == 0:
	case s.waits:
		return time.Time{}, waits && now.Sub(counts.OldestReadyAt) >= most/2
	case waits:
		return counts.OldestReadyAt.Add(most), true
	}
	return time.Time{}, true
}
