package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// linInput is a call on one job, and linOutput what came of it. Times are those
// of the test's clock; the order of calls and returns is counted apart, since
// much happens in one instant of it.
type linInput struct {
	job       job.ID
	op        string
	token     string
	lease     time.Duration
	call, ret time.Duration
}

type linOutput struct {
	kind  job.Kind
	token string    // that a claim gave
	state job.State // that a get showed
}

// linState is what the model knows of a job. ends lists which claims ended in
// which way, so that a repeated ending is known.
type linState struct {
	phase    job.State // Unknown: never posted
	token    string    // of the claim; "?" if nobody was told
	earliest time.Duration
	ends     string
	doneBy   string
}

func (s linState) end(op, token string, phase job.State) linState {
	s.ends += op + ":" + token + ";"
	s.phase, s.token, s.earliest = phase, "", 0
	if phase == job.Complete {
		s.doneBy = token
	}
	return s
}

func (s linState) endedBy(op, token string) bool { return strings.Contains(s.ends, op+":"+token+";") }

var endings = map[string]job.State{"consume": job.Complete, "abandon": job.Unclaimed, "trash": job.Trashed}

// step returns the states that a call may leave behind, none if its answer was
// impossible. A lease may run out at any moment from its end on.
func step(s linState, in linInput, out linOutput) (next []any) {
	from := []linState{s}
	if s.phase == job.Claimed && in.ret >= s.earliest {
		expired := s
		expired.phase, expired.token, expired.earliest = job.Unclaimed, "", 0
		from = append(from, expired)
	}
	for _, s := range from {
		switch {
		case out.kind == job.OutcomeUnknown || out.kind == job.Interrupted:
			next = append(next, s)
			if t, ok := effect(s, in, "?"); ok {
				next = append(next, t)
			}
		case out.kind == job.Unavailable:
			next = append(next, s)
		case out.kind == job.NoKind && in.op == "get":
			if s.phase == out.state {
				next = append(next, s)
			}
		case out.kind == job.NoKind:
			if t, ok := effect(s, in, out.token); ok {
				next = append(next, t)
			}
		case refused(s, in, out.kind):
			next = append(next, s)
		}
	}
	return next
}

// effect returns the state after a call that was done, now or before.
func effect(s linState, in linInput, token string) (linState, bool) {
	held := s.phase == job.Claimed && s.token == in.token
	switch in.op {
	case "get":
		return s, true
	case "post":
		if s.phase == job.Unknown {
			s.phase = job.Unclaimed
		}
		return s, true
	case "claim":
		if s.phase != job.Unclaimed {
			return s, false
		}
		s.phase, s.token, s.earliest = job.Claimed, token, in.call+in.lease*99/100
		if token == "?" {
			s.earliest = 0 // it may be given back at once
		}
		return s, true
	case "extend":
		s.earliest = in.call + in.lease*99/100 // anew: it may be sooner than before
		return s, held
	case "restore":
		if s.phase != job.Trashed {
			return s, false
		}
		s.phase = job.Unclaimed
		return s, true
	}
	if s.endedBy(in.op, in.token) {
		return s, true
	}
	return s.end(in.op, in.token, endings[in.op]), held
}

// refused reports whether a call could be answered so.
func refused(s linState, in linInput, kind job.Kind) bool {
	gone := s.phase == job.Unknown || s.phase == job.Complete
	switch in.op {
	case "get":
		return kind == job.NotFound && s.phase == job.Unknown
	case "claim":
		return kind == job.AlreadyClaimed && s.phase == job.Claimed || kind == job.NotFound && gone || kind == job.NotEligible && s.phase == job.Trashed
	case "restore":
		return kind == job.AlreadyExists && (s.phase == job.Claimed || s.phase == job.Unclaimed) || kind == job.NotFound && gone
	case "post":
		return false
	}
	held := s.phase == job.Claimed && s.token == in.token
	done := s.phase == job.Complete && s.doneBy == in.token
	return kind == job.LeaseLost && !held && (!gone || done) && !s.endedBy(in.op, in.token) ||
		kind == job.NotFound && gone && !done
}

func linModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byJob := make(map[job.ID][]porcupine.Operation)
			for _, op := range history {
				id := op.Input.(linInput).job
				byJob[id] = append(byJob[id], op)
			}
			parts := make([][]porcupine.Operation, 0, len(byJob))
			for _, part := range byJob {
				parts = append(parts, part)
			}
			return parts
		},
		Init:              func() []any { return []any{linState{}} },
		Step:              func(state, in, out any) []any { return step(state.(linState), in.(linInput), out.(linOutput)) },
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
	}
	return m.ToModel()
}

// history collects what was called and answered.
type history struct {
	mu    sync.Mutex
	ops   []porcupine.Operation
	order atomic.Int64
	began time.Time
}

func (h *history) record(client int, in linInput, call func() linOutput) linOutput {
	at := h.order.Add(1)
	in.call = time.Since(h.began)
	out := call()
	in.ret = time.Since(h.began)
	end := h.order.Add(1)
	if out.kind == job.OutcomeUnknown || out.kind == job.Interrupted {
		end = 1 << 60 // it may take effect whenever it likes
		in.ret = 1 << 60
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: at, Output: out, Return: end})
	return out
}

// linWorker works on a few jobs with its own and with stale claims.
type linWorker struct {
	*history
	client int
	board  *Board
	random *rand.Rand
	tokens map[job.ID][]string
}

const linJobs = 10

