package store

import (
	"sync"
	"time"
)

// A search for something that is known to be there may use three times its share, taken
// from what earlier searches left unused: at most their share of maxCredit. That is enough
// to find one post on a board of a million jobs in time, even where Redis sends the
// postings along.
const (
	hurry     = 3
	maxCredit = 40 * time.Second
)

// A searchBudget is how much of Redis's core all searches of this server may use together. The
// servers that search in one Redis have equal parts of it.
type searchBudget struct {
	mu      sync.Mutex
	paid    time.Time     // when all rests that are due for what was done will have been taken
	credit  time.Duration // of rest
	servers int           // that search, this one among them
	counted time.Time     // when that was
}

func newSearchBudget() *searchBudget { return &searchBudget{paid: time.Now(), servers: 1} }

// take returns how long who has done something is to rest for it, given how long that
// would be if nobody else searched; in haste it may use the credit.
func (s *searchBudget) take(rest time.Duration, haste bool) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	rest *= time.Duration(s.servers)
	s.paid = s.paid.Add(rest)
	if left := s.paid.Sub(now); haste && left > 0 {
		used := min(s.credit, left, rest-rest/hurry)
		s.credit, s.paid = s.credit-used, s.paid.Add(-used)
	}
	left := s.paid.Sub(now)
	if left < 0 {
		s.credit, s.paid = min(s.credit-left, maxCredit), now
	}
	return max(left, 0)
}

// uncounted reports whether the servers are to be counted again. Who asks does so.
func (s *searchBudget) uncounted(after time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.counted) < after {
		return false
	}
	s.counted = time.Now()
	return true
}

// among divides the share among so many servers.
func (s *searchBudget) among(servers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = max(servers, 1)
}
