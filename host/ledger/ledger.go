// Package ledger shares the limits of tenants out among the servers of a fleet: how often a
// tenant may call and post, how many jobs, claims and bytes it may have, how many may watch.
// Of each tenant that has limits and is at work at more than one server an account stands in
// the catalog's store, in which each server has a part, changed by compare-and-set alone: so
// what all have together is never more than the limit, whatever they believe of each other.
//
// A part is a lease. Who has not renewed it for holdFor, on its own clock, uses it no more;
// the others give it to somebody else when they have seen it unchanged for freeAfter, on
// theirs. No two clocks are compared, and a server that is killed, stopped or cut off from
// the store needs to be told nothing. What such a server may still use is a hundredth of
// the limit, divided by the servers. Only who knows for certain that a run has ended need not
// wait: the next run of the same server says in its place that it has left.
//
// A server that is alone has no accounts. It says so in its word (see fleet.Word), and the
// next server takes nothing before the word says something else, or is that of a server
// which has not spoken for freeAfter.
//
// Locks. Ledger.mu is held alone, while memory is read or written. An account's turning is
// taken before it, and is held while the store is asked.
package ledger

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/bounded"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/sdk/driver"
)

// Timing of leases. Those who look at a lease wait for longer than who has it: between them
// lie what a look may take, and clocks that do not go alike.
const (
	holdFor       = 10 * time.Second // of a part, since the turn began that renewed it
	freeAfter     = 13 * time.Second // since it was first seen as it is
	keptFor       = 45 * time.Second // likewise, of what lies on boards, which another server has to count first
	keptFreeAfter = 60 * time.Second

	renewEvery   = 1500 * time.Millisecond // a server that uses a part takes its turn: with each second look at the fleet
	restingEvery = 15 * time.Second        // a server that only has jobs on its boards
	shortEvery   = 500 * time.Millisecond  // one that was short of something
	turnWithin   = 2 * time.Second         // the store has to answer
	askPatience  = 250 * time.Millisecond  // of a call that waits for a turn
	turnsAtOnce  = 16
	aloneAfter   = 30 * time.Second // of silence of all others
)

// overshoot is what part of a limit all servers together may use that have no part of it.
const overshoot = 100

// What a server says in its word of how it counts the limits of tenants. A server that says
// nothing of it is of a version that divides them evenly.
const (
	saysBegins = "begins" // it has not looked at the fleet yet
	saysAlone  = "alone"  // it lets through the whole limits, since it knows of no other server
	saysEven   = "even"   // it divides rates evenly, since there is a server that knows nothing else
	saysShared = "shared" // it uses nothing that is not in an account
)

// Users are what uses the limits of tenants on this server.
type Users interface {
	// Active returns the tenants that have limits and may use something of them here.
	Active() []string

	// Wishes returns what a tenant uses of each of its limits now.
	Wishes(ctx context.Context, tenant string) []Wish

	// Narrow says what the server has of a tenant's limit from now on, which is less than
	// before. Of a rate it returns what could have been used at once and cannot any more, of
	// other limits what is used of it at the moment.
	Narrow(tenant, limit string, share float64) float64

	// Grant says what the server has of a tenant's limits, until when, and until when of those
	// of the kind Kept; nil: nothing.
	Grant(tenant string, grants []Grant, until, keptUntil time.Time)
}

// Ledger is one server's part in the accounts of all tenants. Its zero value is not usable.
type Ledger struct {
	logger *slog.Logger
	users  Users
	at     atomic.Pointer[store] // nil before Begin
	mode   atomic.Pointer[Mode]
	kick   chan struct{}

	mu       sync.Mutex
	accounts map[string]*account // by tenant

	looked time.Time // when Run last looked for tenants that have no account
}

// store is where the accounts are, and who this server is in them.
type store struct {
	docs  driver.Documents
	boot  string
	ended []string // runs of this server that have ended
}

// Base is what a server has of a limit of which it has no part in an account.
type Base uint8

// The bases.
const (
	Floor Base = iota // what Mode.Floor says
	Even              // the same as each other server
	Whole             // all of it
)

// Mode is how this server counts.
type Mode struct {
	Base     Base
	Accounts bool      // parts of accounts hold; otherwise Base holds for all
	Servers  int       // in the fleet
	Until    time.Time // then another server may have come: Whole holds no longer, and nothing may be taken

	may bool // it may take parts: all others use nothing that is not in an account
}

// taking reports whether the server may take its turns.
func (m *Mode) taking(now time.Time) bool { return m.may && now.Before(m.Until) }

// Whole reports whether a limit of which there is no part is this server's alone.
func (m *Mode) Whole(now time.Time) bool { return m.Base == Whole && now.Before(m.Until) }

// Floor is what the server has of a limit in any case.
func (m *Mode) Floor(limit float64) float64 {
	return limit / overshoot / float64(max(1, m.Servers))
}

// New returns a ledger whose server has the floor of each limit until Begin and Run.
func New(users Users, logger *slog.Logger) *Ledger {
	l := &Ledger{logger: logger, users: users, kick: make(chan struct{}, 1), accounts: map[string]*account{}}
	l.mode.Store(&Mode{Servers: 1})
	return l
}

// Begin says where the accounts are and which run of a server this is, before the first Look.
// Of those that are named in ended it is known that they use nothing any more: what they had
// of a rate is free at once, also where they were killed and could not say so.
func (l *Ledger) Begin(boot string, ended []string, docs driver.Documents) {
	l.at.Store(&store{docs, boot, ended})
}

