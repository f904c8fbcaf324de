// Package nemesis breaks a deployment of boardd on purpose and mends it again:
// processes, the connections between them, and stores. What it breaks and for how long
// is chosen by a seed.
package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/sleep"
)

// Deployment is what can be broken. Its methods are called from the goroutine of a test.
type Deployment struct {
	Servers []*testserver.Server
	Doors   []*testserver.Proxy // before each server
	Ways    []*testserver.Proxy // before each server for the others of its fleet; none: they know nothing of each other
	Links   []*testserver.Proxy // before each process of the store; none before a store that is a folder
	Store   []Process           // none for a store that is a folder
	Redis   []*testserver.Redis // that can be told to fail; none: the store is another one

	Sentinels *testserver.Sentinels // nil: the store has none
	Asked     []*testserver.Proxy   // before each Sentinel
	Masters   []*testserver.Proxy   // before each server that Sentinels may choose
	Postgres  *testserver.Postgres  // nil: the store is another one

	// Pair is a PostgreSQL and its standby; nil: the store is another one.
	Pair *testserver.PostgresPair

	// Policies says that a server's policies run in processes of their own.
	Policies bool

	// Points is the folder in which the servers' failpoints are armed; empty: they have none.
	Points string
}

// Process is a process of a store.
type Process interface {
	Kill()    // with SIGKILL
	Restart() // after Kill; it returns when the process serves
	Pause()   // with SIGSTOP
	Resume()
}

// Fault is something that breaks, and how it is mended.
type Fault struct {
	Name  string
	On    any // what breaks; two faults of one thing do not come at once
	Begin func()
	End   func()
}

// Faults returns what can be done to a deployment.
func Faults(d *Deployment, random *rand.Rand) []Fault {
	var all []Fault
	for i, s := range d.Servers {
		all = append(all, serverFaults(s, d.near(i), random)...)
		all = append(all, childFaults("driver", s, s.Drivers, slices.Concat(d.Links, d.Masters), random)...)
		if d.Policies {
			all = append(all, childFaults("policy", s, s.Policies, nil, random)...)
		}
		all = append(all, networkFaults("client", d.Doors[i], random)...)
	}
	for _, p := range d.Ways {
		all = append(all, networkFaults("peer", p, random)...)
	}
	for _, p := range d.Store {
		all = append(all,
			Fault{"store killed", p, p.Kill, p.Restart},
			Fault{"store stopped", p, p.Pause, p.Resume})
	}
	for _, p := range d.Links {
		all = append(all, networkFaults("store", p, random)...)
	}
	for _, r := range d.Redis {
		all = append(all, redisFaults(r)...)
	}
	if d.Sentinels != nil {
		all = append(all, sentinelFaults(d.Sentinels)...)
		all = append(all, masterFaults(d.Sentinels, d.Masters, random)...)
	}
	for _, p := range d.Asked {
		all = append(all, networkFaults("sentinel", p, random)...)
	}
	if d.Postgres != nil {
		all = append(all, postgresFaults(d.Postgres, random)...)
	}
	if d.Pair != nil {
		all = append(all, pairFaults(d.Pair)...)
	}
	if d.Points != "" {
		all = append(all, diskFaults(d.Points)...)
	}
	return all
}

// near are the proxies before a server.
func (d *Deployment) near(server int) []*testserver.Proxy {
	if len(d.Ways) == 0 {
		return d.Doors[server : server+1]
	}
	return []*testserver.Proxy{d.Doors[server], d.Ways[server]}
}

// networkFaults are those of the connections through a proxy. Connections that have lost
// bytes are of no use afterwards, so they are cut.
func networkFaults(side string, p *testserver.Proxy, random *rand.Rand) []Fault {
	reset := func() { p.Sever(false) }
	return []Fault{
		{side + " cut", p, func() { p.Sever(true) }, reset},
		{side + " reset", p, reset, func() {}},
		{side + " deaf", p, func() { p.SetDeaf(true) }, func() { p.SetDeaf(false); reset() }},
		{side + " mute", p, func() { p.SetMute(true) }, func() { p.SetMute(false); reset() }},
		{side + " slow", p, func() { p.SetDelay(time.Duration(20+random.IntN(300)) * time.Millisecond) }, func() { p.SetDelay(0) }},
	}
}

