// Package orders simulates the index of a host's open jobs, and with it the order in
// which jobs are claimed: two hosts, each with an index that is fed by a board's changes
// in whatever order and at whatever time they may come.
package orders

import (
	"slices"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// A place is where a job is in an index.
type place uint8

const (
	waiting  place = iota // for its time, or held
	ready                 // to be taken
	reserved              // taken, and neither claimed nor given back yet
	claimed
)

// A known is a job as a host knows it.
type known struct {
	index.Entry
	place place
	alarm time.Time // when the claim is to be looked at; zero: not, or not again
	seen  int       // the number of the last snapshot that it was put or touched in
}

// A reference does what an Index does with a sorted slice. It forgets no removal.
type reference struct {
	jobs    []*known
	removed map[job.ID]driver.Position
	score   index.Scorer
	rank    func(policy.Key) policy.Rank // nil: the order does not depend on counts

	syncs   int
	syncing bool
	reset   bool
}

func newReference() *reference {
	return &reference{removed: map[job.ID]driver.Position{}, score: scores[0]}
}

func (m *reference) find(id job.ID) *known {
	for _, k := range m.jobs {
		if k.ID == id {
			return k
		}
	}
	return nil
}

// unseen reports whether everything is news about a job, since the store went back.
func (m *reference) unseen(k *known) bool { return m.syncing && m.reset && k.seen != m.syncs }

// news reports whether something of a position is news about a job.
func (m *reference) news(id job.ID, position driver.Position) bool {
	if k := m.find(id); k != nil {
		return position > k.Position || m.unseen(k)
	}
	at, gone := m.removed[id]
	return !gone || position > at
}

func (m *reference) put(e *index.Entry) bool {
	k := m.find(e.ID)
	isNews := m.news(e.ID, e.Position)
	switch {
	case k == nil && (e.Amends || !isNews):
		return false
	case k != nil:
		k.seen = m.syncs
		if !isNews {
			return false
		}
	default:
		k = &known{}
		m.jobs = append(m.jobs, k)
	}
	score, isNew := k.Score, k.Labels == nil || k.Sequence != e.Sequence
	k.Entry, k.seen, k.alarm = *e, m.syncs, time.Time{}
	m.score([]*index.Entry{&k.Entry})
	if !isNew && e.Claim != nil {
		k.Score = score // a claimed job keeps its place
	}
	switch {
	case e.Claim != nil:
		k.place = claimed
		k.arm()
	case e.Held || e.NotBefore.After(time.Now()):
		k.place = waiting
	default:
		k.place = ready
	}
	m.sort()
	return true
}

func (k *known) arm() {
	k.alarm = time.Time{}
	if !k.Claim.NoExpiry {
		k.alarm = k.Claim.Ends
	}
}

func (m *reference) sort() {
	slices.SortFunc(m.jobs, func(a, b *known) int {
		switch {
		case less(&a.Entry, &b.Entry):
			return -1
		case less(&b.Entry, &a.Entry):
			return 1
		}
		return 0
	})
}

// less is the order of jobs as it is documented: by score, higher first, then by
// priority, operation priority and age, in microseconds.
func less(a, b *index.Entry) bool {
	switch {
	case a.Score != b.Score:
		return a.Score > b.Score
	case a.Priority != b.Priority:
		return a.Priority < b.Priority
	case a.OperationPriority != b.OperationPriority:
		return a.OperationPriority < b.OperationPriority
	case a.CreatedAt.UnixMicro() != b.CreatedAt.UnixMicro():
		return a.CreatedAt.Before(b.CreatedAt)
	case a.Sequence != b.Sequence:
		return a.Sequence < b.Sequence
	}
	return string(a.ID[:]) < string(b.ID[:])
}

func (m *reference) remove(id job.ID, position driver.Position) bool {
	if !m.news(id, position) {
		return false
	}
	m.drop(id)
	m.removed[id] = position
	return true
}

func (m *reference) drop(id job.ID) {
	m.jobs = slices.DeleteFunc(m.jobs, func(k *known) bool { return k.ID == id })
}

func (m *reference) touch(id job.ID, position driver.Position, version uint64, c index.Claim) bool {
	k := m.find(id)
	if k == nil || k.place != claimed || position <= k.Position || version != k.Version {
		return false
	}
	k.Position, k.Claim, k.seen = position, &c, m.syncs
	k.arm()
	return true
}

// begin begins a snapshot.
func (m *reference) begin(reset bool) {
	m.reset = reset || m.syncing && m.reset
	m.syncing = true
	m.syncs++
	if reset {
		m.removed = map[job.ID]driver.Position{}
	}
}

func (m *reference) end(position driver.Position) (gone int) {
	for _, k := range slices.Clone(m.jobs) {
		if k.seen != m.syncs && (m.reset || k.Position <= position) {
			m.drop(k.ID)
			m.removed[k.ID] = position
			gone++
		}
	}
	m.syncing, m.reset = false, false
	return gone
}

// tick returns the claims that are to be looked at.
func (m *reference) tick(now time.Time) (lapsed []job.ID) {
	for _, k := range m.jobs {
		switch {
		case k.place == waiting && !k.Held && !k.NotBefore.After(now):
			k.place = ready
		case k.place == claimed && !k.alarm.IsZero() && !k.alarm.After(now):
			k.alarm = time.Time{}
			lapsed = append(lapsed, k.ID)
		}
	}
	return lapsed
}

// next is when a tick is due; zero: never.
func (m *reference) next() (at time.Time) {
	for _, k := range m.jobs {
		due := k.alarm
		if k.place == waiting && !k.Held {
			due = k.NotBefore
		}
		if !due.IsZero() && (at.IsZero() || due.Before(at)) {
			at = due
		}
	}
	return at
}

// take reserves the best n of a class.
func (m *reference) take(class string, n int) (taken []job.ID) {
	for range n {
		best := m.best(class)
		if best == nil {
			break
		}
		best.place = reserved
		taken = append(taken, best.ID)
	}
	return taken
}

func (m *reference) best(class string) (best *known) {
	var top int64
	for _, k := range m.jobs {
		if k.place != ready || !allows(class, &k.Entry) {
			continue
		}
		if m.rank == nil {
			return k
		}
		r := m.rank(m.count(keyOf(&k.Entry)))
		if r.Full {
			continue
		}
		if best == nil || r.Score > top {
			best, top = k, r.Score
		}
	}
	return best
}

// count counts the jobs of a key.
func (m *reference) count(key string) policy.Key {
	c := policy.Key{Key: key}
	for _, k := range m.jobs {
		if keyOf(&k.Entry) != key {
			continue
		}
		switch k.place {
		case reserved, claimed:
			c.Running++
		case ready:
			c.Waiting++
		case waiting:
		}
	}
	return c
}

// readyAt is since when a ready job could be claimed. No job here has a status, so that each
// change of one counts.
func (k *known) readyAt() time.Time {
	since := k.CreatedAt
	for _, at := range []time.Time{k.ModifiedAt, k.NotBefore} {
		if at.After(since) {
			since = at
		}
	}
	return since
}

func (m *reference) counts() (c index.Counts) {
	for _, k := range m.jobs {
		switch k.place {
		case claimed:
			c.Claimed++
		case waiting:
			c.Delayed++
		case ready, reserved:
			c.Ready++
			if since := k.readyAt(); c.OldestReadyAt.IsZero() || since.Before(c.OldestReadyAt) {
				c.OldestReadyAt = since
			}
		}
	}
	return c
}

// classes are what workers there are: for all jobs, and for those of one label, the last
// for such as were never claimed.
var classes = []string{"", "a", "b", "b once"}

func allows(class string, e *index.Entry) bool {
	return class == "" || e.Labels[0].Value == class[:1] && (len(class) == 1 || e.Attempt == 0)
}

// keyOf is what jobs are ranked by.
func keyOf(e *index.Entry) string { return e.Labels[1].Value }

// scores are orders that depend on nothing but the job.
var scores = []index.Scorer{
	scorer(func(*index.Entry) int64 { return 0 }),
	scorer(func(e *index.Entry) int64 { return int64(e.ID[1] % 3) }),
	scorer(func(e *index.Entry) int64 { return -int64(e.Attempt) * int64(e.Priority) }),
}

func scorer(score func(*index.Entry) int64) index.Scorer {
	return func(entries []*index.Entry) {
		for _, e := range entries {
			e.Score, e.Group = score(e), &index.Group{Key: keyOf(e)}
		}
	}
}

// ranks are orders that depend on how many jobs of a key there are.
var ranks = []func(policy.Key) policy.Rank{
	nil,
	func(k policy.Key) policy.Rank { return policy.Rank{Score: -k.Running} },
	func(k policy.Key) policy.Rank { return policy.Rank{Full: k.Running >= 2} },
	func(k policy.Key) policy.Rank { return policy.Rank{Score: k.Waiting, Full: k.Running > 2} },
}
