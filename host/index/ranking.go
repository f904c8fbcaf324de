package index

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/policy"
)

// A Ranking is an order that depends on how many jobs of a key are running: jobs
// of one Group stay in their order among themselves, and which key
// gives the next one is decided by ranks.
type Ranking struct {
	// By names what keys are made of. Under another one every job is put into
	// another group, under the same one only the ranks are made anew.
	By string

	// Per, if not 0, has claims count for the rest of the period in which they were made,
	// in place of those that run: see policy.Manifest.Period. It goes with By.
	Per time.Duration

	Rank Ranker
}

// A Ranker writes a rank for each key: at most policy.MaxBatch of them. It is
// called off the lock, from one goroutine at a time, and must not call the index.
// After an error the keys keep the ranks that they have; one that has none comes
// as if every rank were 0.
type Ranker func(keys []policy.Key, ranks []policy.Rank) error

// Two values of a group's worth that are no scores, and how many groups are ranked at a
// time.
const (
	full     = ranking.FullKey
	unranked = ranking.Unranked
	keyBatch = ranking.KeyBatch
)

// keys is the groups of an index that has a ranking.
type keys struct {
	by     string
	since  uint32 // a row that was scored before this scoring is in no group
	rank   Ranker
	serial uint32        // of the ranking: ranks of an older one do not count. It grows each minute
	asking chan struct{} // held by who asks the ranker
	again  atomic.Bool   // something changed while somebody asked

	byKey   map[string]uint32
	groups  slab[group]
	touched []uint32 // groups whose ranks are not those of their counts, each once
	blocked []uint32 // groups that the store says are full, each once
	idle    int      // groups without jobs
	minute  int64    // since 1970, as of which keys are told what they were served

	per    time.Duration // 0: what runs counts
	period int64         // the present one
	used   []uint32      // groups with claims of this period or one before, each once
	over   int           // so many of them have to be looked at, since their period is over

	swept   uint32 // the last ranking by which every group was ranked
	counted bool   // every claimed job is in its group
	whole   bool   // every job is
}

// A group is the open jobs with one key, and what is remembered of it.
type group struct {
	*Group          // as entries show it; replaced, never changed
	rows     uint32 // open jobs
	waiting  uint32 // of those, ready
	claimed  uint32
	reserved uint32
	served   ranking.Served
	period   int64  // in which
	granted  uint32 // so many were claimed
	isUsed   bool

	ranked    ranking.Ranked
	isTouched bool
	blocked   int64 // unix nanoseconds until when the store is believed; 0: it is not full there

	worth int64
}

// MaxIdleKeys is how many keys without open jobs a board remembers, so that it knows
// how much they were served lately when jobs of them come again.
const MaxIdleKeys = 100_000

func newKeys(r *Ranking, since uint32) *keys {
	now := time.Now()
	return &keys{
		by: r.By, per: r.Per, since: since, asking: make(chan struct{}, 1), byKey: make(map[string]uint32),
		minute: ranking.Minute(now), period: ranking.Period(r.Per, now),
	}
}

// tell has a group whose counts changed take its new place among the others, and be
// ranked again if its ranks do not tell what that is.
func (ix *Index) tell(h uint32) {
	if h == 0 {
		return
	}
	k := ix.keys
	g := k.groups.at(h)
	if g.ranked.Look(k.counts(g)) {
		k.touch(h, g)
	}
	ix.revalue(h, g)
}

func (k *keys) touch(h uint32, g *group) {
	if !g.isTouched {
		g.isTouched = true
		k.touched = append(k.touched, h)
	}
}

// running is how many of the group run; or, where periods count, how many were claimed in
// the present one.
func (k *keys) running(g *group) int64 {
	switch {
	case k.per == 0:
		return int64(g.claimed + g.reserved)
	case g.period == k.period:
		return int64(g.granted + g.reserved)
	}
	return int64(g.reserved)
}

// counts are what there is of the group. What is reserved counts as running, and so
// as served.
func (k *keys) counts(g *group) ranking.Counts {
	return ranking.Counts{Running: k.running(g), Waiting: int64(g.waiting), Served: g.served.At(k.minute) + int64(g.reserved)}
}

// worthOf returns what the group is worth by what is known of it.
func (k *keys) worthOf(g *group) int64 {
	if g.blocked != 0 {
		return full
	}
	return g.ranked.Worth(k.running(g))
}

// advance makes all ranks stale when another minute has begun, since the counts of what
// keys were served have faded.
func (k *keys) advance(now time.Time) {
	if minute := ranking.Minute(now); minute > k.minute {
		k.minute = minute
		k.serial++
	}
	k.enter(ranking.Period(k.per, now))
}

// enter begins a period, if it is a later one than the present. What was claimed in the one
// before is to be looked at.
func (k *keys) enter(period int64) {
	if period > k.period {
		k.period, k.over = period, len(k.used)
	}
}

