package web

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/sdk/sleep"
)

// The graphs show the last hour, a point a minute. A board that nobody samples
// because there are too many has no graph.
const (
	samplePace = time.Minute
	sampleKept = 60
	maxSampled = 10_000 // boards
)

// sample is how a board stood at one time, and what was done on it since the one
// before.
type sample struct {
	ready, claimed, consumed, failed int64
}

// history is the samples of one board, oldest first.
type history struct {
	list []sample
	last host.Depth
}

// samples are the histories of all boards.
type samples struct {
	mu      sync.Mutex
	byBoard map[[2]string]*history
}

func newSamples() *samples { return &samples{byBoard: map[[2]string]*history{}} }

func (s *samples) run(ctx context.Context, h *host.Host) error {
	for ctx.Err() == nil {
		s.add(h.Depths())
		_ = sleep.For(ctx, samplePace) // until ctx ends at the latest
	}
	return nil
}

// add adds a point to every board's history. Boards that are gone are forgotten.
func (s *samples) add(depths []host.Depth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.byBoard
	s.byBoard = make(map[[2]string]*history, min(len(depths), maxSampled))
	for _, d := range depths {
		if len(s.byBoard) == maxSampled {
			return
		}
		key := [2]string{d.Tenant, d.Board}
		h := old[key]
		if h == nil {
			h = &history{last: d}
		}
		h.add(d)
		s.byBoard[key] = h
	}
}

func (h *history) add(d host.Depth) {
	since := func(now, then int64) int64 { return max(0, now-then) }
	h.list = append(h.list, sample{
		ready: d.Counts.Ready + d.Counts.Delayed, claimed: d.Counts.Claimed,
		consumed: since(d.Consumed, h.last.Consumed),
		failed:   since(d.Lost, h.last.Lost) + since(d.Trashed, h.last.Trashed),
	})
	if len(h.list) > sampleKept {
		h.list = h.list[len(h.list)-sampleKept:]
	}
	h.last = d
}

// graphs are the three lines that a board is shown with.
type graphs struct {
	Waiting, Consumed, Failed []int64
}

func (s *samples) of(tenant, board string) graphs {
	s.mu.Lock()
	defer s.mu.Unlock()
	var g graphs
	h := s.byBoard[[2]string{tenant, board}]
	if h == nil {
		return g
	}
	for _, p := range h.list {
		g.Waiting = append(g.Waiting, p.ready)
		g.Consumed = append(g.Consumed, p.consumed)
		g.Failed = append(g.Failed, p.failed)
	}
	return g
}
