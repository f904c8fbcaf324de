package board

import (
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// served is how many jobs of each key were claimed lately, faded as the index fades
// what it counts.
type served struct {
	mu     sync.Mutex
	minute int64 // since 1970, to which counts are faded
	counts map[string]float64
}

// count counts one claim.
func (s *served) count(key string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fade(now)
	if _, known := s.counts[key]; !known {
		if len(s.counts) >= index.MaxIdleKeys {
			return
		}
		key = strings.Clone(key) // not the message that it came in
	}
	s.counts[key]++
}

// write writes the counts of keys.
func (s *served) write(keys []policy.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fade(time.Now())
	for i := range keys {
		keys[i].Served = ranking.Served(s.counts[keys[i].Key])
	}
}

// fade brings the counts to the present minute, with the lock held.
func (s *served) fade(now time.Time) {
	minute := ranking.Minute(now)
	if s.counts == nil {
		s.counts, s.minute = map[string]float64{}, minute
	}
	if minute <= s.minute {
		return
	}
	faded := ranking.Faded(minute - s.minute)
	s.minute = minute
	for key := range s.counts {
		if s.counts[key] *= faded; s.counts[key] < 0.5 {
			delete(s.counts, key)
		}
	}
}

// shadowServed counts the claims that the store reported by the keys of the shadow,
// if the index does not count them.
func (b *Board) shadowServed(items []item) {
	set := b.rules.Load()
	if set.shadow == nil || set.shadow.grouping == nil || set.grouping != nil && set.grouping.by == set.shadow.grouping.by {
		return
	}
	now := time.Now()
	for i := range items {
		it := &items[i]
		if it.event != job.ClaimedEvent {
			continue
		}
		e := it.entry
		if e == nil && it.record != nil && it.record.Posting.Name != "" {
			e = b.entryOf(it.record, now)
		}
		if e == nil {
			continue
		}
		if key, known := set.shadow.grouping.key(set.facts, e); known {
			set.shadow.served.count(key, now)
		}
	}
}
