package index

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// ranksDue reports whether the groups that changed are to be ranked at once: if somebody
// waits for jobs, or if they are many. Otherwise the next claim has them ranked.
func (ix *Index) ranksDue() bool {
	k := ix.keys
	return k != nil && len(k.touched) > 0 && (ix.classes.stats.Waiters > 0 || len(k.touched) >= keyBatch)
}

// newsPatience is how long a caller that brings news waits for the ranker. Then the
// caller goes on, and the ranks are written when the ranker answers.
const newsPatience = 100 * time.Millisecond

// rankNews has the groups that changed ranked, if that is due. It is called after news
// were put into the index and judged, without the lock.
func (ix *Index) rankNews() {
	ix.mu.Lock()
	k, due := ix.keys, ix.ranksDue()
	ix.mu.Unlock()
	if !due {
		return
	}
	k.again.Store(true) // before the select: whoever asks now looks at it when done
	select {
	case k.asking <- struct{}{}:
	default:
		return // whoever asks goes on with it
	}
	done := ix.ask(k)
	timer := time.NewTimer(newsPatience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// rankTouched has every group ranked whose counts had changed when it was called. One
// caller asks the ranker at a time, for the others as well. The end of ctx ends the wait
// for another caller and for the ranker; the ranker goes on, since its answer is for all.
func (ix *Index) rankTouched(ctx context.Context) {
	ix.mu.Lock()
	k := ix.keys
	if k == nil || len(k.touched) == 0 && len(k.asking) == 0 {
		ix.mu.Unlock()
		return
	}
	ix.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	select {
	case k.asking <- struct{}{}:
	case <-ctx.Done():
		return
	}
	select {
	case <-ix.ask(k):
	case <-ctx.Done():
	}
}

// ask ranks what has changed, and what changes meanwhile. The caller holds k.asking,
// which ask gives back. The channel is closed when what had changed is ranked.
func (ix *Index) ask(k *keys) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		k.again.Store(false)
		ix.askTouched(k)
		<-k.asking
		close(done)
		if k.again.Swap(false) {
			ix.rankNews()
		}
	}()
	return done
}

// askTouched ranks what had changed when it was called. The caller holds k.asking.
func (ix *Index) askTouched(k *keys) {
	q := inquiries.Get().(*inquiry)
	defer inquiries.Put(q)
	ix.mu.Lock()
	left := len(k.touched)
	for ; left > 0 && ix.keys == k; left -= keyBatch {
		q.reset(k)
		ix.gatherTouched(k, q)
		ix.mu.Unlock()
		ix.inquire(k, q)
		ix.mu.Lock()
	}
	ix.mu.Unlock()
}

func (ix *Index) gatherTouched(k *keys, q *inquiry) {
	n := min(len(k.touched), keyBatch)
	for _, h := range k.touched[:n] {
		g := k.groups.at(h)
		g.isTouched = false
		switch {
		case g.rows == 0:
			if k.idle > MaxIdleKeys || g.served.At(k.minute) == 0 {
				k.forget(h, g)
			}
		case g.ranked.Serial == k.serial && !g.ranked.Look(k.counts(g)):
			ix.revalue(h, g)
		default:
			q.add(h, g, k.counts(g), ix.oldestOf(h, g))
		}
	}
	if k.touched = k.touched[:copy(k.touched, k.touched[n:])]; cap(k.touched) > 4*keyBatch && len(k.touched) == 0 {
		k.touched = nil
	}
}

// revalue gives a group the place that it is worth now.
func (ix *Index) revalue(h uint32, g *group) {
	before := g.worth
	if g.worth = ix.keys.worthOf(g); g.worth == before {
		return
	}
	if l := ix.everyone.keyQueues; l != nil {
		l.revalue(h, g.worth)
	}
	for c := range ix.classes.of(ix.classes.active) {
		if c.keyQueues != nil {
			c.keyQueues.revalue(h, g.worth)
		}
	}
	if before == full {
		ix.wakeGroup(h)
	}
}

// wakeGroup tells one waiter of each class that a group is not full any more.
func (ix *Index) wakeGroup(h uint32) {
	if ix.classes.stats.Waiters == 0 {
		return
	}
	tell := func(c *Class) {
		l := c.keyQueues
		if l == nil || int(h) >= len(l.at) || l.at[h] == 0 || !c.awaited() {
			return
		}
		head := l.heap.items[l.at[h]-1].head
		r := ix.rows.at(head)
		r.flags &^= woke
		ix.wakeOne(c, head, r)
	}
	tell(ix.everyone)
	for c := range ix.classes.of(ix.classes.active) {
		tell(c)
	}
	for _, c := range ix.classes.over {
		if w := c.next(); w != nil {
			w.signal(ref{})
		}
	}
}

