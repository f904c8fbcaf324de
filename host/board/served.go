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

// served is how many jobs of each key were claimed lately.
type served struct {
	mu     sync.Mutex
	minute int64 // since 1970; keys that counted nothing any more then were forgotten
	counts map[string]*servedKey
}

// A servedKey is what was claimed of one key.
type servedKey struct {
	ranking.Served
	period, granted int64 // so many claims in which period
}

// count counts one claim.
func (s *served) count(key string, per time.Duration, at time.Time) {
	minute := ranking.Minute(at)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tidy(minute)
	one := s.counts[key]
	if one == nil {
		if len(s.counts) >= index.MaxIdleKeys {
			return
		}
		one = &servedKey{}
		s.counts[strings.Clone(key)] = one // not the message that it came in
	}
	one.Add(minute)
	if period := ranking.Period(per, at); per != 0 && period == one.period {
		one.granted++
	} else {
		one.period, one.granted = period, 1
	}
}

// write writes the counts of keys, where per is not 0 also those of the present period.
func (s *served) write(keys []policy.Key, per time.Duration) {
	now := time.Now()
	minute := ranking.Minute(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tidy(minute)
	for i := range keys {
		if one := s.counts[keys[i].Key]; one != nil {
			keys[i].Served = one.At(minute)
			if per != 0 && one.period == ranking.Period(per, now) {
				keys[i].Running = one.granted
			}
		}
	}
}

// tidy forgets keys. The caller holds s.mu.
func (s *served) tidy(minute int64) {
	if s.counts == nil {
		s.counts = map[string]*servedKey{}
	}
	if minute <= s.minute {
		return
	}
	s.minute = minute
	for key, one := range s.counts {
		if one.At(minute) == 0 {
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
			set.shadow.served.count(key, set.shadow.grouping.per, now)
		}
	}
}