// redisFaults are those that Redis itself can be told to have. It may be away when it is
// told.
func redisFaults(r *testserver.Redis) []Fault {
	tell := func(words ...string) func() { return func() { r.Tell(words...) } }
	return []Fault{
		{"redis full", r, tell("CONFIG", "SET", "maxmemory", "1"), tell("CONFIG", "SET", "maxmemory", "0")},
		{"redis read-only", r, tell("CONFIG", "SET", "min-replicas-to-write", "1"), tell("CONFIG", "SET", "min-replicas-to-write", "0")},
		{"redis closes connections", r, tell("CLIENT", "KILL", "TYPE", "normal"), func() {}},
		{"redis holds writes", r, tell("CLIENT", "PAUSE", "700", "WRITE"), func() {}},
	}
}

// sentinelFaults are those of a master that Sentinels watch.
func sentinelFaults(s *testserver.Sentinels) []Fault {
	var away []*testserver.Redis
	gone := func() {
		if m := s.Master(); m != nil {
			away = []*testserver.Redis{m}
			m.Kill()
		}
	}
	back := func() {
		for _, r := range away {
			r.Restart()
		}
		away = nil
	}
	return []Fault{
		{"sentinel chooses another master", s, s.Failover, func() {}},
		{"sentinel finds the master dead", s, func() {
			gone()
			s.AwaitMaster()
		}, back},
		{"sentinels' master closes connections", s, func() {
			if m := s.Master(); m != nil {
				m.Tell("CLIENT", "KILL", "TYPE", "normal")
			}
		}, func() {}},
	}
}

// masterFaults are those of the connections to whichever server is the master when they begin; while
// there is none, of those to the first one.
func masterFaults(s *testserver.Sentinels, links []*testserver.Proxy, random *rand.Rand) (all []Fault) {
	of := make([][]Fault, len(links))
	for i, p := range links {
		of[i] = networkFaults("store", p, random)
	}
	for kind, f := range of[0] {
		struck := 0
		all = append(all, Fault{f.Name, links[0], func() {
			struck = max(0, slices.Index(s.Servers, s.Master()))
			of[struck][kind].Begin()
		}, func() { of[struck][kind].End() }})
	}
	return all
}

// postgresFaults are those that PostgreSQL itself can be told to have, and the death of one
// of its processes: then it ends all sessions, and recovers without being started again.
func postgresFaults(p *testserver.Postgres, random *rand.Rand) []Fault {
	tell := func(statements ...string) func() {
		return func() { _ = p.Tell(statements...) } // it may be away
	}
	others := "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
	readOnly := []string{"ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"}
	writable := []string{"ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"}
	var held chan struct{}
	hold := func() {
		text := fmt.Sprintf("BEGIN; SELECT FROM boardd.boards FOR UPDATE; SELECT pg_sleep(%.1f)", 0.2+random.Float64())
		held = make(chan struct{})
		go func() {
			defer close(held)
			_ = p.Tell(text) // its session may be ended
		}()
	}
	return []Fault{
		{"postgres ends sessions", p.Addr, tell("SELECT pg_terminate_backend(pid) " + others), func() {}},
		{"postgres ends a session", p.Addr, tell("SELECT pg_terminate_backend(pid) " + others + " ORDER BY random() LIMIT 1"), func() {}},
		{"postgres cancels", p.Addr, tell("SELECT pg_cancel_backend(pid) " + others), func() {}},
		{"postgres crashes", p.Addr, func() { p.Crash(random.IntN) }, func() {}},
		{"postgres holds boards", p.Addr, hold, func() { <-held }},
		{"postgres read-only", p.Addr, tell(readOnly...), func() {
			for range 50 { // it may be recovering
				if p.Tell(writable...) == nil {
					return
				}
				time.Sleep(100 * time.Millisecond) // nobody tells when it has
			}
		}},
	}
}

// pairFaults are those of a PostgreSQL and its standby, of which the roles change meanwhile. Without
// the standby nothing is acknowledged.
func pairFaults(p *testserver.PostgresPair) []Fault {
	var struck *testserver.Postgres
	on := func(which func() *testserver.Postgres, do func(*testserver.Postgres)) func() {
		return func() {
			struck = which()
			do(struck)
		}
	}
	restart, resume := func() { struck.Restart(); p.CatchUp() }, func() { struck.Resume(); p.CatchUp() }
	return []Fault{
		{"store killed", p, on(p.Primary, (*testserver.Postgres).Kill), restart},
		{"store stopped", p, on(p.Primary, (*testserver.Postgres).Pause), resume},
		{"standby killed", p, on(p.Standby, (*testserver.Postgres).Kill), restart},
		{"standby stopped", p, on(p.Standby, (*testserver.Postgres).Pause), resume},
		{"postgres fails over", p, p.FailOver, p.Rejoin},
	}
}

