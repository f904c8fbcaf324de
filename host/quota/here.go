package quota

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

// here is what the boards of a tenant have on this host of a fleet. A board that is closed here
// since another server has it open counts on until the next turn of the ledger: the part that
// this host has for it is that server's, and is used by nobody until it was given back. tally.mu
// guards it.
type here struct {
	had  map[string]driver.Counts // by board, as the host last had its part
	next map[string]driver.Counts // as it is to have it, if the turn succeeds
}

// count returns what the boards have that are here, and what those have that were.
func (h *here) count(ctx context.Context, boards []*Board) (by map[string]driver.Counts, away driver.Counts) {
	by = map[string]driver.Counts{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, b := range boards {
		if b.driver.Load() == nil && b.spec.Standing.Rests() == nil {
			continue // another server's
		}
		asking.Go(func() {
			c, known := b.counts(ctx, 0)
			mu.Lock()
			defer mu.Unlock()
			if !known { // it is opened anew
				c = h.had[b.spec.Name]
			}
			by[b.spec.Name] = c
		})
	}
	asking.Wait()
	for name, c := range h.had {
		if _, there := by[name]; !there {
			add(&away, &c)
		}
	}
	return by, away
}

// counts returns what the board has, if that is known.
func (b *Board) counts(ctx context.Context, notOlder time.Duration) (c driver.Counts, known bool) {
	if m := b.driver.Load(); m != nil {
		if c = m.count(ctx, notOlder, countPatience); m.counted.known() {
			return c, true
		}
	}
	if r := b.spec.Standing.Rests(); r != nil {
		return *r, true
	}
	return driver.Counts{}, false
}

// sum adds up what boards have.
func sum(by map[string]driver.Counts) (all driver.Counts) {
	for _, c := range by {
		add(&all, &c)
	}
	return all
}

func add(to, c *driver.Counts) {
	if to.Limits == nil {
		to.Limits = map[string]int64{}
	}
	to.Open += c.Open
	to.Claimed += c.Claimed
	to.Limits[keyDetailBytes] += c.Limits[keyDetailBytes]
}

// countHere counts what the tenant has on this host, for who takes something of a limit. The
// caller has tally.mu.
func (t *Tenant) countHere(ctx context.Context, boards []*Board) driver.Counts {
	by, away := t.here.count(ctx, boards)
	t.tally.away = away
	return sum(by)
}

// countForTurn is countHere for a turn of the ledger, which gives back what is not here any more.
func (t *Tenant) countForTurn(ctx context.Context, boards []*Board) driver.Counts {
	by, away := t.here.count(ctx, boards)
	t.tally.away, t.here.next = away, by
	return sum(by)
}

// has notes that this host has its part of what it said in its turn, or none.
func (t *Tenant) has(part bool) {
	t.tally.mu.Lock()
	defer t.tally.mu.Unlock()
	if !part {
		t.here.next = nil
	}
	t.here.had, t.here.next, t.tally.away = t.here.next, nil, driver.Counts{}
}
