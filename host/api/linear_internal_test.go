package api

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/check"
	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// linear works on a few jobs of a board with its own and with stale claims, through one of the
// servers of a fleet.
type linear struct {
	*history.Recorder
	name   string
	board  *client.Board
	random *rand.Rand
	claims map[string][]*client.Claim
}

// Each round has jobs of its own: what is consumed does not come back.
const linearJobs, linearRounds = 6, 20

func (l *linear) run(t *testing.T, round, steps int) {
	t.Helper()
	for range steps {
		time.Sleep(time.Duration(l.random.IntN(60)) * time.Millisecond)
		calls := []history.Call{
			history.Post, history.Claim, history.Claim, history.Get, history.Restore,
			history.Extend, history.Consume, history.Abandon, history.Abandon, history.Trash,
		}
		op := history.Op{
			Client: l.name, Job: job.ID{1, byte(round), byte(l.random.IntN(linearJobs))}.String(), Call: calls[l.random.IntN(len(calls))],
			Lease: time.Duration(1000+l.random.IntN(500)) * time.Millisecond,
		}
		var claim *client.Claim
		switch op.Call {
		case history.Extend, history.Consume, history.Abandon, history.Trash:
			known := l.claims[op.Job]
			if len(known) == 0 {
				continue
			}
			claim = known[len(known)-1]
			if l.random.IntN(4) == 0 {
				claim = known[l.random.IntN(len(known))]
			}
			op.Token = claim.GetToken()
		}
		from := l.Now()
		op.Outcome = history.Done
		err := l.call(t.Context(), claim, &op)
		if op.Kind = job.KindOf(err); op.Kind != job.NoKind {
			op.Outcome = history.Refused
		}
		if op.Kind == job.OutcomeUnknown || op.Kind == job.Interrupted {
			op.Outcome = history.Unknown
		}
		l.Add(from, op)
	}
}

// call makes the call of an op and puts the answer into it.
func (l *linear) call(ctx context.Context, claim *client.Claim, op *history.Op) (err error) {
	b := l.board
	switch op.Call {
	case history.Post:
		_, err = b.Post(ctx, &client.NewJob{Uuid: op.Job, Name: "n"})
	case history.Claim:
		var claims []*client.Claim
		if claims, err = b.Claim(ctx, client.ClaimOptions{Owner: l.name, UUIDs: []string{op.Job}, Lease: op.Lease}); len(claims) == 1 {
			op.Granted = claims[0].GetToken()
			l.claims[op.Job] = append(l.claims[op.Job], claims[0])
		}
	case history.Get:
		var jobs []*client.Job
		if jobs, err = b.Get(ctx, client.GetOptions{}, op.Job); err == nil {
			op.State = job.State(jobs[0].GetState())
		}
	case history.Restore:
		err = b.Restore(ctx, op.Job)
	case history.Extend:
		_, err = b.Extend(ctx, op.Lease, claim)
	case history.Consume:
		err = b.Consume(ctx, claim)
	case history.Abandon:
		err = b.Abandon(ctx, client.AbandonOptions{RetryAfter: new(time.Duration)}, claim)
	default:
		err = b.Trash(ctx, "", claim)
	}
	if failures, ok := errors.AsType[client.Failures](err); ok {
		return failures[0]
	}
	return err
}

// TestLinearizableFleet has clients of two servers work on a board that one of them has open, first
// while they reach each other, so that half of the calls are passed on, and then while they do not,
// so that both have it open: the calls on each job look as if they had come one after the other.
func TestLinearizableFleet(t *testing.T) {
	t.Parallel()
	servers := startFleet(t)
	board := servers[1].has(t, "default")
	recorder := history.NewRecorder("memory", 0)
	var clients []*linear
	for i := range uint64(6) {
		c, err := client.New(client.Config{Addr: servers[i%2].url, Token: secretOf("default"), StayAtAddr: true, RetryFor: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		clients = append(clients, &linear{
			Recorder: recorder, name: fmt.Sprint(i), board: c.Board(board), claims: map[string][]*client.Claim{},
			random: rand.New(rand.NewPCG(i, 1)), //nolint:gosec // a test that can be repeated
		})
	}
	work := func(round int) {
		var working sync.WaitGroup
		for _, l := range clients {
			working.Go(func() { l.run(t, round, 60) })
		}
		working.Wait()
	}
	work(0)
	if n := passedOnBy(t, servers[0]); n < 60 {
		t.Errorf("%v calls were passed on, want those of half of the clients", n)
	}
	for _, m := range servers {
		m.way.Sever(true)
	}
	work(1)
	h := recorder.History()
	for round := 2; round < linearRounds && len(notSeen(h)) > 0; round++ { // which calls meet is up to the machine
		work(round)
		h = recorder.History()
	}
	for _, p := range check.Linear(h) {
		t.Error(p)
	}
	if list := notSeen(h); len(list) > 0 {
		t.Errorf("the history has none of %q", list)
	}
}

// notSeen are the outcomes without which a history says little.
func notSeen(h *history.History) []string {
	list := []string{"claim OK", "consume OK", "abandon OK", "claim ALREADY_CLAIMED", "abandon LEASE_LOST"}
	for _, op := range h.Ops {
		list = slices.DeleteFunc(list, func(s string) bool { return s == string(op.Call)+" "+op.Kind.String() })
	}
	return list
}

// passedOnBy is how many calls a server has passed on.
func passedOnBy(t *testing.T, m *member) (n float64) {
	t.Helper()
	families, err := m.registry.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "boardd_calls_forwarded_total" {
			for _, c := range f.GetMetric() {
				n += c.GetCounter().GetValue()
			}
		}
	}
	return n
}