// Nemesis breaks things.
type Nemesis struct {
	Deployment *Deployment
	Recorder   *history.Recorder
	Random     *rand.Rand

	// Kinds are the beginnings of the names of the faults that are chosen from; absent:
	// all.
	Kinds []string
}

// Run breaks one thing after another, and sometimes two at once, until the time is over.
// Everything is mended then.
func (n *Nemesis) Run(ctx context.Context, length time.Duration) error {
	ends := time.Now().Add(length)
	faults, err := n.chosen()
	if err != nil {
		return err
	}
	if len(faults) == 0 {
		return sleep.For(ctx, length)
	}
	for time.Now().Before(ends) {
		if err := sleep.For(ctx, n.between(100, 600)); err != nil {
			return err
		}
		if err := n.strike(ctx, faults); err != nil {
			return err
		}
	}
	return nil
}

// None is the kind of no fault: nothing breaks.
const None = "none"

// chosen are the faults of the kinds. A kind of which there is none is an error, for a schedule
// that breaks nothing would pass.
func (n *Nemesis) chosen() ([]Fault, error) {
	all := Faults(n.Deployment, n.Random)
	if len(n.Kinds) == 0 {
		return all, nil
	}
	for _, kind := range n.Kinds {
		if kind != None && !slices.ContainsFunc(all, func(f Fault) bool { return strings.HasPrefix(f.Name, kind) }) {
			return nil, fmt.Errorf("no fault of this deployment is a %q: want a kind of fault that there is, or %q", kind, None)
		}
	}
	return slices.DeleteFunc(all, func(f Fault) bool {
		return !slices.ContainsFunc(n.Kinds, func(kind string) bool { return strings.HasPrefix(f.Name, kind) })
	}), nil
}

func (n *Nemesis) between(least, most int) time.Duration {
	return time.Duration(least+n.Random.IntN(most-least)) * time.Millisecond
}

// strike breaks one or two things for a while. What a store is told to do comes
// first and is taken back last: one that stands still hears nothing.
func (n *Nemesis) strike(ctx context.Context, faults []Fault) error {
	chosen := []Fault{faults[n.Random.IntN(len(faults))]}
	if n.Random.IntN(3) == 0 {
		if other := faults[n.Random.IntN(len(faults))]; other.On != chosen[0].On {
			chosen = append(chosen, other)
		}
	}
	slices.SortStableFunc(chosen, func(a, b Fault) int { return told(a) - told(b) })
	from := n.Recorder.Now()
	for _, f := range chosen {
		f.Begin()
	}
	err := sleep.For(ctx, n.between(200, 1800))
	for _, f := range slices.Backward(chosen) {
		f.End()
		n.Recorder.AddFault(from, f.Name)
	}
	if err == nil {
		err = n.ended(chosen)
	}
	return err
}

// ended reports a server that does not run although everything is mended: whatever ends a server
// starts it again.
func (n *Nemesis) ended(broken []Fault) error {
	for i, s := range n.Deployment.Servers {
		if s.Running() {
			continue
		}
		var names []string
		for _, f := range broken {
			names = append(names, f.Name)
		}
		return fmt.Errorf("server %d has ended by itself, after: %s; it printed at last:\n%s", i, strings.Join(names, ", "), lastLines(s.Log()))
	}
	return nil
}

func lastLines(log string) string { return log[max(0, len(log)-2000):] }

func told(f Fault) int {
	if strings.HasPrefix(f.Name, "redis") || strings.HasPrefix(f.Name, "sentinel") || strings.HasPrefix(f.Name, "postgres") {
		return 0
	}
	return 1
}

// Heal waits until everything serves again.
func (n *Nemesis) Heal(ready func(what string, so func() bool)) {
	for _, s := range n.Deployment.Servers {
		if !s.Running() {
			s.Launch()
		}
		ready("the server is ready", s.Ready)
	}
}
