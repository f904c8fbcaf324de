package board

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/check"
	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// linWorker works on a few jobs with its own and with stale claims.
type linWorker struct {
	*history.Recorder
	client int
	board  *Board
	random *rand.Rand
	tokens map[job.ID][]string
}

const linJobs = 10

// endings are the calls that Work does as well.
var endings = map[history.Call]How{history.Consume: ToConsume, history.Abandon: ToAbandon, history.Trash: ToTrash}

func (w *linWorker) run(t *testing.T, steps int) {
	t.Helper()
	for range steps {
		time.Sleep(time.Duration(w.random.IntN(400)) * time.Millisecond)
		id := job.ID{1, byte(w.random.IntN(linJobs))}
		calls := []history.Call{
			history.Post, history.Claim, history.Claim, history.Get, history.Restore,
			history.Extend, history.Consume, history.Abandon, history.Abandon, history.Trash,
		}
		op := history.Op{
			Client: fmt.Sprint(w.client), Job: id.String(), Call: calls[w.random.IntN(len(calls))],
			Lease: time.Duration(1000+w.random.IntN(1000)) * time.Millisecond,
		}
		switch op.Call {
		case history.Extend, history.Consume, history.Abandon, history.Trash:
			known := w.tokens[id]
			if len(known) == 0 {
				continue
			}
			op.Token = known[len(known)-1]
			if w.random.IntN(4) == 0 {
				op.Token = known[w.random.IntN(len(known))]
			}
			if op.Call == history.Consume && w.random.IntN(2) > 0 {
				op.Call = history.Abandon // so that jobs live for a while
			}
		}
		for range 1 + w.random.IntN(2) { // sometimes again
			from, op := w.Now(), op
			err := w.call(id, &op)
			if op.Kind = job.KindOf(err); op.Kind != job.NoKind {
				op.Outcome = history.Refused
			}
			if op.Kind == job.OutcomeUnknown || op.Kind == job.Interrupted {
				op.Outcome = history.Unknown
			}
			w.Add(from, op)
			if op.Granted != "" {
				w.tokens[id] = append(w.tokens[id], op.Granted)
				break
			}
		}
	}
}

// call makes the call of an op and puts the answer into it.
func (w *linWorker) call(id job.ID, op *history.Op) error {
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	b, refs, ids := w.board, []Ref{{ID: id, Token: op.Token}}, []job.ID{id}
	op.Outcome = history.Done
	if how, ok := endings[op.Call]; ok && w.random.IntN(2) == 0 {
		r, err := b.Work(ctx, WorkRequest{
			Claims:  ClaimRequest{Owner: op.Client},
			Endings: []WorkEnding{{Ref: refs[0], Ending: Ending{How: how, AbandonOptions: AbandonOptions{RetryAfter: new(time.Duration)}}}},
		})
		return one(r.Ended, err)
	}
	switch op.Call {
	case history.Post:
		r, err := b.Post(ctx, []job.Posting{{ID: id, Name: "n"}})
		if err == nil {
			err = r[0].Err
		}
		return err
	case history.Claim:
		r, err := b.Claim(ctx, ClaimRequest{Owner: op.Client, IDs: ids, Lease: op.Lease})
		switch {
		case err != nil && errors.Is(err, job.Unavailable):
			return job.OutcomeUnknown // a whole call says no more
		case err != nil:
			return err
		case len(r.Failures) > 0:
			return r.Failures[0].Err
		}
		op.Granted = b.FormatToken(id, r.Claims[0].Token)
		return nil
	case history.Get:
		r, err := b.Get(ctx, ids, GetOptions{})
		if err == nil {
			err = r[0].Err
		}
		if err == nil {
			op.State = r[0].Job.State
		}
		return err
	case history.Restore:
		return one(b.Restore(ctx, ids))
	case history.Extend:
		r, err := b.Extend(ctx, refs, op.Lease)
		if err == nil {
			err = r[0].Err
		}
		return err
	case history.Consume:
		return one(b.Consume(ctx, refs))
	case history.Abandon:
		return one(b.Abandon(ctx, refs, AbandonOptions{RetryAfter: new(time.Duration)}))
	}
	return one(b.Trash(ctx, refs, nil, ""))
}

