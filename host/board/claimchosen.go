package board

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// chosen claims the jobs that the call named, and says why for each that it could not
// claim.
func (c *claimer) chosen(ctx context.Context, ids []job.ID) (ClaimResponse, error) {
	c.most, c.begins = len(ids), len(ids)
	if err := c.refresh(ctx, ids); err != nil {
		return ClaimResponse{}, err
	}
	errs := make([]error, len(ids))
	var failed error
	err := c.board.rounds(ctx, ids, func(items []int) []*index.Entry {
		for len(items) > 0 && failed == nil && context.Cause(ctx) == nil {
			n := c.atMost(len(items))
			if c.ended || n == 0 {
				break
			}
			part := items[:n]
			for try := 0; len(part) > 0 && try < tries && failed == nil && !c.ended; try++ {
				part, failed = c.choose(ctx, ids, errs, part)
			}
			items = items[n:]
		}
		c.leave(ctx, ids, errs, items, failed)
		return nil
	})
	if err == nil {
		err = failed
	}
	if cause := context.Cause(ctx); cause != nil {
		c.giveBack(ctx)
		return ClaimResponse{}, &job.Error{Op: "claim", Kind: job.Interrupted, Err: cause}
	}
	if err != nil && len(c.claims) == 0 {
		return ClaimResponse{}, err
	}
	response := c.response()
	for i, id := range ids {
		if errs[i] != nil && !(c.ended && slices.ContainsFunc(c.claims, func(c job.Claim) bool { return c.ID == id })) {
			response.Failures = append(response.Failures, ClaimFailure{ID: id, Err: errs[i]})
		}
	}
	return response, nil
}

// atMost returns how many of n jobs that the call named are claimed in one step: as many as the
// store takes, and as will fit into the answer.
func (c *claimer) atMost(n int) int {
	n = min(n, c.allowance())
	if most := c.opened.Capabilities.MaxCandidates; most > 0 {
		n = min(n, most)
	}
	return n
}

// leave says of jobs that the call named and did not come to why it did not claim them.
func (c *claimer) leave(ctx context.Context, ids []job.ID, errs []error, items []int, failed error) {
	why := job.Error{Kind: job.QuotaExceeded, Message: "the answer has as many bytes as it may: nothing was claimed; name the job in another call"}
	switch {
	case failed != nil || context.Cause(ctx) != nil:
		why = job.Error{Kind: job.Unavailable, Message: "the call ended before it came to this job: nothing was claimed"}
	case c.ended:
		why = hasAnswer
	}
	for _, i := range items {
		if why.Kind != job.Unavailable {
			_, errs[i] = c.eligible(ctx, ids[i])
		}
		if errs[i] == nil {
			e := why
			e.Job = ids[i]
			errs[i] = &e
		}
	}
}

// hasAnswer is why a job is not claimed that a repeated call names and an earlier try of the call was
// not given, or did not come to.
var hasAnswer = job.Error{Kind: job.NotEligible, Message: "the call's requestId has its answer: nothing was claimed; name the job in a call with another one"}

// refresh reads from the store how the jobs stand, brings the index up to date, and
// ends claims on the jobs whose lease ran out.
func (c *claimer) refresh(ctx context.Context, ids []job.ID) error {
	records, err := c.board.readNoted(ctx, ids, 0, c.board.absorb)
	if err != nil {
		return err
	}
	return c.board.resolve(ctx, records, 0)
}

