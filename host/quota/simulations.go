package quota

import (
	"context"
	"sync"

	"github.com/boardd/boardd/sdk/job"
)

// Simulations bounds the simulations that go on: one of a tenant, so many of the
// server. Those of other tenants wait, first come first served. The zero value has
// none.
type Simulations struct {
	mu      sync.Mutex
	tenants map[string]bool // who has one, or waits
	running int
	line    []chan struct{} // closed when it is their turn
}

// Enter waits until a tenant may simulate; Leave has to be called after it.
func (s *Simulations) Enter(ctx context.Context, tenant string, most int64) error {
	s.mu.Lock()
	if s.tenants[tenant] {
		s.mu.Unlock()
		return job.Errorf(job.QuotaExceeded, "another simulation of the tenant goes on: one at a time")
	}
	if s.tenants == nil {
		s.tenants = map[string]bool{}
	}
	s.tenants[tenant] = true
	if int64(s.running) < most {
		s.running++
		s.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	s.line = append(s.line, mine)
	s.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for i, other := range s.line {
		if other == mine {
			s.line = append(s.line[:i:i], s.line[i+1:]...)
			delete(s.tenants, tenant)
			s.mu.Unlock()
			return job.Errorf(job.QuotaExceeded, "the server goes through %d other recordings now: try again later", most)
		}
	}
	s.mu.Unlock()
	return nil // the turn came as the time was over: who has it finds out
}

// Leave hands the turn to who waits longest.
func (s *Simulations) Leave(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tenants, tenant)
	if len(s.line) == 0 {
		s.running--
		return
	}
	close(s.line[0])
	s.line = s.line[1:]
}