// Rerank has the ranker asked about every key whose rank is not of its present counts,
// in small steps between which others use the index. It returns early when ctx ends.
func (ix *Index) Rerank(ctx context.Context) error {
	ix.mu.Lock()
	k := ix.keys
	if k == nil {
		ix.mu.Unlock()
		return nil
	}
	k.advance(time.Now())
	end, serial := k.groups.end(), k.serial
	ix.mu.Unlock()
	q := inquiries.Get().(*inquiry)
	defer inquiries.Put(q)
	for from := uint32(1); from < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		select {
		case k.asking <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		ix.mu.Lock()
		if ix.keys != k {
			ix.mu.Unlock()
			<-k.asking
			return nil
		}
		q.reset(k)
		from = ix.gatherGroups(k, q, from)
		ix.mu.Unlock()
		ix.inquire(k, q)
		<-k.asking
		if k.again.Swap(false) {
			ix.rankNews()
		}
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	k.swept = serial
	return nil
}

// Served writes how many jobs of each key were claimed lately, where keys are made
// of what By names, and in this period, where that counts; others stay as they are.
func (ix *Index) Served(by string, all []policy.Key) {
	for part := range slices.Chunk(all, burst) {
		ix.mu.Lock()
		if k := ix.keys; k != nil && k.by == by {
			k.advance(time.Now())
			for i := range part {
				if h, known := k.byKey[part[i].Key]; known {
					g := k.groups.at(h)
					part[i].Served = g.served.At(k.minute)
					if k.per != 0 {
						part[i].Running = k.running(g)
					}
				}
			}
		}
		ix.mu.Unlock()
	}
}

func (ix *Index) gatherGroups(k *keys, q *inquiry, from uint32) (next uint32) {
	for end := min(k.groups.end(), from+slice); from < end && len(q.groups) < keyBatch; from++ {
		g := k.groups.peek(from)
		if g == nil || g.Group == nil {
			continue
		}
		switch {
		case g.rows == 0 && g.served.At(k.minute) == 0:
			k.forget(from, g)
		case g.rows > 0 && (g.ranked.Serial != k.serial || g.ranked.Look(k.counts(g))):
			q.add(from, g, k.counts(g), ix.oldestOf(from, g))
		}
	}
	return from
}

// Refused says that the store refused a claim because the job's key is full, which the
// index did not know. The key counts as full for a second, whatever news come meanwhile;
// where periods count, until the end of the present one, unless it has hardly begun: then
// the store's clock may not be there yet.
func (ix *Index) Refused(id job.ID) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	row, ok := ix.ids.get(id)
	if !ok {
		return
	}
	h := ix.groupOf(ix.rows.at(row))
	if h == 0 {
		return
	}
	k := ix.keys
	g := k.groups.at(h)
	if g.blocked == 0 {
		k.blocked = append(k.blocked, h)
	}
	g.blocked = k.blockedUntil(time.Now()).UnixNano()
	ix.revalue(h, g)
	ix.hurry(true)
}

func (k *keys) blockedUntil(now time.Time) time.Time {
	until := now.Add(believed)
	if k.per == 0 {
		return until
	}
	k.advance(now)
	ends := k.periodEnd()
	if since := now.Sub(ends.Add(-k.per)); since >= min(clocksDiffer, k.per/4) || until.After(ends) {
		return ends
	}
	return until
}

// clocksDiffer is how far the clocks of this server and of the store may be apart, so that
// a key with a period is claimed as soon as one begins.
const clocksDiffer = 5 * time.Second

// believed is how long a key counts as full after the store said so.
const believed = time.Second

// unblock tries the keys again whose time has come.
func (ix *Index) unblock(now time.Time) {
	k := ix.keys
	if k == nil || len(k.blocked) == 0 {
		return
	}
	kept := k.blocked[:0]
	for _, h := range k.blocked {
		g := k.groups.at(h)
		if g.blocked > now.UnixNano() {
			kept = append(kept, h)
			continue
		}
		g.blocked = 0
		if g.rows > 0 {
			ix.revalue(h, g)
		} else if g.served.At(k.minute) == 0 {
			k.forget(h, g)
		}
	}
	k.blocked = kept
}