// choose sends one claim for those of the items that may be claimed, and returns
// those whose jobs had changed meanwhile.
func (c *claimer) choose(ctx context.Context, ids []job.ID, errs []error, items []int) ([]int, error) {
	byID, of := make(map[job.ID]*index.Entry, len(items)), make(map[job.ID]int, len(items))
	var entries []*index.Entry
	var taken, held []job.ID
	// A claim that was granted has ended its reservation already.
	defer func() { c.board.index.Return(held...) }()
	for _, i := range items {
		var e *index.Entry
		if e, errs[i] = c.eligible(ctx, ids[i]); errs[i] != nil {
			continue
		}
		c.decided = time.Now()
		done, full := c.board.index.Reserve(ctx, ids[i]) // it counts as running for later items
		c.regroup(e)
		if full {
			errs[i] = c.rules.fullError(e)
			continue
		}
		if done {
			held = append(held, ids[i])
		}
		entries, taken = append(entries, e), append(taken, ids[i])
		byID[ids[i]], of[ids[i]] = e, i
		// Until the store says otherwise:
		errs[i] = &job.Error{Job: ids[i], Kind: job.Unavailable, Message: "the store did not say what came of it: nothing was claimed"}
	}
	if len(entries) == 0 && (!c.remember || c.asked) {
		return nil, nil
	}
	op := c.op(entries, len(entries))
	c.board.tap.asks(c, entries, true)
	r := c.askStore(ctx, &op)
	// The list that it returns is not needed: the jobs that this call reserved are in
	// held, which the defer gives back. Others in the list may be reserved by another call.
	c.learnSkipped(ctx, byID, taken, &r)
	if r.Kind != job.NoKind {
		return nil, &job.Error{Op: "claim", Kind: callKind(r.Kind), Message: r.Message, Owner: r.Owner, Err: errStore}
	}
	if r.Repeated {
		for id, at := range of {
			e := hasAnswer
			e.Job = id
			errs[at] = &e
		}
	}
	for i := range r.Claims {
		if at, ok := of[r.Claims[i].Job]; ok {
			errs[at] = nil
		}
	}
	return c.passedOver(&r, errs, of, byID), nil
}

// regroup notes what is known of the job's key by now: a key that nobody claimed of before was not
// ranked when the entry was made, and the store counts only by what a rank says.
func (c *claimer) regroup(e *index.Entry) {
	if c.rules.grouping == nil {
		return
	}
	if now, ok := c.board.index.Get(e.ID); ok {
		e.Group = now.Group
	}
}

// passedOver sets the errors of the items that the store did not claim, and returns
// the items whose jobs had changed meanwhile.
func (c *claimer) passedOver(r *driver.Result, errs []error, of map[job.ID]int, byID map[job.ID]*index.Entry) (again []int) {
	for i := range r.Skipped {
		gone := &r.Skipped[i]
		at, ok := of[gone.Job]
		if !ok {
			continue
		}
		if gone.Kind == job.Aborted {
			again = append(again, at)
		}
		if overKey(gone) {
			errs[at] = c.rules.fullError(byID[gone.Job])
			continue
		}
		if gone.Kind == job.NotFound && gone.Record != nil && gone.Record.State == job.Trashed {
			errs[at] = inTrash(gone.Job)
			continue
		}
		errs[at] = itemError(gone.Job, &driver.Result{Kind: gone.Kind, Message: gone.Message, Owner: gone.Owner})
	}
	return again
}

// inTrash is the error of a claim of a job that may come back.
func inTrash(id job.ID) error {
	return &job.Error{Job: id, Kind: job.NotEligible, Message: "the job is in the trash: restore it first"}
}

// eligible returns what is known of a job that this caller may claim now, or why
// it may not.
func (c *claimer) eligible(ctx context.Context, id job.ID) (*index.Entry, error) {
	no := func(kind job.Kind, message string) error { return &job.Error{Job: id, Kind: kind, Message: message} }
	e, open := c.board.index.Get(id)
	if !open {
		records, err := c.board.read(ctx, []job.ID{id}, 0)
		switch {
		case err != nil:
			return nil, no(job.Unavailable, "the store cannot be asked for the job: "+err.Error())
		case records[0].State == job.Trashed:
			return nil, inTrash(id)
		case records[0].State == job.Complete:
			return nil, no(job.NotFound, "the job has ended: "+records[0].Outcome.String())
		case !isOpen(records[0].State):
			return nil, absent(id, &records[0])
		}
		e = c.board.entryOf(&records[0], time.Now())
	}
	if e.Claim != nil {
		return nil, &job.Error{Job: id, Kind: job.AlreadyClaimed, Owner: e.Claim.Owner, Message: "the job is claimed by " + e.Claim.Owner}
	}
	if paused, why := c.board.pause.look(); paused {
		return nil, no(job.NotEligible, pauseText(why))
	}
	if e.Held {
		return nil, no(job.NotEligible, heldText(rareOf(e.Extra).after))
	}
	if e.NotBefore.After(time.Now()) {
		return nil, no(job.NotEligible, "the job may not be claimed before "+e.NotBefore.UTC().Format(time.RFC3339Nano))
	}
	o, err := c.objection(ctx, e)
	switch {
	case err != nil:
		return nil, no(job.Unavailable, "the job cannot be judged: "+err.Error())
	case o != nil:
		return nil, no(job.NotEligible, o.reason)
	}
	return e, nil
}

func pauseText(why string) string {
	if why == "" {
		return "the board is paused"
	}
	return "the board is paused: " + why
}
