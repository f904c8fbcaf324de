package workload

import (
	"context"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// asked is a call for claims that can be made again.
type asked struct {
	client string
	server string // that is asked; empty: not known which
	board  *client.Board
	client.ClaimOptions
}

// claimBest claims what comes first. Sometimes it waits for that, and sometimes it goes
// before there is an answer.
func (w *worker) claimBest(ctx context.Context) {
	o := client.ClaimOptions{Owner: w.owner(), Max: 1 + w.random.Int32N(3), Lease: w.lease(), RequestID: w.uuid(), Labels: w.labels()}
	if w.random.IntN(4) == 0 {
		o.Wait = time.Duration(w.random.IntN(500)) * time.Millisecond
	}
	if w.random.IntN(20) == 0 {
		short, cancel := context.WithTimeout(ctx, time.Duration(w.random.IntN(20))*time.Millisecond)
		defer cancel()
		ctx = short
	}
	w.claim(ctx, &asked{w.name, w.server, w.board, o})
}

// claimChosen claims jobs by their names.
func (w *worker) claimChosen(ctx context.Context) {
	o := client.ClaimOptions{Owner: w.owner(), Lease: w.lease(), RequestID: w.uuid(), Labels: w.labels()}
	for _, k := range w.some(w.random, 1+w.random.IntN(2)) {
		o.UUIDs = append(o.UUIDs, k.posting.GetUuid())
	}
	if len(o.UUIDs) > 0 {
		w.claim(ctx, &asked{w.name, w.server, w.board, o})
	}
}

// claim makes a call for claims, sometimes twice. If nobody knows what came of it, it is
// made again later.
func (w *worker) claim(ctx context.Context, a *asked) {
	claims, open := w.ask(ctx, a)
	if w.random.IntN(5) == 0 {
		w.ask(ctx, a)
	}
	w.mine = append(w.mine, claims...)
	if open {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pending = append(w.pending, a)
	}
}

// repeatClaim asks again for what nobody was told.
func (w *worker) repeatClaim(ctx context.Context) {
	w.mu.Lock()
	var a *asked
	if n := len(w.pending); n > 0 {
		i := w.random.IntN(n)
		a = w.pending[i]
		w.pending[i] = w.pending[n-1]
		w.pending = w.pending[:n-1]
	}
	w.mu.Unlock()
	if a == nil {
		return
	}
	claims, open := w.ask(ctx, a)
	w.mine = append(w.mine, claims...)
	if open {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pending = append(w.pending, a)
	}
}

// ask makes a call for claims once and writes it down. open says that its outcome is
// not known.
func (l *Load) ask(ctx context.Context, a *asked) (claims []*client.Claim, open bool) {
	from := l.Recorder.Now()
	claims, err := a.board.Claim(ctx, a.ClaimOptions)
	asOp := func(id string) history.Op {
		return history.Op{
			Client: a.client, Call: history.Claim, Board: l.Board, Server: a.server, Job: id, Owner: a.Owner, Request: a.RequestID,
			Lease: a.Lease, Best: len(a.UUIDs) == 0, Team: a.Labels[teamLabel],
		}
	}
	var ops []history.Op
	got := map[string]bool{}
	for _, c := range claims {
		op := asOp(c.GetUuid())
		op.Outcome, op.Granted, op.Given, op.Generation, op.Epoch = history.Done, c.GetToken(), c.GetLease().AsDuration(), c.GetGeneration(), c.GetEpoch()
		ops = append(ops, op)
		got[c.GetUuid()] = true
		l.given(c)
	}
	for i, err := range client.Each(err, len(a.UUIDs)) {
		if err != nil && !got[a.UUIDs[i]] {
			op := asOp(a.UUIDs[i])
			answer(&op, err)
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 { // none of the best
		op := asOp("")
		answer(&op, err)
		ops = append(ops, op)
	}
	for _, op := range ops {
		open = open || op.Outcome == history.Unknown || op.Kind == job.Unavailable
	}
	l.Recorder.Add(from, ops...)
	return claims, open
}