// Mode returns how the server counts now.
func (l *Ledger) Mode() *Mode { return l.mode.Load() }

// Says is what the server says of itself in its word.
func (l *Ledger) Says() string {
	switch m := l.Mode(); {
	case m.Until.IsZero():
		return saysBegins
	case m.Base == Whole:
		return saysAlone
	case m.Base == Even && !m.Accounts:
		return saysEven
	}
	return saysShared
}

// Look takes what was seen in a look at the fleet that has just ended. How the server counts
// follows from it.
func (l *Ledger) Look(servers []fleet.Seen) {
	before, self, now := l.Mode(), l.at.Load().boot, time.Now()
	next := Mode{Until: now.Add(holdFor), may: true}
	alone, even, whole := true, false, before.Whole(now)
	for _, s := range servers {
		if s.Live || s.Boot == self {
			next.Servers++
		}
		if s.Boot == self || s.State == fleet.Left {
			continue
		}
		alone = alone && s.Silent >= aloneAfter
		if s.Silent < freeAfter { // it may use what it has
			even = even || s.Live && s.Limits == ""
			next.may = next.may && (s.Limits == saysShared || s.Limits == saysBegins && whole) // who begins sees who was there before it
		}
	}
	next.may = next.may || before.taking(now) // nobody who has seen this server takes more than is in accounts
	switch {
	case alone:
		next.Base, next.may = Whole, false
	case even:
		next.Base, next.may = Even, false
	default:
		next.Accounts = true
		if before.Base == Even || whole && next.may { // until all that is at work has its part: see convert
			next.Base = before.Base
		}
	}
	l.mode.Store(&next)
	l.wake()
}

// wake has Run look for turns that are due.
func (l *Ledger) wake() {
	select {
	case l.kick <- struct{}{}:
	default: // it is about to
	}
}

// Settled reports whether the server counts as it is to, so that it can be sent callers.
func (l *Ledger) Settled() bool {
	m := l.Mode()
	return m.taking(time.Now()) || m.Base != Floor
}

// Run takes the server's turns until ctx ends, and then gives back what it has.
func (l *Ledger) Run(ctx context.Context) {
	for {
		select {
		case <-l.kick:
			l.convert(ctx)
			l.turns(ctx)
		case <-ctx.Done():
			leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnWithin)
			defer cancel()
			l.each(leaving, l.all(), func(ctx context.Context, a *account) { l.leave(ctx, a, true) })
			return
		}
	}
}

// convert gives each tenant that is at work its part, and then goes on without what the
// server had before there were accounts.
func (l *Ledger) convert(ctx context.Context) {
	m := l.Mode()
	switch {
	case !m.Accounts: // what it has in accounts counts for nothing here
		l.each(ctx, l.all(), func(ctx context.Context, a *account) { l.leave(ctx, a, false) })
	case m.taking(time.Now()) && m.Base != Floor:
		for _, tenant := range l.users.Active() {
			l.account(tenant)
		}
		var failed atomic.Bool
		l.each(ctx, l.all(), func(ctx context.Context, a *account) {
			if !l.turn(ctx, a, 0) {
				failed.Store(true)
			}
		})
		if failed.Load() {
			return
		}
		converted := *m
		converted.Base = Floor
		l.mode.CompareAndSwap(m, &converted)
	}
}

// turns takes the turns that are due.
func (l *Ledger) turns(ctx context.Context) {
	now := time.Now()
	if !l.Mode().taking(now) {
		return
	}
	if now.Sub(l.looked) >= restingEvery {
		l.looked = now
		for _, tenant := range l.users.Active() {
			l.account(tenant)
		}
	}
	var due []*account
	for _, a := range l.all() {
		if a.due(now) {
			due = append(due, a)
		}
	}
	l.each(ctx, due, func(ctx context.Context, a *account) { l.turn(ctx, a, shortEvery) })
}

// each does something for accounts, for a few at once.
func (l *Ledger) each(ctx context.Context, accounts []*account, do func(context.Context, *account)) {
	turns := bounded.New(turnsAtOnce)
	for _, a := range accounts {
		turns.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, turnWithin)
			defer cancel()
			do(ctx, a)
		})
	}
	turns.Wait()
}

func (l *Ledger) all() []*account {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]*account, 0, len(l.accounts))
	for _, a := range l.accounts {
		list = append(list, a)
	}
	return list
}

// account returns that of a tenant. It is kept from now on.
func (l *Ledger) account(tenant string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[tenant]
	if a == nil {
		a = &account{tenant: tenant, turning: make(chan struct{}, 1)}
		l.accounts[tenant] = a
	}
	return a
}

// forget drops an account of which the server has no part.
func (l *Ledger) forget(a *account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accounts, a.tenant)
}

// Short says that a tenant was refused something, or found no part: it is to have its turn
// soon. It costs next to nothing where that is known.
func (l *Ledger) Short(tenant string) {
	if !l.Mode().taking(time.Now()) {
		return
	}
	if a := l.account(tenant); !a.short.Swap(true) {
		time.AfterFunc(time.Until(a.next()), l.wake)
	}
}

// Ask takes a tenant's turn now and waits for it for a moment, unless the last one was a moment
// ago and did not bring all that was asked for.
func (l *Ledger) Ask(ctx context.Context, tenant string) {
	if l.Mode().taking(time.Now()) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askPatience)
		defer cancel()
		l.turn(ctx, l.account(tenant), 0)
	}
}