func (w *linWorker) run(t *testing.T, steps int) {
	t.Helper()
	for range steps {
		time.Sleep(time.Duration(w.random.IntN(400)) * time.Millisecond)
		id := job.ID{1, byte(w.random.IntN(linJobs))}
		ops := []string{"post", "claim", "claim", "get", "restore", "extend", "consume", "abandon", "abandon", "trash"}
		in := linInput{job: id, op: ops[w.random.IntN(len(ops))], lease: time.Duration(1000+w.random.IntN(1000)) * time.Millisecond}
		switch in.op {
		case "extend", "consume", "abandon", "trash":
			known := w.tokens[id]
			if len(known) == 0 {
				continue
			}
			in.token = known[len(known)-1]
			if w.random.IntN(4) == 0 {
				in.token = known[w.random.IntN(len(known))]
			}
			if in.op == "consume" && w.random.IntN(2) > 0 {
				in.op = "abandon" // so that jobs live for a while
			}
		}
		for range 1 + w.random.IntN(2) { // sometimes again
			out := w.record(w.client, in, func() linOutput { return w.call(in) })
			if out.token != "" {
				w.tokens[id] = append(w.tokens[id], out.token)
				break
			}
		}
	}
}

func (w *linWorker) call(in linInput) linOutput {
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	b, refs, ids := w.board, []Ref{{ID: in.job, Token: in.token}}, []job.ID{in.job}
	zero := time.Duration(0)
	switch in.op {
	case "post":
		r, err := b.Post(ctx, []job.Posting{{ID: in.job, Name: "n"}})
		if err == nil {
			err = r[0].Err
		}
		return linOutput{kind: job.KindOf(err)}
	case "claim":
		r, err := b.Claim(ctx, ClaimRequest{Owner: fmt.Sprint(w.client), IDs: ids, Lease: in.lease})
		switch {
		case err != nil && errors.Is(err, job.Unavailable):
			return linOutput{kind: job.OutcomeUnknown} // a whole call says no more
		case err != nil:
			return linOutput{kind: job.KindOf(err)}
		case len(r.Failures) > 0:
			return linOutput{kind: job.KindOf(r.Failures[0].Err)}
		}
		return linOutput{token: b.FormatToken(in.job, r.Claims[0].Token)}
	case "get":
		r, err := b.Get(ctx, ids, GetOptions{})
		if err == nil {
			err = r[0].Err
		}
		if err != nil {
			return linOutput{kind: job.KindOf(err)}
		}
		return linOutput{state: r[0].Job.State}
	case "restore":
		return linOutput{kind: job.KindOf(one(b.Restore(ctx, ids)))}
	case "extend":
		r, err := b.Extend(ctx, refs, in.lease)
		if err == nil {
			err = r[0].Err
		}
		return linOutput{kind: job.KindOf(err)}
	case "consume":
		return linOutput{kind: job.KindOf(one(b.Consume(ctx, refs)))}
	case "abandon":
		return linOutput{kind: job.KindOf(one(b.Abandon(ctx, refs, AbandonOptions{RetryAfter: &zero})))}
	}
	return linOutput{kind: job.KindOf(one(b.Trash(ctx, refs, nil, "")))}
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

// runLinear makes a history on two hosts and reports whether the model allows
// it.
func runLinear(t *testing.T, seed uint64, hook applyHook) (result porcupine.CheckResult, h *history) {
	t.Helper()
	h = &history{}
	bubble(t, func(t *testing.T) {
		h.began = time.Now()
		d := openStore(t)
		hosts := []*Board{
			start(t, &spy{Driver: d, t: t, apply: hook}, Spec{}),
			start(t, &spy{Driver: d, t: t, apply: hook}, Spec{}),
		}
		var group sync.WaitGroup
		for i := range 6 {
			w := &linWorker{
				history: h, client: i, board: hosts[i%2], tokens: make(map[job.ID][]string),
				random: rand.New(rand.NewPCG(seed, uint64(i))), //nolint:gosec // a test that can be repeated
			}
			group.Go(func() { w.run(t, 120) })
		}
		group.Wait()
	})
	return porcupine.CheckOperationsTimeout(linModel(), h.ops, time.Minute), h
}

// logIllegal shows the calls on each job whose history is not allowed, up to the
// first one that cannot be.
func logIllegal(t *testing.T, ops []porcupine.Operation) {
	t.Helper()
	m := linModel()
	for _, part := range m.Partition(ops) {
		if porcupine.CheckOperations(m, part) {
			continue
		}
		slices.SortFunc(part, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		n := 1
		for n < len(part) && porcupine.CheckOperations(m, part[:n]) {
			n++
		}
		for _, op := range part[:n] {
			t.Logf("client %d, %d to %d: %s", op.ClientId, op.Call, op.Return, m.DescribeOperation(op.Input, op.Output))
		}
	}
}

// Whatever is lost on the way, the calls on each job look as if they had come
// one after the other: one valid claim at a time, one consumption, no stale
// token accepted, no lease cut short.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	kinds := make(map[string]int)
	for seed := range uint64(6) {
		result, h := runLinear(t, seed, faulty(seed))
		if result != porcupine.Ok {
			t.Errorf("seed %d: %v of %d calls", seed, result, len(h.ops))
			logIllegal(t, h.ops)
		}
		for _, op := range h.ops {
			kinds[op.Input.(linInput).op+" "+op.Output.(linOutput).kind.String()]++
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
				if result, _ := runLinear(t, seed, bug); result == porcupine.Illegal {
					return
				}
			}
			t.Fatal("ten histories with the bug passed")
		})
	}
}
