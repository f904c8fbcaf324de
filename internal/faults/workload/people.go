package workload

import (
	"context"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

const (
	running = boarddv1.OperationStatus_RUNNING
	success = boarddv1.OperationStatus_SUCCESS
)

// byHand makes a call that needs no claim, on one or two of the last jobs.
func (w *worker) byHand(call history.Call, do func(ids ...string) error) {
	var jobs []*client.NewJob
	for _, k := range w.some(w.random, 1+w.random.IntN(2)) {
		jobs = append(jobs, k.posting)
	}
	if len(jobs) > 0 {
		w.byHandOn(call, do, jobs...)
	}
}

func (w *worker) byHandOn(call history.Call, do func(ids ...string) error, jobs ...*client.NewJob) {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.GetUuid()
	}
	from := w.Recorder.Now()
	err := do(ids...)
	ops := make([]history.Op, len(ids))
	for i, err := range client.Each(err, len(ids)) {
		ops[i] = history.Op{Client: w.name, Call: call, Board: w.Board, Job: ids[i], Steps: len(jobs[i].GetOperations()), Retries: w.retries}
		answer(&ops[i], err)
		ops[i].Taken = taken(err)
	}
	w.Recorder.Add(from, ops...)
}

func (w *worker) setAside(ctx context.Context) { w.byHand(history.SetAside, w.aside(ctx)) }

func (w *worker) aside(ctx context.Context) func(ids ...string) error {
	return func(ids ...string) error { return w.board.TrashUnclaimed(ctx, "by hand", ids...) }
}

func (w *worker) restore(ctx context.Context) {
	if !w.Limited {
		w.byHand(history.Restore, w.back(ctx))
	}
}

func (w *worker) back(ctx context.Context) func(ids ...string) error {
	return func(ids ...string) error { return w.board.Restore(ctx, ids...) }
}

// replace sets a job with a key aside, posts another one with its key, and thinks better of it.
func (w *worker) replace(ctx context.Context) {
	if w.Limited {
		return
	}
	jobs := []*client.NewJob{w.newJob(), w.newJob()}
	w.giveKey(jobs[0])
	jobs[1].Unique, jobs[1].MaxAttempts = jobs[0].GetUnique(), 0
	w.learn(jobs...)
	w.post(ctx, jobs[:1])
	w.byHandOn(history.SetAside, w.aside(ctx), jobs[0])
	w.post(ctx, jobs[1:])
	w.byHandOn(history.Restore, w.back(ctx), jobs[0])
}

func (w *worker) purge(ctx context.Context) {
	if !w.Limited {
		w.byHand(history.Purge, func(ids ...string) error { return w.board.Purge(ctx, ids...) })
	}
}

func (w *worker) release(ctx context.Context) {
	w.byHand(history.Release, func(ids ...string) error {
		return w.board.Release(ctx, client.ReleaseOptions{Reason: "by hand"}, ids...)
	})
}

// cancel ends jobs of which nothing has begun. Of others it is told in words that
// nothing was done.
func (w *worker) cancel(ctx context.Context) {
	w.byHand(history.Cancel, func(ids ...string) error {
		changes, err := w.board.Cancel(ctx, false, ids...)
		all := client.Each(err, len(ids))
		failures := make(client.Failures, len(ids))
		for i := range ids {
			if failures[i] = all[i]; all[i] == nil && i < len(changes) && !changes[i].Changed {
				id, _ := job.ParseID(ids[i]) // the load made it
				failures[i] = &job.Error{Op: "cancel", Job: id, Kind: job.Precondition, Message: changes[i].Message}
			}
		}
		return failures
	})
}

func (w *worker) register(ctx context.Context) {
	_, _ = w.board.RegisterEntity(ctx, &client.Entity{Kind: "worker", Name: w.name}, time.Second) // what comes of it is not judged
}

func (w *worker) get(ctx context.Context) {
	var ids []string
	for _, k := range w.some(w.random, 1+w.random.IntN(2)) {
		ids = append(ids, k.posting.GetUuid())
	}
	if len(ids) > 0 {
		w.look(ctx, w.name, w.board, ids, false)
	}
}

// look reads jobs and writes down what they show.
func (l *Load) look(ctx context.Context, who string, board *client.Board, ids []string, final bool) (failed bool) {
	from := l.Recorder.Now()
	jobs, err := board.Get(ctx, client.GetOptions{}, ids...)
	ops := make([]history.Op, len(ids))
	for i, err := range client.Each(err, len(ids)) {
		ops[i] = history.Op{Client: who, Call: history.Get, Board: l.Board, Job: ids[i], Final: final}
		answer(&ops[i], err)
		failed = failed || ops[i].Outcome == history.Unknown || ops[i].Kind == job.Unavailable
		if err == nil && i < len(jobs) {
			show(&ops[i], jobs[i])
		}
	}
	l.Recorder.Add(from, ops...)
	return failed
}

func show(op *history.Op, j *client.Job) {
	op.State, op.Holder, op.Sequence = job.State(j.GetState()), j.GetOwner(), j.GetSequence()
	if op.State != job.Claimed {
		op.Holder = ""
	}
	if op.State != job.Complete {
		op.Shown = short(j.GetName(), j.GetDetails())
	}
	for _, a := range j.GetAttempts() {
		if a.GetOwner() != "" {
			op.Owners = append(op.Owners, a.GetOwner())
			if a.GetReason() == "timeout" {
				op.TimedOut = append(op.TimedOut, a.GetOwner())
			}
		}
	}
}

func (w *worker) list(ctx context.Context) {
	_ = w.lists(ctx, w.name, w.board, boarddv1.State_UNCLAIMED, false) // what it did not get is not judged
}

// lists reads all jobs of a state and writes the list down.
func (l *Load) lists(ctx context.Context, who string, board *client.Board, state boarddv1.State_Enum, final bool) error {
	from := l.Recorder.Now()
	list := history.List{Server: who, Board: l.Board, State: job.State(state), Final: final, Jobs: []history.Listed{}}
	for j, err := range board.List(ctx, client.ListOptions{States: []boarddv1.State_Enum{state}}) {
		if err != nil {
			return err
		}
		list.Jobs = append(list.Jobs, history.Listed{Job: j.GetUuid(), Priority: int32(j.GetPriority()), Sequence: j.GetSequence(), Created: j.GetCreatedAt().AsTime().UnixMicro(), Holder: j.GetOwner()})
	}
	l.Recorder.AddList(from, list)
	return nil
}

func (w *worker) count(ctx context.Context) {
	_ = w.counts(ctx, w.name, w.board, false) // likewise
}

// counts asks how many jobs there are and writes it down.
func (l *Load) counts(ctx context.Context, who string, board *client.Board, final bool) error {
	from := l.Recorder.Now()
	c, err := board.Count(ctx)
	if err != nil {
		return err
	}
	l.Recorder.AddCount(from, history.Count{
		Server: who, Board: l.Board, Final: final,
		Unclaimed: c.GetUnclaimed(), Claimed: c.GetClaimed(), Trashed: c.GetTrashed(), Complete: c.GetComplete(),
	})
	return nil
}
