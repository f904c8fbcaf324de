package drivertest

import (
	"context"
	"fmt"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// Decided is a driver that also has package transition decide every op, from the job as
// the driver shows it just before. Report is called where the two differ. It is for a
// store whose decisions are in another language, such as Lua. Only one caller at a time
// may use it, and every op of the jobs concerned has to go through it. Changes of other
// programs must have been reconciled before an op, since an op that finds one first makes
// a change of its own of it.
type Decided struct {
	driver.Driver
	Report func(problem string)

	// Strict also compares the sentences and which refusals show the job, and wants
	// versions to be counted.
	Strict bool

	stamps  map[transition.Key]transition.Stamp
	answers map[transition.Key][]driver.Claimed
	given   map[transition.Key]bool // of answers: it was given again
	endedBy map[job.ID]job.Token
	counts  map[job.ID]*counted
	sums    map[string]int64
	keys    map[string]transition.Entry
}

// A counted job is what its post and its claim count for.
type counted struct{ posting, claim []driver.Limit }

// Apply applies the ops one by one.
func (d *Decided) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	if d.stamps == nil {
		d.stamps, d.answers = map[transition.Key]transition.Stamp{}, map[transition.Key][]driver.Claimed{}
		d.given = map[transition.Key]bool{}
		d.endedBy, d.counts, d.sums = map[job.ID]job.Token{}, map[job.ID]*counted{}, map[string]int64{}
		d.keys = map[string]transition.Entry{}
	}
	return driver.Each(ctx, ops, func(ctx context.Context, op *driver.Op) driver.Result {
		switch {
		case op.Check(driver.CapabilityAll()) != nil || op.Kind == driver.Tally:
			return d.Driver.Apply(ctx, board, []driver.Op{*op})[0]
		case op.Kind == driver.Claim:
			return d.claim(ctx, board, op)
		}
		return d.one(ctx, board, op)
	})
}

// facts reads a job. What was read is good for the plan of one op.
func (d *Decided) facts(ctx context.Context, board string, id job.ID) transition.Facts {
	list, err := d.Read(ctx, board, []job.ID{id}, 0)
	if err != nil || len(list) != 1 {
		d.report("read job %v: %d records, %v", id, len(list), err)
		return transition.Facts{}
	}
	f := transition.FactsOf(&list[0], time.Now())
	f.EndedBy = d.endedBy[id]
	if d.counts[id] == nil {
		d.counts[id] = &counted{}
	}
	return f
}

func (d *Decided) report(format string, args ...any) { d.Report(fmt.Sprintf(format, args...)) }

func (d *Decided) one(ctx context.Context, board string, op *driver.Op) driver.Result {
	id := transition.JobOf(op)
	f := d.facts(ctx, board, id)
	if key, ok := transition.KeyOf(op); ok {
		f.Stamp = d.stamps[key]
	}
	plan, want := transition.Decide(op, &f)
	if plan.Do != 0 {
		if name, by, _ := transition.Taken(op, f.Now, &having{d, board}); name != "" {
			plan.Do, want = 0, driver.Result{Kind: job.AlreadyExists, Message: name, Taken: by}
		}
	}
	n := d.counts[id]
	if op.Kind == driver.Post {
		n = &counted{posting: transition.Counted(op)}
	}
	moves := plan.Moves(n.posting, n.claim)
	if key := transition.Room(plan.Within, moves, d.sum); plan.Do != 0 && key != "" {
		plan.Do, want = 0, transition.Full(key)
	}
	if plan.Do != 0 && op.Import != nil && op.Import.Then != nil {
		plan, moves = transition.Then(op, &plan), nil // which counts no longer what the post counts
	}
	got := d.Driver.Apply(ctx, board, []driver.Op{*op})[0]
	if got.Kind == job.OutcomeUnknown || got.Kind == job.Unavailable {
		return got
	}
	if trouble := d.compare(op, &plan, &f, &want, &got); trouble != "" {
		d.report("%s of a job that was %s: %s", describe(op), stands(&f), trouble)
		return got
	}
	if plan.Do == 0 {
		return got
	}
	d.counts[id] = n
	d.moved(&plan, moves)
	for i := range op.Keys {
		d.keys[op.Keys[i].Name] = transition.Take(&op.Keys[i], id, f.Now, d.keys[op.Keys[i].Name])
	}
	transition.Finish(&plan, got.Version, got.Position, 0, got.At)
	plan.Stamp.NotBefore = got.NotBefore
	if plan.Stamp.Kind != 0 {
		d.stamps[plan.Stamp.Key] = plan.Stamp
	}
	if plan.Do == driver.Remove {
		d.endedBy[id] = plan.EndedBy
	}
	after := d.facts(ctx, board, id)
	if trouble := d.carriedOut(&plan, &f, &after); trouble != "" {
		d.report("%s of a job that was %s: %s", describe(op), stands(&f), trouble)
	}
	return got
}

