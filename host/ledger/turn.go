package ledger

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// space is where the accounts are, in the catalog's store, one document for each tenant. One
// that nobody renews is forgotten by the store long after the last part of it has lapsed.
const (
	space       = "ledger"
	accountsFor = 24 * time.Hour
)

// tries is how often a turn is begun again because another server's was first.
const tries = 8

// account is what a server knows of a tenant's account.
type account struct {
	tenant  string
	short   atomic.Bool  // something was refused since the last turn
	resting atomic.Bool  // all that the server has are jobs on its boards
	begun   atomic.Int64 // when the last turn began, in Unix nanoseconds

	turning chan struct{} // holds one for who takes a turn, whose alone what follows is
	has     bool          // the last turn has brought its parts
	barren  bool          // it has not brought all that was asked for
	wrote   bool          // it may stand in the store
	dropped bool          // the server has no part any more, and another account is to be made

	known   bool // stands is what the store had last
	stands  Account
	version uint64
	at      time.Time        // when stands was read or written
	seen    map[string]*seen // the other holders
}

// seen is since when a holder has been seen as it is.
type seen struct {
	turn  uint64
	since time.Time
}

// next is when the account may have its next turn if something is short.
func (a *account) next() time.Time { return time.Unix(0, a.begun.Load()).Add(shortEvery) }

// due reports whether it is time for the next turn.
func (a *account) due(now time.Time) bool {
	since := now.Sub(time.Unix(0, a.begun.Load()))
	switch {
	case a.short.Load():
		return since >= shortEvery
	case a.resting.Load():
		return since >= restingEvery
	}
	return since >= renewEvery
}

// enter waits for the account, and reports whether it has it before ctx ends.
func (a *account) enter(ctx context.Context) bool {
	select {
	case a.turning <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (a *account) exit() { <-a.turning }

// turn takes a server's turn of one tenant, unless it had one less than every ago, or since it
// was called. It reports whether the server has its parts.
func (l *Ledger) turn(ctx context.Context, a *account, every time.Duration) bool {
	called := time.Now()
	if !a.enter(ctx) {
		return false
	}
	defer a.exit()
	m, begun, last := l.Mode(), time.Now(), time.Unix(0, a.begun.Load())
	if a.barren {
		every = shortEvery
	}
	switch {
	case a.dropped || !m.taking(begun): // there is no part, or another account
		return false
	case begun.Sub(last) < every || last.After(called):
		return a.has
	}
	a.begun.Store(begun.UnixNano())
	a.short.Store(false)
	wishes := l.users.Wishes(ctx, a.tenant)
	if needless(wishes) {
		l.quit(ctx, a, false)
		return true
	}
	a.resting.Store(rests(wishes))
	for i := range wishes {
		wishes[i].Whole = m.Base != Floor
	}
	grants, err := l.write(ctx, a, m.Servers, wishes)
	if a.has, a.barren = err == nil, err != nil; err != nil {
		l.logger.Debug("the limits of a tenant cannot be shared out now", "tenant", a.tenant, "error", err)
		return false
	}
	a.barren = slices.ContainsFunc(grants, func(g Grant) bool {
		return slices.ContainsFunc(wishes, func(w Wish) bool { return w.Name == g.Name && w.More > 0 && g.Share < w.Use+w.More })
	})
	l.users.Grant(a.tenant, grants, begun.Add(holdFor), begun.Add(keptFor))
	return true
}

// needless reports whether a server needs no part, since nothing is used.
func needless(wishes []Wish) bool {
	return !slices.ContainsFunc(wishes, func(w Wish) bool { return !w.Still || w.Use > 0 })
}

// rests reports whether all that a server uses lies on boards.
func rests(wishes []Wish) bool {
	return !slices.ContainsFunc(wishes, func(w Wish) bool { return !w.Still || w.Use > 0 && w.Kind != Kept })
}

// write writes the account after the server's turn, and returns what it has then.
func (l *Ledger) write(ctx context.Context, a *account, servers int, wishes []Wish) (grants []Grant, err error) {
	a.wrote = true
	narrow := func(limit string, share float64) float64 { return l.users.Narrow(a.tenant, limit, share) }
	err = l.change(ctx, a, func(now time.Time) (next Account) {
		next, grants = a.stands.turn(situation{self: l.at.Load().boot, silent: a.silent(now), servers: servers, since: now.Sub(a.at), narrow: narrow}, wishes)
		return next
	})
	return grants, err
}

// change changes the account in the store by compare-and-set.
func (l *Ledger) change(ctx context.Context, a *account, by func(now time.Time) Account) (err error) {
	docs, at := l.at.Load().docs, driver.Space{Name: space}
	for range tries {
		if !a.known {
			if err := l.read(ctx, a, docs); err != nil {
				return err
			}
		}
		now := time.Now()
		next := by(now)
		version := uint64(0)
		switch err = nil; {
		case len(next.Holders) > 0:
			var data []byte
			if data, err = json.Marshal(&next); err != nil {
				return err
			}
			version, err = docs.Put(ctx, at, driver.Document{Name: a.tenant, Data: data, Expires: now.Add(accountsFor)}, a.version)
		case a.version > 0:
			if err = docs.Delete(ctx, at, a.tenant, a.version); job.KindOf(err) == job.NotFound {
				err = nil
			}
		}
		if err == nil {
			a.stands, a.version, a.at = next, version, time.Now()
			return nil
		}
		if a.known = false; job.KindOf(err) != job.Aborted {
			return err
		}
	}
	return err
}

// read reads the account.
func (l *Ledger) read(ctx context.Context, a *account, docs driver.Documents) error {
	doc, err := docs.Get(ctx, driver.Space{Name: space}, a.tenant)
	if err != nil && job.KindOf(err) != job.NotFound {
		return err
	}
	a.stands, a.version, a.at = Account{}, doc.Version, time.Now()
	if err == nil && json.Unmarshal(doc.Data, &a.stands) != nil {
		a.stands = Account{} // nobody can have a part of what nobody can read
	}
	a.known = true
	before := a.seen
	a.seen = map[string]*seen{}
	for i := range a.stands.Holders {
		h := &a.stands.Holders[i]
		h.Left = h.Left || slices.Contains(l.at.Load().ended, h.Boot)
		if s := before[h.Boot]; s != nil && s.turn == h.Turn {
			a.seen[h.Boot] = s
		} else {
			a.seen[h.Boot] = &seen{h.Turn, a.at}
		}
	}
	return nil
}

// silent returns for how long the other holders have been seen as they are. That they still
// are, the store finds when it compares.
func (a *account) silent(now time.Time) others {
	o := others{}
	for boot, s := range a.seen {
		o[boot] = now.Sub(s.since)
	}
	return o
}

// leave gives back what the server has of a tenant's limits. Where it ends, what lies on its
// boards is counted for it until other servers have them.
func (l *Ledger) leave(ctx context.Context, a *account, ends bool) {
	if !a.enter(ctx) {
		return
	}
	defer a.exit()
	if !a.dropped {
		l.quit(ctx, a, ends)
	}
}

// quit gives back what the server has, and forgets the account. What the store does not
// learn of that, the others find out.
func (l *Ledger) quit(ctx context.Context, a *account, ends bool) {
	l.users.Grant(a.tenant, nil, time.Time{}, time.Time{})
	a.dropped = true
	l.forget(a)
	if !a.wrote {
		return
	}
	_ = l.change(ctx, a, func(now time.Time) Account {
		boot, silent := l.at.Load().boot, a.silent(now)
		if ends {
			return a.stands.leave(boot, silent)
		}
		return a.stands.without(boot, silent)
	})
}
