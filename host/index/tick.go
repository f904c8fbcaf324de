package index

import (
	"context"
	"time"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/job"
)

// Tick makes the jobs ready whose time has come and returns the claims whose
// lease seems to have run out, each once for each end that it was given.
func (ix *Index) Tick(now time.Time) []Lapse {
	var lapses []Lapse
	for more := true; more; {
		ix.mu.Lock()
		more = ix.tickDelays(now)
		more = ix.tickPeriod(now) || more
		ix.unblock(now)
		lapses, more = ix.tickLeases(now, lapses, more)
		ticket := ix.pending.ticket()
		ix.mu.Unlock()
		_ = ix.awaitVerdicts(context.Background(), ticket) // an error is the end of the context
		ix.rankNews()
	}
	return lapses
}

func (ix *Index) tickDelays(now time.Time) bool {
	due := now.UnixNano()
	for range slice {
		a, ok := ix.delays.first()
		if !ok || a.at > due {
			return false
		}
		ix.delays.drop(a.row)
		r := ix.rows.at(a.row)
		ix.offer(a.row, r)
		ix.tell(ix.groupOf(r))
		ix.announce()
	}
	return true
}

// tickPeriod has keys claimed again whose period is over.
func (ix *Index) tickPeriod(now time.Time) (more bool) {
	if ix.keys == nil || ix.keys.per == 0 {
		return false
	}
	ix.keys.enter(ranking.Period(ix.keys.per, now))
	return ix.refresh(slice)
}

func (ix *Index) tickLeases(now time.Time, lapses []Lapse, more bool) ([]Lapse, bool) {
	due := ix.elapsed(now)
	for range slice {
		a, ok := ix.leases.first()
		if !ok || a.at > due {
			return lapses, more
		}
		ix.leases.drop(a.row)
		r := ix.rows.at(a.row)
		lapses = append(lapses, Lapse{ID: r.ID, Claim: *ix.rares.at(r.rare).claim})
	}
	return lapses, true
}

// retry is how long a class whose judge failed is left alone while only
// waiters ask for it.
const retry = time.Second

// Failed returns the classes that somebody waits for although their judge failed, if it is
// time to ask it again. The caller is to Rebuild each. A class that somebody builds just now
// is left to them, and looked at again later.
func (ix *Index) Failed(now time.Time) []*Class {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	var due []*Class
	for c := range ix.classes.of(ix.classes.active) {
		if !c.isDue() || c.retryAt.After(now) {
			continue
		}
		if c.retryAt = now.Add(retry); len(c.turn) == 0 {
			due = append(due, c)
		}
	}
	return due
}

// isDue reports whether somebody waits for a class whose judge failed. Before it has failed,
// whoever builds the class will end it.
func (c *Class) isDue() bool { return c.state == building && c.awaited() && !c.retryAt.IsZero() }

// Rebuild has the judge of a class asked again. It takes as long as the judge does; if that
// fails, the class is due again in a while.
func (ix *Index) Rebuild(ctx context.Context, c *Class) { _ = ix.build(ctx, c) }

// fail notes that the judge of a class gave no verdicts. The caller holds ix.mu.
func (ix *Index) fail(c *Class) {
	c.retryAt = time.Now().Add(retry)
	ix.hurry(c.awaited())
}

// Again asks for another look at a claim at the given time, in place of the one
// at the end of its lease. It does nothing if the job is not claimed.
func (ix *Index) Again(id job.ID, at time.Time) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	h, ok := ix.ids.get(id)
	if !ok {
		return
	}
	r := ix.rows.at(h)
	if r.place != claimed {
		return
	}
	if r.timer != 0 {
		ix.leases.drop(h)
	}
	ix.armLease(h, at)
}

// Next returns when the next look at Tick and Failed is due, if any.
func (ix *Index) Next() (next time.Time, ok bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	earlier := func(t time.Time) {
		if !ok || t.Before(next) {
			next, ok = t, true
		}
	}
	if a, ok := ix.leases.first(); ok {
		earlier(ix.start.Add(time.Duration(a.at)))
	}
	if a, ok := ix.delays.first(); ok {
		earlier(time.Unix(0, a.at))
	}
	if k := ix.keys; k != nil {
		for _, h := range k.blocked {
			earlier(time.Unix(0, k.groups.at(h).blocked))
		}
		if k.over > 0 {
			earlier(time.Now())
		}
		if len(k.used) > 0 {
			earlier(k.periodEnd())
		}
	}
	for c := range ix.classes.of(ix.classes.active) {
		if c.isDue() {
			earlier(c.retryAt)
		}
	}
	return next, ok
}

// NextDelayed returns when the next job becomes ready that waits for its time, if any does.
func (ix *Index) NextDelayed() (time.Time, bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	a, ok := ix.delays.first()
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(0, a.at), true
}

// DueSooner returns a channel that is signalled when Next moved closer.
func (ix *Index) DueSooner() <-chan struct{} { return ix.sooner }
