package store

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A gate holds one command that is ready to be sent until it is opened. All others pass.
type gate struct {
	mu   sync.Mutex
	name string // of the command that it holds next
	held chan struct{}
	open chan struct{}
}

// hold has the gate hold the next command of that name.
func (g *gate) hold(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.name, g.held, g.open = name, make(chan struct{}), make(chan struct{})
}

func (g *gate) wait(cmd redis.Cmder) {
	g.mu.Lock()
	if g.name == "" || !strings.EqualFold(cmd.Name(), g.name) {
		g.mu.Unlock()
		return
	}
	g.name = ""
	held, open := g.held, g.open
	g.mu.Unlock()
	close(held)
	<-open
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		g.wait(cmd)
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A late host has prepared something for a server that goes back meanwhile.
type late struct {
	*testing.T

	server *testserver.Redis
	store  *Store
	gate   *gate
	status driver.BoardStatus
}

func newLate(t *testing.T) *late {
	t.Helper()
	return lateOn(t, testserver.StartRedis(t, testserver.RedisOptions{}))
}

// lateOn returns one more host on a server.
func lateOn(t *testing.T, server *testserver.Redis) *late {
	t.Helper()
	l := &late{T: t, server: server, gate: &gate{}}
	l.store = openStore(t, l.server.Addr)
	t.Cleanup(func() { _ = l.store.Close() })
	l.store.client.AddHook(l.gate)
	l.reopen()
	return l
}

func (l *late) reopen() {
	l.Helper()
	var err error
	if l.status, err = l.store.OpenBoard(l.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		l.Fatal(err)
	}
}

// post posts jobs with one call.
func (l *late) post(numbers ...int) []driver.Result {
	var ops []driver.Op
	for _, n := range numbers {
		op := posting(n, `{}`)
		op.Request = numbered(n)
		ops = append(ops, op)
	}
	return l.store.Apply(l.Context(), "b", ops)
}

func (l *late) must(results []driver.Result) {
	l.Helper()
	for _, r := range results {
		if r.Kind != job.NoKind {
			l.Fatal(r.Kind, r.Message)
		}
	}
}

func (l *late) save() {
	l.Helper()
	if answer := l.server.Command("SAVE"); answer != "+OK" {
		l.Fatal(answer)
	}
}

// goBack has the server forget what came after save, and the host meet it.
func (l *late) goBack() {
	l.Helper()
	l.server.Kill()
	l.server.Restart()
	if r := l.post(90)[0]; r.Kind != job.Unavailable {
		l.Errorf("the first op after a restart: %v %s, want UNAVAILABLE", r.Kind, r.Message)
	}
}

func (l *late) lost() {
	l.Helper()
	l.reopen()
	if l.status.Loss == "" || l.status.Generation != 2 {
		l.Errorf("opened after a rollback: generation %d, loss %q; want 2, and what was lost", l.status.Generation, l.status.Loss)
	}
}

// TestLateCall has a call that was prepared before a rollback reach the server after it, and
// make there as many changes as were lost.
func TestLateCall(t *testing.T) {
	t.Parallel()
	l := newLate(t)
	l.must(l.post(1))
	l.save()
	l.gate.hold("evalsha")
	answered := make(chan []driver.Result)
	go func() { answered <- l.post(2, 3, 4) }()
	<-l.gate.held
	l.must(l.post(5))
	l.must(l.post(6))
	l.goBack()
	close(l.gate.open)
	for _, r := range <-answered {
		if r.Kind != job.OutcomeUnknown {
			t.Errorf("an op that was carried out by another server than it was meant for: %v %s, want OUTCOME_UNKNOWN", r.Kind, r.Message)
		}
	}
	l.lost()
	l.must(l.post(2, 3, 4)) // as they were carried out
	counts, err := l.store.Count(t.Context(), "b")
	if err != nil || counts.Open != 4 {
		t.Errorf("%d jobs are open (%v), want 4", counts.Open, err)
	}
}

// TestLateCallBesideLook has a call that was prepared before a restart, in which nothing was
// lost, reach the server between another host's look at the board and its note of that.
func TestLateCallBesideLook(t *testing.T) {
	t.Parallel()
	l := newLate(t)
	l.must(l.post(1))
	other := lateOn(t, l.server)
	other.gate.hold("evalsha")
	answered, opened := make(chan []driver.Result), make(chan struct{})
	go func() { answered <- other.post(2) }()
	<-other.gate.held
	l.save()
	other.goBack()
	l.gate.hold("evalsha")
	go func() { defer close(opened); l.reopen() }()
	<-l.gate.held
	close(other.gate.open)
	if r := (<-answered)[0]; r.Kind != job.OutcomeUnknown {
		t.Errorf("an op that was carried out by another server than it was meant for: %v %s, want OUTCOME_UNKNOWN", r.Kind, r.Message)
	}
	close(l.gate.open)
	<-opened
	results := l.post(3)
	l.must(results)
	status, err := l.store.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Witness: l.status.Witness, Seen: results[0].Position})
	if err != nil || status.Loss != "" || status.Generation != 1 {
		t.Errorf("opened again on the same server: generation %d, loss %q (%v), want 1 and none", status.Generation, status.Loss, err)
	}
}

// TestLateLook has a watcher that began to look before a rollback see what another host has
// posted since in place of what was lost.
func TestLateLook(t *testing.T) {
	t.Parallel()
	l := newLate(t)
	l.must(l.post(1))
	l.save()
	var watching sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); watching.Wait() })
	told := make(chan driver.Changes)
	ended := make(chan error, 1)
	watching.Go(func() {
		for changes, err := range l.store.Watch(ctx, "b", 0) {
			if err != nil {
				ended <- err
				return
			}
			select {
			case told <- changes:
			case <-ctx.Done():
			}
		}
	})
	<-told // the watch has begun
	l.gate.hold("hmget")
	l.must(l.post(2))
	<-l.gate.held
	l.must(l.post(3))
	l.goBack()
	other := openStore(t, l.server.Addr)
	t.Cleanup(func() { _ = other.Close() })
	if _, err := other.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	for n := 10; n < 15; n++ {
		l.must(other.Apply(t.Context(), "b", []driver.Op{posting(n, `{}`)}))
	}
	close(l.gate.open)
	select {
	case changes := <-told:
		t.Errorf("a watch of before the rollback tells of %+v", changes.List)
	case err := <-ended:
		if job.KindOf(err) != job.Unavailable {
			t.Errorf("the watch ends with %v, want UNAVAILABLE", err)
		}
	}
	l.lost()
}
