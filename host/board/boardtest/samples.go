package boardtest

import (
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/chart"
	"github.com/boardd/boardd/sdk/job"
)

// samples: what hosts counted is in the store when they have stopped, also where all of them
// write at once, and each host that comes later shows it.
func samples(_ *testing.T, s *suite) {
	const hosts, rounds = 3, 4
	var before sync.WaitGroup
	for i := range hosts {
		h := s.start(board.Spec{})
		for range rounds + i {
			h.post(job.Posting{Name: "counted"})
		}
		before.Go(h.stop)
	}
	before.Wait()
	h := s.start(board.Spec{})
	ring, err := h.Samples(s.within(), true)
	s.kind(err, job.NoKind)
	var posted, waited int64
	w := ring.Window(chart.Spans()[1], time.Now())
	for i, n := range w.Values(chart.Posted) {
		posted += max(n, 0)
		waited = max(waited, w.Values(chart.Waiting)[i])
	}
	if want := int64(hosts*rounds + 0 + 1 + 2); posted != want || waited < rounds || waited > want {
		s.Errorf("%d posted jobs were counted, and at most %d that wait: want %d and at most as many", posted, waited, want)
	}
}
