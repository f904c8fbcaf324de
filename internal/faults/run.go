package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/check"
	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/internal/faults/nemesis"
	"github.com/boardd/boardd/internal/faults/workload"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

const (
	secret = "not-very-secret-1234567890"
	board  = "default"

	// A board with schedules and batches, whose jobs nobody else touches.
	clockBoard = "clock"

	// A board that is changed all the while through every server.
	busyBoard = "busy"

	// Another tenant, with one board. Its limit is the tenant's, and not the board's.
	otherTenant = "acme"
	otherBoard  = "others"
	otherSecret = "not-very-secret-either-1234567890"
	otherLimit  = 12

	// python is Debian's own, which has Debian's TaskFlow.
	python = "/usr/bin/python3"

	// patience is how long a healed deployment may take for anything.
	patience = 30 * time.Second

	// sharePatience is how long a tenant with limits may be refused in a fleet: what a server that
	// was killed had of a limit on jobs the others may have a minute later.
	sharePatience = 90 * time.Second

	// busyWhile is how long a healed deployment is kept busy before it is looked whether
	// each server keeps up with the others.
	busyWhile = 2 * time.Second
)

// Run runs a schedule with the program and the drivers in a folder, see Programs. What
// the history breaks is an error of the test, and the history is kept then, in the
// folder keep or, without one, beside the system's temporary files.
func Run(t testing.TB, programs string, s Schedule, keep string) *history.History {
	t.Helper()
	recorder := history.NewRecorder(s.Store, s.Seed)
	unpaced := paced(t.Context(), recorder)
	told := receiver(t, s, recorder)
	d := deploy(t, programs, s, told)
	config := workload.Config{
		Recorder: recorder, Board: board, Seed: s.Seed, Clients: s.Clients, Pause: s.Pause, Lease: s.Lease, Limited: s.Limit > 0,
		Timeouts: s.Before == "" && !s.TaskFlow,
		Connect:  func(n int) (*client.Client, bool) { return d.connect(t, n, secret) },
	}
	if s.Policies {
		config.Server = func(n int) string { return serverName(n % s.Servers) }
	}
	load := workload.New(config)
	if s.Limit > 0 {
		recorder.Change(func(h *history.History) { h.OpenJobs = map[string]int{board: s.Limit} })
	}
	n := &nemesis.Nemesis{
		Deployment: &d.Deployment, Recorder: recorder, Kinds: s.Kinds,
		Random: rand.New(rand.NewPCG(s.Seed, 0xfa117)), //nolint:gosec // a run that can be made again
	}
	loads := []beside{{load, load.Watch(t.Context()), secret, patience}}
	clients := []func(context.Context){load.Run}
	if s.Python {
		clients = append(clients, d.python(t, load))
	}
	if s.TaskFlow {
		taskflow, err := load.StartTaskFlow(python, d.taskflow)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, func(ctx context.Context) {
			if err := taskflow.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	if s.Policies {
		clients = append(clients, d.policies(t, programs, load)...)
	}
	if s.Tenants {
		other := d.others(t, s, recorder)
		its := beside{other, other.Watch(t.Context()), otherSecret, patience}
		if s.Store == Fleet {
			its.patience = sharePatience
		}
		loads = append(loads, its)
		pryer, _ := d.connect(t, 0, otherSecret)
		clients = append(clients, other.Run, func(ctx context.Context) { load.Pry(ctx, pryer, otherBoard) })
	}
	sides := d.sides(t, s, recorder, told)
	for _, beside := range sides {
		clients = append(clients, beside.run)
	}
	d.under(t, clients, s.Length, func() {
		if s.PutBack {
			d.putBack(t, recorder, s)
		} else if err := n.Run(t.Context(), s.Length); err != nil {
			t.Fatal(err)
		}
	})
	n.Heal(func(what string, so func() bool) { testserver.Eventually(t, what, so) })
	for _, beside := range sides {
		if err := beside.rest(t.Context()); err != nil {
			t.Errorf("%s, seed %d: nothing is broken any more, and %s cannot be looked at: %v", s.Store, s.Seed, beside.name, err)
		}
	}
	for _, l := range loads {
		if err := l.load.Rest(t.Context(), d.each(t, l.token), l.watchers, l.patience); err != nil {
			t.Errorf("%s, seed %d: nothing is broken any more, and the board %s does not answer: %v", s.Store, s.Seed, l.load.Board, err)
		}
	}
	if s.loses() {
		lost := d.reported(t)
		recorder.Change(func(h *history.History) { h.PutBack, h.Reported = true, lost })
	}
	unpaced()
	h := recorder.History()
	report(t, d, h, keep)
	return h
}

// paced measures how fast the machine is, until ctx ends or the caller calls what it returns.
func paced(ctx context.Context, recorder *history.Recorder) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var measuring sync.WaitGroup
	measuring.Go(func() { pace(ctx, recorder) })
	return func() {
		cancel()
		measuring.Wait()
	}
}

// side is clients that work beside the load on a board of their own, and what they look at
// when nothing is broken any more.
type side struct {
	name string
	run  func(context.Context)
	rest func(context.Context) error
}

// sides are those of a schedule: where what was posted may be lost, or may be read by a program
// that knows nothing of what they use, there are none.
func (d *deployment) sides(t testing.TB, s Schedule, recorder *history.Recorder, told *workload.Receiver) (all []side) {
	t.Helper()
	if s.loses() || s.Before != "" {
		return nil
	}
	if s.Store == Moving {
		all = d.movers(t, s, recorder)
	} else if s.Servers > 1 {
		relays := workload.NewRelays(recorder, busyBoard, d.doors(t, secret), s.Seed)
		all = append(all, side{"what servers hear of each other", relays.Run, func(ctx context.Context) error { return relays.Rest(ctx, busyWhile) }})
	}
	reader := d.each(t, secret)[serverName(0)]
	still := reader.Board(clockBoard)
	clock := d.clock(t, recorder)
	all = append(all, side{"the schedules", clock.Run, func(ctx context.Context) error { return clock.Rest(ctx, still, patience) }})
	c := dial(t, client.Config{Addr: strings.Join(d.addrs, ","), Token: secret, CallTimeout: time.Second, RetryFor: -1})
	batches := workload.NewBatches(recorder, c.Board(clockBoard), s.Seed)
	all = append(all, side{"the batches", batches.Run, func(ctx context.Context) error { return batches.Rest(ctx, still, patience) }})
	if told != nil {
		hooks := d.webhooks(t, told, recorder, s)
		all = append(all, side{"what webhooks are told", hooks.Run, func(ctx context.Context) error { return hooks.Rest(ctx, reader.Board(deliveriesBoard), patience) }})
	}
	return all
}

// clock starts schedules.
func (d *deployment) clock(t testing.TB, recorder *history.Recorder) *workload.Clock {
	t.Helper()
	c := dial(t, client.Config{Addr: strings.Join(d.addrs, ","), Token: secret, CallTimeout: time.Second, RetryFor: -1})
	patient := dial(t, client.Config{Addr: d.addrs[0], Token: secret, CallTimeout: patience, RetryFor: -1})
	clock, err := workload.StartClock(t.Context(), recorder, patient.Board(clockBoard), c.Board(clockBoard))
	if err != nil {
		t.Fatal(err)
	}
	return clock
}

// python starts a client in Python.
func (d *deployment) python(t testing.TB, load *workload.Load) func(context.Context) {
	t.Helper()
	p := workload.Python{Program: python, Addrs: d.addrs, Token: secret}
	if d.alone {
		p.Addrs, p.Server = p.Addrs[:1], serverName(0)
	}
	run, err := load.StartPython(p)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) {
		if err := run(ctx); err != nil {
			t.Error(err)
		}
	}
}

