package board

import (
	"context"
	"fmt"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// Explain says why a job is not (yet) claimed, for a worker with these labels.
// The verdict is CLAIMABLE, CLAIMED, NOT_YET_DUE, HELD, BOARD_PAUSED,
// NOT_ELIGIBLE, POLICY_ERROR, COMPLETE or TRASHED.
func (b *Board) Explain(ctx context.Context, id job.ID, owner string, worker []job.Label) (Explanation, error) {
	if _, err := b.serving(ctx); err != nil {
		return Explanation{}, err
	}
	w, err := b.selectorOf(nil, "", worker)
	if err != nil {
		return Explanation{}, err
	}
	if err := checkText("owner", owner, job.MaxOwner); err != nil {
		return Explanation{}, err
	}
	results, _, err := b.get(ctx, []job.ID{id}, GetOptions{})
	if err != nil {
		return Explanation{}, err
	}
	if results[0].Err != nil {
		return Explanation{}, results[0].Err
	}
	x, e := b.explain(results[0].Job, owner)
	if e == nil {
		return x, nil
	}
	if a := w.rules.ordering; a != nil {
		w.scoreOwn(ctx, []*index.Entry{e}, []int{0})
		score := e.Score
		x.Score, x.Policy = &score, a.title()
	}
	if o, err := w.objection(ctx, e); err != nil {
		return Explanation{}, err
	} else if o != nil {
		x.Verdict, x.Reason, x.Policy = o.verdict, o.reason, o.policy
		return x, nil
	}
	if x.Verdict == "" && b.spec.Full != nil {
		if err := b.spec.Full(ctx); job.KindOf(err) == job.QuotaExceeded {
			x.Verdict, x.Reason = "QUOTA_EXCEEDED", job.MessageOf(err)
		}
	}
	if x.Verdict == "" {
		x.Verdict = "CLAIMABLE"
		x.Reason = w.inItsWords(ctx, e)
		if class, err := w.classOf(ctx); err == nil {
			if rank, ok := b.index.Rank(id, class); ok {
				x.Position = rank
			}
		}
		if w.rules.grouping != nil {
			w.explainPlace(ctx, id, &x)
		}
	}
	return x, nil
}

// inItsWords lets the policy that orders the board say how it came to a job's
// score, if it can.
func (w *selector) inItsWords(ctx context.Context, e *index.Entry) string {
	a := w.rules.ordering
	if a == nil || !a.manifest.Explains {
		return ""
	}
	explainer, ok := a.Policy.(policy.Explainer)
	if !ok {
		return ""
	}
	if err := w.board.need(ctx, w.rules.facts, []*index.Entry{e}, []int{0}); err != nil {
		return ""
	}
	batch := a.batch(w.rules.facts, w.worker, []*index.Entry{e}, []int{0})
	var text string
	err := a.evaluate(ctx, func() (err error) {
		text, err = explainer.Explain(ctx, batch)
		return err
	})
	if err != nil {
		return "the policy " + a.name() + " could not explain its score: " + err.Error()
	}
	return text
}

// explain gives the part that does not depend on the worker's labels. If that part
// decides, the entry is nil; else it is the one that the policies are to judge.
func (b *Board) explain(j *job.Job, owner string) (Explanation, *index.Entry) {
	x := Explanation{State: j.State, Position: -1}
	switch j.State {
	case job.Complete:
		x.Verdict, x.Reason = "COMPLETE", "the job has ended: "+j.Outcome.String()
		return x, nil
	case job.Trashed:
		x.Verdict, x.Reason = "TRASHED", j.LastReason
		return x, nil
	case job.Claimed:
		x.Verdict, x.Reason = "CLAIMED", "claimed by "+j.Owner
		if j.Owner == owner {
			x.Reason = "claimed by this worker"
		}
		if !j.LeaseExpiresAt.IsZero() {
			x.Reason += " until " + j.LeaseExpiresAt.Format(time.RFC3339)
		}
		return x, nil
	case job.Unknown, job.Unclaimed:
	}
	e, ok := b.index.Get(j.ID)
	if !ok {
		e = b.entryOf(&driver.Record{Posting: driver.Posting{ID: j.ID, Name: j.Name, Priority: j.Priority}}, time.Now())
	}
	paused, why := b.pause.look()
	switch {
	case paused:
		x.Verdict, x.Reason = "BOARD_PAUSED", pauseText(why)
	case j.Held:
		x.Verdict, x.Reason = "HELD", heldText(j.After)
	case j.NotBefore.After(time.Now()):
		x.Verdict, x.Reason = "NOT_YET_DUE", "not before "+j.NotBefore.UTC().Format(time.RFC3339Nano)
		if j.LastReason != "" {
			x.Reason += "; it was given back: " + j.LastReason
		}
	default:
		return x, e
	}
	return x, nil
}

// heldText says why a job is held.
func heldText(after []job.Prerequisite) string {
	switch len(after) {
	case 0:
		return "the job is held back until something else is done"
	case 1:
		return "the job waits for the end of job " + after[0].ID.String()
	}
	return fmt.Sprintf("the job waits for the end of %d jobs, the first of them %s", len(after), after[0].ID)
}
