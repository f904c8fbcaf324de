// Package faults runs boardd as it is, in processes of its own and on real stores, under
// clients and under faults, and has what the clients were told checked. What is done is
// made from a seed; when it is done is up to the machine, so that the same seed need not
// give the same history.
package faults

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// The stores.
const (
	Embedded  = "embedded"
	Redis     = "redis"
	ZooKeeper = "zookeeper"
	Postgres  = "postgres"

	// Redis behind three Sentinels, with two replicas; and three masters that share the keys.
	Sentinel = "redis-sentinel"
	Cluster  = "redis-cluster"

	// Standby is a PostgreSQL with a synchronous standby, which takes its place.
	Standby = "postgres-standby"

	// Fleet is servers that serve their boards together, on one Redis.
	Fleet = "fleet"

	// Moving is boards that move between stores: Redis, PostgreSQL or ZooKeeper in place of one
	// of them, and the embedded one where there is one server.
	Moving = "moving"
)

// driver returns the driver of a store.
func driver(store string) string {
	switch store {
	case Sentinel, Cluster, Fleet:
		return Redis
	case Standby:
		return Postgres
	}
	return store
}

// Schedule is what one run does.
type Schedule struct {
	Store   string
	Seed    uint64
	Servers int           // on one store
	Members int           // of a ZooKeeper ensemble
	Clients int           // at the same time
	Pause   time.Duration // of a client between two calls, on average
	Lease   time.Duration // the longest
	Limit   int           // of open jobs; 0: none
	Length  time.Duration // of load and faults
	Kinds   []string      // of faults, by the beginnings of their names; absent: all

	// Python says that one more client is in Python, and speaks JSON over HTTP.
	Python bool

	// Tenants says that another tenant works beside the first one, on a board of its own
	// and with a limit of its own.
	Tenants bool

	// Policies says that a policy of the first tenant's board is promoted, rolled back and
	// taken away meanwhile. Each client asks one server alone then, so that it is known
	// which one answered.
	Policies bool

	// Disk says that the disk of the embedded store is among what breaks.
	Disk bool

	// Stores are those between which boards move, the first one first; absent: none moves.
	Stores []string

	// TaskFlow says that real TaskFlow posts, claims, consumes and abandons on the store of
	// the first tenant's board, beside its servers. No limit binds it, so there is none.
	TaskFlow bool

	// Before is a folder with the programs of an earlier version, which every second server
	// runs, with its drivers; empty: all servers are of this version.
	Before string

	// PutBack says that the store is put back to an earlier state, and nothing else is
	// broken. What was acknowledged is lost then, and has to be reported.
	PutBack bool

	// Forgets says that replicas take a master's place which may lack what it had
	// acknowledged. What is lost has to be reported.
	Forgets bool
}

// loses reports whether what was acknowledged may be lost.
func (s *Schedule) loses() bool { return s.PutBack || s.Forgets }

