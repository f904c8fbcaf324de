package api

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// How a server notices that it stood still.
const (
	stillEvery = 100 * time.Millisecond // it looks whether it goes on
	stillAfter = time.Second            // for so long after it went on, what it reads may have come before that
)

// still knows for how long this process stood still: it was stopped, or its machine was. What it
// reads when it goes on may have come when it stopped, by its own clock, so that who asked has
// heard long ago that it does not answer.
type still struct {
	after time.Duration // see stillAfter

	mu    sync.Mutex
	last  time.Time // it looked
	stood time.Duration
	until time.Time // stood counts
}

// run looks until ctx ends.
func (s *still) run(ctx context.Context) {
	ticker := time.NewTicker(stillEvery)
	defer ticker.Stop()
	for {
		s.look(time.Now())
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// look notes that the process goes on, and returns how long ago what it reads now may have come.
func (s *still) look(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.IsZero() {
		if gap := now.Sub(s.last) - stillEvery; gap > 0 && (gap > s.stood || !now.Before(s.until)) {
			s.stood, s.until = gap, now.Add(s.after)
		}
	}
	s.last = now
	if now.Before(s.until) {
		return s.stood
	}
	return 0
}

// stale reports whether the time of a call that another server has passed on may be over: its own,
// or that after which the other one takes a server for stopped.
func (p *peers) stale(header http.Header, now time.Time) bool {
	h2 := p.transport.HTTP2
	within := h2.SendPingTimeout + h2.PingTimeout
	if ms, err := strconv.ParseInt(header.Get("Connect-Timeout-Ms"), 10, 64); err == nil {
		within = min(within, time.Duration(ms)*time.Millisecond)
	}
	return p.still.look(now) >= within
}