// having says which jobs have keys: what was taken, and whether its job is on the board.
type having struct {
	*Decided
	board string
}

// Entry is for transition.Kept. Only a driver's own error ends it.
func (s *having) Entry(name string) (e transition.Entry, onBoard bool, err error) {
	e, known := s.keys[name]
	if !known {
		return e, false, nil
	}
	f := s.facts(context.Background(), s.board, e.Job)
	return e, f.State == job.Unclaimed || f.State == job.Claimed, nil
}

// moved takes note of what was counted.
func (d *Decided) moved(plan *transition.Plan, moves transition.Moves) {
	for _, m := range moves {
		d.sums[m.Key] += m.By
	}
	n := d.counts[plan.Job]
	if plan.EndsClaim {
		n.claim = nil
	}
	if plan.Do == driver.Claim {
		n.claim = plan.Within
	}
}

func (d *Decided) sum(key string) int64 { return d.sums[key] }

// compare says how an answer differs from the one that it should be.
func (d *Decided) compare(op *driver.Op, plan *transition.Plan, f *transition.Facts, want, got *driver.Result) string {
	switch {
	case got.Kind != want.Kind || got.Repeated != want.Repeated || got.Taken != want.Taken:
		return fmt.Sprintf("got %v, want %v (%s)", outcome(got), outcome(want), want.Message)
	case plan.Do != 0 && plan.Do != driver.Extend && got.Version <= f.Version:
		return fmt.Sprintf("went from version %d to %d", f.Version, got.Version)
	case d.Strict && plan.Do != 0 && got.Version != plan.Version:
		return fmt.Sprintf("went from version %d to %d, want %d", f.Version, got.Version, plan.Version)
	case want.Repeated && (got.Version != want.Version || got.Position != want.Position):
		return fmt.Sprintf("was repeated at version %d, position %d: want %d, %d", got.Version, got.Position, want.Version, want.Position)
	case (want.Kind == job.NotOwner || want.Kind == job.AlreadyClaimed || d.Strict) && got.Owner != want.Owner:
		return fmt.Sprintf("names owner %q, want %q", got.Owner, want.Owner)
	case (got.Remaining > 0) != (want.Remaining > 0):
		return fmt.Sprintf("came %v before its time, want %v", got.Remaining, want.Remaining)
	case plan.Do != 0 && (d.Strict || there(plan.State)) && got.NotBefore.IsZero() != (op.Hold == nil || plan.NotBefore.IsZero()):
		return fmt.Sprintf("may be claimed from %v, want %v", got.NotBefore, plan.NotBefore)
	case plan.Do == driver.Extend && !d.granted(got.Lease, plan.Holder.Remaining) && (op.Most == 0 || (got.Lease-plan.Holder.Remaining).Abs() > job.MinLease): // what is left of Most depends on the moment
		return fmt.Sprintf("was granted %v, want %v", got.Lease, plan.Holder.Remaining)
	case d.Strict && got.Message != want.Message:
		return fmt.Sprintf("says %q, want %q", got.Message, want.Message)
	case d.Strict && plan.Do == 0 && want.Taken == (job.ID{}) && (got.Record == nil) != (want.Record == nil):
		return fmt.Sprintf("shows %+v, want %+v", got.Record, want.Record)
	}
	return ""
}

// granted reports whether a lease is the one that was asked for. Some of it may be over
// when the answer is made, unless Strict.
func (d *Decided) granted(got, want time.Duration) bool {
	return got == want || !d.Strict && got < want && want-got < job.MinLease
}

// carriedOut says how a job differs from what was planned.
func (d *Decided) carriedOut(plan *transition.Plan, before, after *transition.Facts) string {
	switch held := there(plan.State) && after.Held != plan.Held; {
	case after.State != plan.State:
		return fmt.Sprintf("left it %v, want %v", after.State, plan.State)
	case held || after.State == job.Unclaimed && after.NotBefore.IsZero() != plan.NotBefore.IsZero():
		return fmt.Sprintf("left it held %v until %v, want %v until %v", after.Held, after.NotBefore, plan.Held, plan.NotBefore)
	case plan.State == job.Claimed && after.Holder.Token != before.Holder.Token && plan.Do != driver.Claim:
		return fmt.Sprintf("left it to %+v, want %+v", after.Holder, before.Holder)
	}
	return ""
}