// Make makes a schedule from a seed. Most have one sort of fault, so that it comes often;
// some have all, and some none: those must be good too.
func Make(store string, seed uint64) Schedule {
	random := rand.New(rand.NewPCG(seed, 0x5c4ed)) //nolint:gosec // a run that can be made again
	s := Schedule{
		Store: store, Seed: seed, Servers: 1, Members: 1,
		Clients: 4 + random.IntN(5),
		Pause:   time.Duration(10+random.IntN(40)) * time.Millisecond,
		Lease:   time.Duration(1+random.IntN(3)) * time.Second,
		Length:  time.Duration(4+random.IntN(4)) * time.Second,
	}
	if store != Embedded {
		s.Servers = 1 + random.IntN(3)
	}
	if store == Postgres {
		s.Servers = 1 + random.IntN(4)
	}
	if store == ZooKeeper && seed%5 == 4 {
		s.Members = 3
	}
	if random.IntN(4) == 0 {
		s.Limit = 5 + random.IntN(15)
	}
	kinds := [][]string{nil, nil, {"server"}, {"driver"}, {"client"}, {"none"}}
	if store != Embedded {
		kinds = append(kinds, []string{"store"}, []string{"store killed"}, []string{"store cut", "store deaf", "store mute"}, []string{"server", "driver"})
	}
	switch store {
	case Redis, Cluster:
		kinds = append(kinds, []string{"redis"})
	case Sentinel:
		kinds = append(kinds, []string{"sentinel"}, []string{"sentinel", "server", "driver"})
	case Postgres:
		kinds = append(kinds, []string{"postgres"}, []string{"postgres", "store"})
	case Standby:
		s.Length += 3 * time.Second // a standby takes a while to be made
		kinds = append(kinds, []string{"postgres"}, []string{"postgres"}, []string{"standby"}, []string{"postgres", "server", "driver"})
	}
	s.Kinds = kinds[random.IntN(len(kinds))]
	if seed%8 == 7 && s.Members == 1 && store == driver(store) {
		s.PutBack, s.Kinds = true, []string{"none"}
	}
	if store == Embedded && seed%5 == 4 && !s.PutBack {
		s.Disk, s.Kinds = true, [][]string{{"disk"}, {"disk", "server killed", "driver"}}[seed/5%2]
	}
	s.Forgets = store == Sentinel && mayStrike(s.Kinds, "store killed", "store stopped", "sentinel chooses")
	s.Python, s.Tenants = seed%2 == 1, seed%3 == 0 && !s.loses()
	s.Policies = seed%3 == 1 && !s.loses()
	switch store {
	case Moving:
		s.move(random)
	case Fleet:
		s.gather(random)
	}
	if s.Policies && slices.Contains(s.Kinds, "driver") {
		s.Kinds = append(s.Kinds, "policy")
	}
	if seed%7 == 6 && !s.PutBack && !s.Disk {
		s.lack()
	}
	return s
}

// lack makes it a schedule of processes that are there, and get too little to work: of the
// processors, of file descriptors, or of memory.
func (s *Schedule) lack() {
	s.Kinds, s.Forgets = nil, false // no driver beside its server has embedded boards
	for _, what := range []string{"server", "driver", "policy"} {
		if what == "server" || what == "driver" && s.Store != Embedded || what == "policy" && s.Policies {
			s.Kinds = append(s.Kinds, what+" slow", what+" without")
		}
	}
}

// move makes it a schedule of boards that move. Which stores they move between, how many servers
// there are and who works there is mixed in another way than elsewhere, so that all meet.
func (s *Schedule) move(random *rand.Rand) {
	s.PutBack, s.Forgets = false, false
	s.Servers = 1 + int(s.Seed%3)
	s.Tenants, s.Policies = s.Seed/3%3 == 0, s.Seed/3%3 == 1
	s.Stores = [][]string{{Redis, Postgres}, {ZooKeeper, Redis}, {Postgres, Redis}, {ZooKeeper, Postgres}}[s.Seed%4]
	if s.Servers == 1 { // whose folder no other server has
		s.Stores = append(s.Stores, Embedded)
	}
	s.Length += 4 * time.Second
	kinds := [][]string{nil, {"none"}, {"server"}, {"driver"}, {"store"}, {"server killed", "driver killed", "store killed"}, {"client"}}
	s.Kinds = kinds[random.IntN(len(kinds))]
}

// mayStrike reports whether one of some faults is among the kinds.
func mayStrike(kinds []string, names ...string) bool {
	return len(kinds) == 0 || slices.ContainsFunc(kinds, func(kind string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, kind) })
	})
}

// WithTaskFlow returns the schedule with real TaskFlow on the board's store, where that can be:
// on Redis and ZooKeeper.
func (s Schedule) WithTaskFlow() Schedule {
	if (s.Store == Redis || s.Store == ZooKeeper) && !s.PutBack {
		s.TaskFlow, s.Limit = true, 0
	}
	return s
}

// Beside returns the schedule with an earlier version's programs, see Before, on every second
// server.
func (s Schedule) Beside(before string) Schedule {
	s.Before, s.Servers = before, max(s.Servers, 2)
	return s
}