type applyHook = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result

// faulty loses ops, answers and time.
func faulty(seed uint64) applyHook {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test that can be repeated
	dice := func() (int, time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(100), time.Duration(random.IntN(1000)) * time.Millisecond
	}
	fail := func(n int, kind job.Kind) []driver.Result {
		results := make([]driver.Result, n)
		for i := range results {
			results[i] = driver.Result{Kind: kind, Message: "a fault"}
		}
		return results
	}
	return func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
		roll, delay := dice()
		switch {
		case roll < 12:
			next(ctx, ops)
			return fail(len(ops), job.OutcomeUnknown)
		case roll < 18:
			return fail(len(ops), job.OutcomeUnknown)
		case roll < 24:
			return fail(len(ops), job.Unavailable)
		case roll < 30:
			if sleep.For(ctx, delay) != nil {
				return fail(len(ops), job.Interrupted)
			}
		}
		return next(ctx, ops)
	}
}

// runLinear makes a history on two hosts.
func runLinear(t *testing.T, seed uint64, hook applyHook) (h *history.History) {
	t.Helper()
	return runHosts(t, seed, 0, func(int) applyHook { return hook })
}

// runHosts is runLinear with a hook for each host, and with clients that begin so far
// apart.
func runHosts(t *testing.T, seed uint64, apart time.Duration, hook func(host int) applyHook) (h *history.History) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		recorder := history.NewRecorder("memory", seed)
		d := openStore(t)
		hosts := []*Board{
			start(t, &spy{Driver: d, t: t, apply: hook(0)}, Spec{}),
			start(t, &spy{Driver: d, t: t, apply: hook(1)}, Spec{}),
		}
		var group sync.WaitGroup
		for i := range 6 {
			w := &linWorker{
				Recorder: recorder, client: i, board: hosts[i%2], tokens: make(map[job.ID][]string),
				random: rand.New(rand.NewPCG(seed, uint64(i))), //nolint:gosec // a test that can be repeated
			}
			group.Go(func() {
				time.Sleep(time.Duration(i) * apart)
				w.run(t, 120)
			})
		}
		group.Wait()
		h = recorder.History()
	})
	return h
}

// Whatever is lost on the way, the calls on each job look as if they had come
// one after the other: one valid claim at a time, one consumption, no stale
// token accepted, no lease cut short.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	kinds := make(map[string]int)
	for seed := range uint64(6) {
		h := runLinear(t, seed, faulty(seed))
		for _, p := range check.Linear(h) {
			t.Errorf("seed %d: %v", seed, p)
		}
		for _, op := range h.Ops {
			kinds[string(op.Call)+" "+op.Kind.String()]++
		}
	}
	for _, want := range []string{
		"claim OK", "consume OK", "abandon OK", "trash OK", "extend OK", "restore OK",
		"consume LEASE_LOST", "abandon LEASE_LOST", "abandon NOT_FOUND", "claim ALREADY_CLAIMED", "claim OUTCOME_UNKNOWN",
	} {
		if kinds[want] == 0 {
			t.Errorf("no history has %q: %v", want, kinds)
		}
	}
}

// The check finds what it is there for.
func TestLinearizableFindsBugs(t *testing.T) {
	t.Parallel()
	change := func(edit func(op *driver.Op)) applyHook {
		return func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			for i := range ops {
				edit(&ops[i])
			}
			return next(ctx, ops)
		}
	}
	bugs := map[string]applyHook{
		"a stale token ends a claim": change(func(op *driver.Op) {
			if op.Precondition == driver.HeldByToken {
				op.Precondition, op.Token, op.Version = driver.Held, job.Token{}, 0
			}
		}),
		"claims expire early": change(func(op *driver.Op) {
			if op.Claim != nil {
				op.Claim.Lease = job.MinLease
			}
		}),
		"an acknowledged ending did not happen": func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			if ops[0].Kind == driver.Trash && len(ops) == 1 {
				return []driver.Result{{Position: 1}}
			}
			return next(ctx, ops)
		},
	}
	for name, bug := range bugs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(10) {
				if len(check.Linear(runLinear(t, seed, bug))) > 0 {
					return
				}
			}
			t.Fatal("ten histories with the bug passed")
		})
	}
}