func (d *Decided) claim(ctx context.Context, board string, op *driver.Op) driver.Result {
	key, remember := transition.KeyOf(op)
	kept, known := d.answers[key]
	var facts []transition.Facts
	for i := range op.Claim.Candidates {
		facts = append(facts, d.facts(ctx, board, op.Claim.Candidates[i].Job))
	}
	got := d.Driver.Apply(ctx, board, []driver.Op{*op})[0]
	switch {
	case got.Kind == job.OutcomeUnknown || got.Kind == job.Unavailable:
		return got
	case got.Kind != job.NoKind || got.Repeated != (remember && known && (!op.Claim.More || d.given[key])):
		d.report("%s: got %v", describe(op), outcome(&got))
		return got
	case got.Repeated:
		d.given[key] = true
		if len(transition.Remember(got.Claims, kept)) != len(kept) {
			d.report("%s: repeated: got %+v, want %+v", describe(op), got.Claims, kept)
		}
		return got
	}
	claims, skipped := got.Claims, got.Skipped
	for i := range op.Claim.Candidates {
		if len(got.Claims)-len(claims) == op.Claim.Count {
			break
		}
		if trouble := d.candidate(op, &op.Claim.Candidates[i], &facts[i], &claims, &skipped); trouble != "" {
			d.report("%s, candidate %d, which was %s: %s", describe(op), i+1, stands(&facts[i]), trouble)
			return got
		}
	}
	if len(claims)+len(skipped) > 0 {
		d.report("%s: there are %d claims and %d candidates passed over too many", describe(op), len(claims), len(skipped))
	}
	if remember && len(got.Claims) > 0 {
		d.answers[key] = transition.Remember(kept, got.Claims)
	}
	return got
}

// candidate takes what became of one candidate off the front of what the answer says.
func (d *Decided) candidate(op *driver.Op, c *driver.Candidate, f *transition.Facts, claims *[]driver.Claimed, skipped *[]driver.Skipped) string {
	plan, want := transition.Candidate(op, c, f)
	n := d.counts[c.Job]
	moves := plan.Moves(n.posting, n.claim)
	if key := transition.Room(plan.Within, moves, d.sum); key != "" {
		plan, want = transition.Plan{}, f.PassOver(c, job.QuotaExceeded, key)
	}
	if want.Kind != job.NoKind {
		if len(*skipped) == 0 || (*skipped)[0].Job != c.Job {
			return fmt.Sprintf("was not passed over: want %v", want.Kind)
		}
		got := (*skipped)[0]
		*skipped = (*skipped)[1:]
		switch {
		case got.Kind != want.Kind || got.Owner != want.Owner:
			return fmt.Sprintf("was passed over as %v (%q), want %v (%q)", got.Kind, got.Owner, want.Kind, want.Owner)
		case d.Strict && got.Message != want.Message:
			return fmt.Sprintf("says %q, want %q", got.Message, want.Message)
		case d.Strict && (got.Record == nil) != (want.Record == nil):
			return fmt.Sprintf("shows %+v, want %+v", got.Record, want.Record)
		}
		return ""
	}
	if len(*claims) == 0 || (*claims)[0].Job != c.Job {
		return "was not claimed"
	}
	got := (*claims)[0]
	*claims = (*claims)[1:]
	if plan.Do != 0 {
		d.moved(&plan, moves)
		transition.Finish(&plan, got.Version, got.Position, got.Token.Epoch, got.At)
		plan.Holder.Token.Generation = got.Token.Generation
	}
	switch granted := plan.Claimed(); {
	case got.Token != granted.Token || got.Version != granted.Version || got.Position != granted.Position:
		return fmt.Sprintf("was granted as %+v, want %+v", got, granted)
	case plan.Do != 0 && got.Version <= f.Version || d.Strict && plan.Do != 0 && got.Version != f.Version+1:
		return fmt.Sprintf("went from version %d to %d", f.Version, got.Version)
	case plan.Do != 0 && !d.granted(got.Lease, granted.Lease) || got.Lease > granted.Lease:
		return fmt.Sprintf("was granted for %v, want %v", got.Lease, granted.Lease)
	case d.Strict && !got.At.Equal(granted.At):
		return fmt.Sprintf("was granted at %v, want %v", got.At, granted.At)
	}
	return ""
}

// there reports whether a job is on the board or in the trash.
func there(s job.State) bool { return s != job.Complete && s != job.Unknown }

// stands describes facts for people.
func stands(f *transition.Facts) string {
	text := fmt.Sprintf("%v at version %d", f.State, f.Version)
	if f.State == job.Claimed {
		text += fmt.Sprintf(" by %q with %v left, another program's: %v", f.Holder.Owner, f.Holder.Remaining, f.Holder.Foreign)
	}
	if f.Held || !f.NotBefore.IsZero() {
		text += fmt.Sprintf(", held: %v, until %v", f.Held, f.NotBefore)
	}
	return text
}
