package workload

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/faults/history"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// together ends claims, each in its own way, and claims what comes first, in one call.
func (w *worker) together(ctx context.Context) {
	o := client.ClaimOptions{Owner: w.owner(), Max: w.random.Int32N(4), Lease: w.lease(), RequestID: w.uuid(), Labels: w.labels()}
	request := &client.WorkRequest{
		Owner: o.Owner, Max: o.Max, Lease: durationpb.New(o.Lease), RequestId: o.RequestID, WorkerLabels: o.Labels,
		Wait: durationpb.New(time.Duration(w.random.IntN(300)) * time.Millisecond),
	}
	var asked []history.Op
	for _, c := range w.take() {
		e := &client.WorkEnding{Uuid: c.GetUuid(), Token: c.GetToken(), How: boarddv1.How_CONSUME}
		op := history.Op{Client: w.name, Call: history.Consume, Board: w.Board, Retries: w.retries, Job: c.GetUuid(), Token: c.GetToken()}
		switch w.random.IntN(3) {
		case 0:
			e.How, e.RetryAfter, e.RefundAttempt = boarddv1.How_ABANDON, durationpb.New(0), w.random.IntN(2) == 0
			op.Call = history.Abandon
		case 1:
			e.How, op.Call = boarddv1.How_TRASH, history.Trash
		}
		request.Endings, asked = append(request.Endings, e), append(asked, op)
	}
	for range 1 + w.random.IntN(5)/4 { // sometimes again
		w.workOnce(ctx, request, asked, o)
	}
}

// workOnce makes the call and writes it down.
func (w *worker) workOnce(ctx context.Context, request *client.WorkRequest, asked []history.Op, o client.ClaimOptions) {
	from := w.Recorder.Now()
	worked, err := w.board.Work(ctx, request)
	var ops []history.Op
	for i, op := range asked {
		failed := err
		if err == nil {
			failed = worked.EndErrors[i]
		}
		answer(&op, failed)
		ops = append(ops, op)
		if op.Outcome == history.Unknown && len(w.mine) < 8 {
			w.mine = append(w.mine, &client.Claim{Uuid: op.Job, Token: op.Token}) // to be ended again, perhaps in another way
		}
	}
	if o.Max > 0 {
		ops = append(ops, w.claimsOf(worked, err, o)...)
	}
	w.Recorder.Add(from, ops...)
}

// claimsOf writes down what was claimed. If nobody knows what, it is asked for later: a
// request id means the same to both calls that claim.
func (w *worker) claimsOf(worked client.Worked, err error, o client.ClaimOptions) (ops []history.Op) {
	asOp := history.Op{
		Client: w.name, Call: history.Claim, Board: w.Board, Server: w.server, Owner: o.Owner, Request: o.RequestID, Lease: o.Lease, Best: true,
		Team: o.Labels[teamLabel],
	}
	if err == nil {
		for _, c := range worked.GetClaims() {
			op := asOp
			op.Outcome, op.Job, op.Granted, op.Given, op.Generation, op.Epoch = history.Done, c.GetUuid(), c.GetToken(), c.GetLease().AsDuration(), c.GetGeneration(), c.GetEpoch()
			ops = append(ops, op)
			w.given(c)
		}
		w.mine = append(w.mine, worked.GetClaims()...)
	}
	if len(ops) == 0 {
		op := asOp
		answer(&op, err)
		ops = append(ops, op)
		if op.Outcome == history.Unknown || op.Kind == job.Unavailable {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.pending = append(w.pending, &asked{w.name, w.server, w.board, o})
		}
	}
	return ops
}
