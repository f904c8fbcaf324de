package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/internal/faults/check"
	"github.com/boardd/boardd/internal/faults/history"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// Rest waits, when nothing is broken any more and no client works, until the board is at
// rest: what nobody was told of is asked for again, and leases run out. Then it reads
// everything from every server, by name, empties the board as a lone client, and lets
// the watchers end. What does not come within the patience stays as it is, for the
// checkers to find; an error says that the servers cannot even be asked.
func (l *Load) Rest(ctx context.Context, servers map[string]*client.Client, watchers *Watchers, patience time.Duration) error {
	r := &resting{Load: l, recorder: l.Recorder, patience: patience, clients: servers, servers: map[string]*client.Board{}}
	for name, c := range servers {
		r.servers[name] = c.Board(l.Board)
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	r.settle(ctx)
	if err := r.calm(ctx); err != nil {
		return err
	}
	still := stale
	if r.deployer != nil {
		if err := r.deployed(ctx); err != nil {
			return err
		}
		still = reordered
	}
	if err := sleep.For(ctx, still); err != nil {
		return err
	}
	if err := r.readAll(ctx); err != nil {
		return err
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	return r.endWatch(ctx, watchers)
}

// stale is for how long a board at rest may still show what was: of the trash it tells a
// count that may be half a second old, and it goes through its jobs when a policy was promoted.
const stale = 700 * time.Millisecond

// reordered is for how long a board may be in the order of before when a policy came into force
// again whose process was killed meanwhile: it is asked once more after a second.
const reordered = stale + time.Second

type resting struct {
	*Load
	names    []string
	clients  map[string]*client.Client
	servers  map[string]*client.Board
	recorder *history.Recorder
	patience time.Duration
}

// over returns what reports whether the patience that begins now has ended: on a slow machine it
// lasts longer.
func (r *resting) over() func() bool {
	from := r.recorder.Now().At
	return func() (over bool) {
		now := r.recorder.Now().At
		r.recorder.Change(func(h *history.History) { over = now > from+h.Stretched(from, r.patience) })
		return over
	}
}

func (r *resting) first() *client.Board { return r.servers[r.names[0]] }

// settle asks again for every claim whose outcome is not known.
func (r *resting) settle(ctx context.Context) {
	over := r.over()
	for _, a := range r.pending {
		for !over() {
			a.Wait = 0
			if _, open := r.ask(ctx, a); !open {
				break
			}
			if sleep.For(ctx, 50*time.Millisecond) != nil {
				return
			}
		}
	}
}

// until asks again and again until something is so, or the patience is over. The last
// answer counts then; its error does, too.
func (r *resting) until(ctx context.Context, so func() (bool, error)) error {
	over := r.over()
	for {
		ok, err := so()
		if err == nil && ok || over() {
			return err
		}
		if err := sleep.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// calm waits until no claim is left, nothing is held back, and all servers count alike.
func (r *resting) calm(ctx context.Context) error {
	return r.until(ctx, func() (bool, error) {
		counted := map[string]bool{}
		for _, name := range r.names {
			c, err := r.servers[name].Count(ctx)
			if err != nil {
				return false, err
			}
			if c.GetClaimed() > 0 || c.GetDelayed() > 0 {
				return false, nil
			}
			counted[fmt.Sprint(c.GetUnclaimed(), c.GetTrashed(), c.GetComplete())] = true
		}
		return len(counted) == 1, nil
	})
}

// readAll reads each job by its name, and each server's lists and counts.
func (r *resting) readAll(ctx context.Context) error {
	for part := range slices.Chunk(r.Jobs(), 100) {
		if err := r.until(ctx, func() (bool, error) { return !r.look(ctx, "reader", r.first(), part, true), nil }); err != nil {
			return err
		}
	}
	for _, name := range r.names {
		for _, state := range []boarddv1.State_Enum{boarddv1.State_UNCLAIMED, boarddv1.State_CLAIMED, boarddv1.State_TRASHED} {
			if err := r.until(ctx, func() (bool, error) { return true, r.lists(ctx, name, r.servers[name], state, true) }); err != nil {
				return fmt.Errorf("the list of %s: %w", name, err)
			}
		}
		if err := r.until(ctx, func() (bool, error) {
			return true, r.counts(ctx, name, r.servers[name], true)
		}); err != nil {
			return fmt.Errorf("the counts of %s: %w", name, err)
		}
	}
	return nil
}

// drain claims and consumes one job after another, until there is none.
func (r *resting) drain(ctx context.Context) error {
	for n := 0; ; n++ {
		board := r.first()
		a := &asked{check.Drainer, r.names[0], board, client.ClaimOptions{
			Owner: fmt.Sprint(r.Prefix, "the drainer, call ", n), Lease: time.Minute, RequestID: client.NewUUID(), Max: 1,
			Labels: map[string]string{teamLabel: history.Everybody},
		}}
		var claims []*client.Claim
		if err := r.until(ctx, func() (bool, error) {
			var open bool
			claims, open = r.ask(ctx, a)
			return !open, nil
		}); err != nil {
			return err
		}
		if len(claims) == 0 {
			return nil
		}
		from := r.Recorder.Now()
		op := history.Op{Client: check.Drainer, Call: history.Consume, Board: r.Board, Job: claims[0].GetUuid(), Token: claims[0].GetToken()}
		answer(&op, board.Consume(ctx, claims...))
		r.Recorder.Add(from, op)
	}
}

// endWatch posts the last job, for the watchers to see. It is no part of the history.
func (r *resting) endWatch(ctx context.Context, watchers *Watchers) error {
	last := &client.NewJob{Uuid: client.NewUUID(), Name: "the last one"}
	watchers.Until(last.GetUuid())
	err := r.until(ctx, func() (bool, error) {
		_, err := r.first().Post(ctx, last)
		return err == nil, err
	})
	watchers.Wait(r.patience)
	r.Recorder.Change(func(h *history.History) {
		for i := range h.Watchers {
			h.Watchers[i].Events = slices.DeleteFunc(h.Watchers[i].Events, func(e history.Event) bool { return e.Job == last.GetUuid() })
		}
	})
	return err
}

// Totals counts the ops, relays and moves of a history by what came of them, for people.
func Totals(h *history.History) string {
	totals := map[string]int{}
	for _, op := range h.Ops {
		key := fmt.Sprint(op.Call, " ", op.Outcome)
		if op.Kind != job.NoKind {
			key = fmt.Sprint(op.Call, " ", op.Kind)
		}
		totals[key]++
	}
	for _, c := range h.Policies {
		totals[fmt.Sprint(c.Call, " ", c.Outcome)]++
	}
	for _, r := range h.Relays {
		if r.Got == history.Forever {
			totals["relay missed"]++
		} else {
			totals["relay got"]++
		}
	}
	for _, m := range h.Moves {
		totals["move "+m.State]++
	}
	var text []string
	for _, key := range slices.Sorted(maps.Keys(totals)) {
		text = append(text, fmt.Sprint(key, " ", totals[key]))
	}
	return strings.Join(text, ", ")
}