func (k *keys) periodEnd() time.Time { return time.Unix(0, (k.period+1)*int64(k.per)) }

// use counts a claim of a period in a group. That of a later one than the present says that
// it has begun by the store's clock.
func (k *keys) use(h uint32, g *group, period int64) {
	if k.per == 0 || period < k.period {
		return
	}
	k.enter(period)
	if g.period != period {
		g.period, g.granted = period, 0
	}
	g.granted++
	if !g.isUsed {
		g.isUsed = true
		k.used = append(k.used, h)
	}
}

// refresh looks at groups whose period is over: again they may have what a period may. At
// most so many are looked at; more reports whether there are others.
func (ix *Index) refresh(most int) (more bool) {
	k := ix.keys
	if k == nil {
		return false
	}
	for ; k.over > 0 && most > 0; most-- {
		k.over--
		h := k.used[0]
		k.used = k.used[1:]
		g := k.groups.at(h)
		if g.isUsed = false; g.period == k.period { // it was claimed since
			g.isUsed = true
			k.used = append(k.used, h)
		}
		if ix.tell(h); g.rows == 0 && g.served.At(k.minute) == 0 {
			k.forget(h, g)
		}
	}
	return k.over > 0
}

// groupOf returns the group that a row is in, 0 if it is in none.
func (ix *Index) groupOf(r *row) uint32 {
	if k := ix.keys; k != nil && r.scored >= k.since {
		return r.group
	}
	return 0
}

// regroup puts a row that has no place into the group of a key. What was scored
// before is in the group that it was put into then.
func (ix *Index) regroup(r *row, key string, by *scoring) {
	old := ix.groupOf(r)
	if r.scored = by.number(); ix.keys == nil {
		return
	}
	if old != 0 && ix.keys.groups.at(old).Key == key {
		return
	}
	r.group = ix.keys.join(key)
	if old != 0 {
		ix.tell(old)
		ix.keys.leave(old)
	}
}

// join adds a row to the group of a key.
func (k *keys) join(key string) uint32 {
	h, known := k.byKey[key]
	if !known {
		h = k.groups.alloc()
		key = strings.Clone(key) // so that the message that it came in can be freed
		*k.groups.at(h) = group{Group: &Group{Key: key}, worth: unranked}
		k.byKey[key] = h
		k.idle++
	}
	g := k.groups.at(h)
	if g.rows == 0 {
		k.idle--
	}
	g.rows++
	return h
}

// leave takes a row out of a group. One that is empty then is kept for as long as
// it matters what it was served.
func (k *keys) leave(h uint32) {
	g := k.groups.at(h)
	if g.rows--; g.rows > 0 {
		return
	}
	k.idle++
	if k.idle > MaxIdleKeys || g.served.At(k.minute) == 0 {
		k.forget(h, g)
	}
}

// forget drops a group without jobs, unless it stands in one of the lists.
func (k *keys) forget(h uint32, g *group) {
	if g.rows > 0 || g.isTouched || g.isUsed || g.blocked != 0 {
		return
	}
	k.idle--
	delete(k.byKey, g.Key)
	k.groups.drop(h)
}

// become moves a row to another place and counts it there.
func (ix *Index) become(r *row, p place) {
	if ix.keys != nil {
		ix.count(r, r.place, -1)
		ix.count(r, p, 1)
	}
	r.place = p
}

func (ix *Index) count(r *row, p place, sign int) {
	h := ix.groupOf(r)
	if h == 0 {
		return
	}
	g := ix.keys.groups.at(h)
	switch n := uint32(sign); p {
	case ready:
		g.waiting += n
	case reserved:
		g.reserved += n
	case claimed:
		g.claimed += n
	case vacant, waiting:
	}
}

// claimOf returns who holds a row; it is asked only for the sake of counts.
func (ix *Index) claimOf(r *row) *Claim {
	if ix.keys == nil || r.rare == 0 {
		return nil
	}
	return ix.rares.at(r.rare).claim
}

// served counts a claim on a row that is another one than before.
func (ix *Index) served(r *row, before *Claim) {
	now := ix.claimOf(r)
	if h := ix.groupOf(r); h != 0 && now != nil &&
		(before == nil || before.Token != now.Token || before.Owner != now.Owner || !before.Since.Equal(now.Since)) {
		k := ix.keys
		g, minute, period := k.groups.at(h), k.minute, k.period
		if !now.Since.IsZero() {
			minute, period = ranking.Minute(now.Since), ranking.Period(k.per, now.Since)
		}
		g.served.Add(minute)
		if k.use(h, g, period); k.per != 0 {
			ix.hurry(len(k.used) == 1 || k.over > 0)
		}
	}
}