// policies are those who change the policy of a load's board, and who ask each server for
// it.
func (d *deployment) policies(t testing.TB, programs string, load *workload.Load) (clients []func(context.Context)) {
	t.Helper()
	module, err := os.ReadFile(filepath.Join(programs, policyFile))
	if err != nil {
		t.Fatal(err)
	}
	servers := d.doors(t, secret)
	for _, s := range servers {
		clients = append(clients, func(ctx context.Context) { load.Probe(ctx, s) })
	}
	return append(clients, func(ctx context.Context) { load.Deploy(ctx, module, servers) })
}

// beside is one tenant's load.
type beside struct {
	load     *workload.Load
	watchers *workload.Watchers
	token    string
	patience time.Duration // when nothing is broken any more
}

// others is the load of another tenant. Its limit counts as that of its only board, and is
// exact where one server counts.
func (d *deployment) others(t testing.TB, s Schedule, recorder *history.Recorder) *workload.Load {
	t.Helper()
	if s.Servers == 1 {
		recorder.Change(func(h *history.History) {
			if h.OpenJobs == nil {
				h.OpenJobs = map[string]int{}
			}
			h.OpenJobs[otherBoard] = otherLimit
		})
	}
	return workload.New(workload.Config{
		Recorder: recorder, Board: otherBoard, Prefix: otherTenant + "'s ", Seed: s.Seed + 1<<40, Clients: 3, Pause: s.Pause, Lease: s.Lease, Limited: true, Timeouts: s.Before == "",
		Connect: func(n int) (*client.Client, bool) { return d.connect(t, n, otherSecret) },
	})
}

// report says what a history breaks, and keeps what is needed to find out why.
func report(t testing.TB, d *deployment, h *history.History, keep string) {
	t.Helper()
	problems := check.Run(h)
	for i, s := range d.Servers {
		for _, line := range crashes(s.Log()) {
			t.Errorf("%s, seed %d: %s or its driver has crashed: %s", h.Store, h.Seed, serverName(i), line)
		}
	}
	if len(problems) == 0 && !t.Failed() {
		return
	}
	folder, err := os.MkdirTemp(keep, fmt.Sprintf("faults-%s-%d-", h.Store, h.Seed)) //nolint:usetesting // it outlives the test
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Write(filepath.Join(folder, "history.json")); err != nil {
		t.Error(err)
	}
	for i, s := range d.Servers {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprint("server-", i, ".log")), []byte(s.Log()), 0o600); err != nil {
			t.Error(err)
		}
		if err := os.CopyFS(filepath.Join(folder, fmt.Sprint("data-", i)), os.DirFS(s.Data)); err != nil {
			t.Log(err) // a file that went away meanwhile
		}
	}
	for i, p := range problems {
		if i == 10 {
			t.Errorf("and %d more", len(problems)-i)
			break
		}
		t.Errorf("%s, seed %d: %v", h.Store, h.Seed, p)
	}
	t.Logf("%s, seed %d: the history, the logs and the data are in %s", h.Store, h.Seed, folder)
}
