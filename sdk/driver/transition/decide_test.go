package transition_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

var (
	now    = time.Unix(1_000_000, 0)
	id     = job.ID{1}
	mine   = job.Token{Generation: 1, Epoch: 5, Nonce: [16]byte{2}}
	theirs = job.Token{Generation: 1, Epoch: 6, Nonce: [16]byte{3}}
)

// The places where a job may stand when an op with the token mine, by the owner
// "me", comes.
var places = map[string]driver.Record{
	"unknown":    {},
	"unclaimed":  {State: job.Unclaimed},
	"held":       {State: job.Unclaimed, Held: true},
	"mine":       held(driver.Holder{Owner: "me", Token: mine, Remaining: time.Minute}),
	"endless":    held(driver.Holder{Owner: "me", Token: mine, NoExpiry: true}),
	"lapsed":     held(driver.Holder{Owner: "me", Token: mine}),
	"theirs":     held(driver.Holder{Owner: "them", Token: theirs, Remaining: time.Minute}),
	"foreign":    held(driver.Holder{Owner: "them", Foreign: true, NoExpiry: true}),
	"namesake":   held(driver.Holder{Owner: "me", Foreign: true, Remaining: time.Minute}),
	"trashed":    {State: job.Trashed},
	"by-me":      {State: job.Complete},
	"by-another": {State: job.Complete},
}

func held(h driver.Holder) driver.Record { return driver.Record{State: job.Claimed, Holder: &h} }

// factsOf makes the facts of a place, at version 7.
func factsOf(place string) transition.Facts {
	r := places[place]
	r.Posting.ID, r.Posting.Digest, r.Version, r.Position = id, [16]byte{9}, 7, 70
	r.Posting.CreatedAt = now.Add(-time.Hour)
	f := transition.FactsOf(&r, now)
	f.Generation = 1
	if place == "by-me" {
		f.EndedBy = mine
	}
	return f
}

// TestRefusals goes through what only other programs on a shared board, and the
// order of the conditions, make different from the matrix that drivertest runs on
// every driver.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		place string
		op    driver.Op
		want  job.Kind
		why   string
	}{
		{"foreign", driver.Op{Kind: driver.Update, Precondition: driver.HeldByToken, Token: mine}, job.LeaseLost, "the claim of this token has ended"},
		{"foreign", driver.Op{Kind: driver.Release, Precondition: driver.Lapsed, Token: mine}, job.LeaseLost, "the claim of this token has ended"},
		{"foreign", driver.Op{Kind: driver.Remove, Precondition: driver.Free}, job.AlreadyClaimed, "somebody holds the job"},
		{"foreign", driver.Op{Kind: driver.Release, Precondition: driver.Held}, job.NoKind, ""},
		{"foreign", driver.Op{Kind: driver.Release, Precondition: driver.Held, Owner: "me"}, job.NotOwner, "somebody else holds the job"},
		{"namesake", driver.Op{Kind: driver.Release, Precondition: driver.HeldByOwner, Owner: "me"}, job.NoKind, ""},
		{"namesake", driver.Op{Kind: driver.Extend, Precondition: driver.HeldByOwner, Owner: "me", Lease: time.Hour}, job.NoKind, ""},
		{"endless", driver.Op{Kind: driver.Release, Precondition: driver.Lapsed, Token: mine}, job.Precondition, "the lease has not run out"},
		{"lapsed", driver.Op{Kind: driver.Extend, Precondition: driver.HeldByToken, Token: mine, Lease: time.Hour}, job.LeaseLost, "the claim of this token has ended"},
		{"lapsed", driver.Op{Kind: driver.Update, Precondition: driver.HeldByToken, Token: mine, Version: 6}, job.LeaseLost, "the claim of this token has ended"},
		{"mine", driver.Op{Kind: driver.Update, Precondition: driver.HeldByToken, Token: mine, Version: 6}, job.Aborted, "the job was changed meanwhile"},
		{"unclaimed", driver.Op{Kind: driver.Release, Version: 6}, job.Aborted, "the job was changed meanwhile"},
		{"unclaimed", driver.Op{Kind: driver.Release, Version: 7}, job.NotClaimed, "nobody holds the job"},
		{"trashed", driver.Op{Kind: driver.Update, Precondition: driver.Held, Version: 6}, job.NotClaimed, "nobody holds the job"},
		{"trashed", driver.Op{Kind: driver.Update, Version: 6}, job.NotFound, "the job is in the trash, not on the board"},
		{"trashed", driver.Op{Kind: driver.Restore, Version: 6}, job.Aborted, "the job was changed meanwhile"},
		{"by-me", driver.Op{Kind: driver.Update, Precondition: driver.HeldByToken, Token: mine}, job.LeaseLost, "the claim of this token has ended: its holder ended the job"},
		{"by-me", driver.Op{Kind: driver.Extend, Precondition: driver.HeldByToken, Token: mine, Lease: time.Hour}, job.LeaseLost, "the claim of this token has ended: its holder ended the job"},
		{"by-me", driver.Op{Kind: driver.Release, Precondition: driver.HeldByToken, Token: mine}, job.LeaseLost, "the claim of this token ended the job in another way"},
		{"by-another", driver.Op{Kind: driver.Update, Precondition: driver.HeldByToken, Token: mine}, job.NotFound, "there is no such job on the board"},
		{"by-another", driver.Op{Kind: driver.Purge, Version: 6}, job.Aborted, "the job was changed meanwhile"},
		{"unknown", driver.Op{Kind: driver.Purge}, job.NotFound, "there is no such job in the trash or among the ended ones"},
		{"unclaimed", driver.Op{Kind: driver.Restore}, job.NotFound, "there is no such job in the trash"},
	} {
		op, f := tt.op, factsOf(tt.place)
		op.Job = id
		plan, r := transition.Decide(&op, &f)
		if r.Kind != tt.want || r.Message != tt.why {
			t.Errorf("%s: op %d: got %v %q, want %v %q", tt.place, op.Kind, r.Kind, r.Message, tt.want, tt.why)
		}
		if (plan.Do == op.Kind) != (tt.want == job.NoKind) {
			t.Errorf("%s: op %d: plans %d with %v", tt.place, op.Kind, plan.Do, r.Kind)
		}
		if shown := r.Record != nil; tt.want != job.NoKind && shown != (tt.place != "unknown") {
			t.Errorf("%s: op %d: the refusal shows the job: %v", tt.place, op.Kind, shown)
		}
		if tt.want == job.NotOwner && r.Owner != "them" {
			t.Errorf("%s: op %d: names %q, want them", tt.place, op.Kind, r.Owner)
		}
	}
}

// TestOtherEndings goes through all pairs of endings by one token: only the very same one
// is done before, and each other one is refused with how the token ended its claim.
func TestOtherEndings(t *testing.T) {
	t.Parallel()
	ending := func(kind driver.OpKind, must driver.Precondition, outcome job.Outcome) driver.Op {
		op := driver.Op{Kind: kind, Job: id, Precondition: must, Token: mine}
		if outcome != job.NoOutcome {
			op.Ending = &driver.Ending{Outcome: outcome}
		}
		return op
	}
	endings := map[string]driver.Op{
		"its holder gave the job back":                   ending(driver.Release, driver.HeldByToken, job.NoOutcome),
		"its holder put the job into the trash":          ending(driver.Trash, driver.HeldByToken, job.NoOutcome),
		"its holder gave up the last attempt at the job": ending(driver.Trash, driver.HeldByToken, job.Failed),
		"its holder ended the job as CONSUMED":           ending(driver.Remove, driver.HeldByToken, job.NoOutcome),
		"its holder ended the job as CANCELED":           ending(driver.Remove, driver.HeldByToken, job.Canceled),
		"its holder ended the job as FAILED":             ending(driver.Remove, driver.HeldByToken, job.Failed),
		"its lease ran out":                              ending(driver.Release, driver.Lapsed, job.NoOutcome),
	}
	lost, gone := "the claim of this token has ended: ", "there is no such job on the board; the claim of this token has ended: "
	for how, first := range endings {
		f := factsOf("mine")
		if first.Precondition == driver.Lapsed {
			f = factsOf("lapsed")
		}
		plan, _ := transition.Decide(&first, &f)
		transition.Finish(&plan, 8, 80, 0, now)
		for what, op := range endings {
			for place, want := range map[string]struct {
				kind    job.Kind
				message string
			}{
				"unclaimed": {job.LeaseLost, lost}, "theirs": {job.LeaseLost, lost}, "trashed": {job.LeaseLost, lost},
				"by-me": {job.LeaseLost, lost}, "by-another": {job.NotFound, gone}, "unknown": {job.NotFound, gone},
			} {
				f := factsOf(place)
				f.Stamp = plan.Stamp
				plan, r := transition.Decide(&op, &f)
				if what == how {
					want.kind, want.message = job.NoKind, ""
				} else {
					want.message += how
				}
				if plan.Do != 0 || r.Kind != want.kind || r.Repeated != (what == how) || r.Message != want.message {
					t.Errorf("of a claim %q, and now %q where the job is %s: got %v %q, want %v %q", how, what, place, r.Kind, r.Message, want.kind, want.message)
				}
			}
		}
	}
}

func TestRemaining(t *testing.T) {
	t.Parallel()
	op := driver.Op{Kind: driver.Release, Job: id, Precondition: driver.Lapsed, Token: mine}
	for place, want := range map[string]time.Duration{"mine": time.Minute, "endless": 0} {
		f := factsOf(place)
		if _, r := transition.Decide(&op, &f); r.Remaining != want {
			t.Errorf("%s: came %v before its time, want %v", place, r.Remaining, want)
		}
	}
}

func TestLeaseless(t *testing.T) {
	t.Parallel()
	op := driver.Op{Kind: driver.Extend, Job: id, Precondition: driver.HeldByOwner, Owner: "me", Lease: time.Hour}
	f := factsOf("namesake")
	f.Leaseless = true
	if plan, r := transition.Decide(&op, &f); plan.Do != 0 || r.Kind != job.Precondition {
		t.Errorf("the lease of another program's claim: %+v, %v; want it refused", plan, r.Kind)
	}
	f = factsOf("mine")
	f.Leaseless = true
	if plan, r := transition.Decide(&op, &f); plan.Do != driver.Extend {
		t.Errorf("our own lease on such a store: %v %s", r.Kind, r.Message)
	}
}

// TestCached checks that no refusal is made of facts that may be old, and that
// what was done before, and what can be done, is not asked for twice.
func TestCached(t *testing.T) {
	t.Parallel()
	op := driver.Op{Kind: driver.Update, Job: id, Precondition: driver.HeldByToken, Token: mine, Request: [16]byte{1}}
	f := factsOf("theirs")
	f.Cached, f.Job = true, unshown{t}
	if plan, _ := transition.Decide(&op, &f); !plan.Reread || plan.Do != 0 {
		t.Errorf("refused by old facts: %+v, want to read again", plan)
	}
	f.Stamp = transition.Stamp{Kind: driver.Update, Position: 3}
	if plan, r := transition.Decide(&op, &f); plan.Reread || !r.Repeated || r.Position != 3 {
		t.Errorf("done before: %+v %+v", plan, r)
	}
	f = factsOf("mine")
	f.Cached = true
	if plan, _ := transition.Decide(&op, &f); plan.Reread || plan.Do != driver.Update {
		t.Errorf("may be done: %+v", plan)
	}
	claim := driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{Owner: "me"}}
	if plan, _ := transition.Candidate(&claim, &driver.Candidate{Job: id, Nonce: [16]byte{8}}, &f); !plan.Reread {
		t.Errorf("a candidate is passed over by old facts: %+v", plan)
	}
	if plan, gone := transition.Candidate(&claim, &driver.Candidate{Job: id, Nonce: mine.Nonce}, &f); !plan.Reread {
		t.Errorf("a claim that may have ended is given again: %+v, %+v", plan, gone)
	}
	f = factsOf("unclaimed")
	f.Cached = true
	post := driver.Op{Kind: driver.Post, Posting: &driver.Posting{ID: id, Digest: f.Digest}}
	if plan, r := transition.Decide(&post, &f); !plan.Reread {
		t.Errorf("a posting that may be gone came again: %+v, %+v", plan, r)
	}
}

type unshown struct{ t *testing.T }

func (u unshown) Show() *driver.Record {
	u.t.Error("an answer that nobody gets shows the job")
	return nil
}

// TestStamps checks which ops a stamp under their key answers.
func TestStamps(t *testing.T) {
	t.Parallel()
	request := [16]byte{4}
	release := driver.Op{Kind: driver.Release, Job: id, Precondition: driver.HeldByToken, Token: mine, Request: request}
	remove := driver.Op{Kind: driver.Remove, Job: id, Precondition: driver.HeldByToken, Token: mine}
	other := remove
	other.Ending = &driver.Ending{Outcome: job.Failed}
	lapsed := release
	lapsed.Precondition = driver.Lapsed
	again := release
	again.Token.Epoch++
	update := driver.Op{Kind: driver.Update, Job: id, Precondition: driver.HeldByToken, Token: mine, Request: request}
	for _, tt := range []struct {
		name       string
		did, comes driver.Op
		want       bool
	}{
		{"a release", release, release, true},
		{"an ending", remove, remove, true},
		{"another outcome", remove, other, false},
		{"another op", release, remove, false},
		{"another precondition", release, lapsed, false},
		{"another claim", release, again, false},
		{"an update, by its request", update, update, true},
	} {
		f := factsOf("mine")
		if tt.did.Precondition == driver.Lapsed {
			f = factsOf("lapsed")
		}
		plan, r := transition.Decide(&tt.did, &f)
		if plan.Do == 0 {
			t.Fatalf("%s: %v %s", tt.name, r.Kind, r.Message)
		}
		transition.Finish(&plan, 8, 71, 0, now)
		key, ok := transition.KeyOf(&tt.comes)
		if !ok {
			t.Fatalf("%s is recognised by nothing", tt.name)
		}
		f = factsOf("trashed")
		f.Stamp = plan.Stamp
		if _, r = transition.Decide(&tt.comes, &f); r.Repeated != tt.want {
			t.Errorf("%s: repeated: %v, want %v (key %v)", tt.name, r.Repeated, tt.want, key)
		}
		if tt.want && (r.Version != 8 || r.Position != 71 || !r.At.Equal(now)) {
			t.Errorf("%s: %+v, want what it was answered first", tt.name, r)
		}
	}
}

func TestPost(t *testing.T) {
	t.Parallel()
	op := driver.Op{Kind: driver.Post, Posting: &driver.Posting{ID: id, Digest: [16]byte{9}}}
	for place := range places {
		f := factsOf(place)
		plan, r := transition.Decide(&op, &f)
		switch {
		case place == "unknown":
			if plan.Do != driver.Post || plan.Job != id || plan.State != job.Unclaimed || plan.Version != 1 || plan.Counts != 1 || plan.Stamp.Kind != 0 {
				t.Errorf("a new job: %+v", plan)
			}
		case !r.Repeated || r.Version != 7 || r.Position != 70 || !r.At.Equal(now.Add(-time.Hour)) || r.Record == nil:
			t.Errorf("%s: posted again: %+v", place, r)
		}
		for _, digest := range [][16]byte{{}, {8}} {
			f.Digest = digest
			if _, r = transition.Decide(&op, &f); place != "unknown" && r.Kind != job.AlreadyExists {
				t.Errorf("%s: another digest: %v", place, r.Kind)
			}
		}
	}
}

// TestPlans goes through what each transition does.
func TestPlans(t *testing.T) {
	t.Parallel()
	request := [16]byte{4}
	stamp := func(kind driver.OpKind, outcome job.Outcome) transition.Stamp {
		return transition.Stamp{Key: transition.Key{Job: id, Random: request}, Kind: kind, Outcome: outcome}
	}
	until := now.Add(time.Hour)
	for _, tt := range []struct {
		place string
		op    driver.Op
		want  transition.Plan
	}{
		{"held", driver.Op{Kind: driver.Update}, transition.Plan{State: job.Unclaimed, Held: true, Stamp: stamp(driver.Update, 0)}},
		{"mine", driver.Op{Kind: driver.Update, Hold: &driver.Hold{For: time.Hour}}, transition.Plan{State: job.Claimed, NotBefore: until, Stamp: stamp(driver.Update, 0)}},
		{"held", driver.Op{Kind: driver.Update, Hold: &driver.Hold{Until: until}}, transition.Plan{State: job.Unclaimed, NotBefore: until, Stamp: stamp(driver.Update, 0)}},
		{"held", driver.Op{Kind: driver.Update, Hold: &driver.Hold{}}, transition.Plan{State: job.Unclaimed, Stamp: stamp(driver.Update, 0)}},
		{"mine", driver.Op{Kind: driver.Release}, transition.Plan{State: job.Unclaimed, EndsClaim: true, Stamp: stamp(driver.Release, 0)}},
		{"held", driver.Op{Kind: driver.Remove}, transition.Plan{
			State: job.Complete, Counts: -1, Ending: driver.Ending{Outcome: job.Consumed}, Stamp: stamp(driver.Remove, job.Consumed),
		}},
		{"lapsed", driver.Op{Kind: driver.Remove, Ending: &driver.Ending{Outcome: job.Failed, KeepPosting: true}}, transition.Plan{
			State: job.Complete, EndsClaim: true, Counts: -1, Ending: driver.Ending{Outcome: job.Failed}, Stamp: stamp(driver.Remove, job.Failed),
		}},
		{"theirs", driver.Op{Kind: driver.Trash}, transition.Plan{State: job.Trashed, EndsClaim: true, Counts: -1, Stamp: stamp(driver.Trash, 0)}},
		{"trashed", driver.Op{Kind: driver.Restore}, transition.Plan{State: job.Unclaimed, Counts: 1, Stamp: stamp(driver.Restore, 0)}},
		{"by-another", driver.Op{Kind: driver.Purge}, transition.Plan{Stamp: stamp(driver.Purge, 0)}},
	} {
		op, f := tt.op, factsOf(tt.place)
		op.Job, op.Request = id, request
		want := tt.want
		want.Do, want.Job, want.Version = op.Kind, id, 8
		if op.Hold != nil {
			want.Stamp.NotBefore = want.NotBefore
		}
		got, r := transition.Decide(&op, &f)
		if diff := cmp.Diff(want, got, cmp.Comparer(sameTime), cmp.FilterPath(private, cmp.Ignore())); diff != "" || r.Kind != job.NoKind {
			t.Errorf("%s: op %d: %v %s (-want +got):\n%s", tt.place, op.Kind, r.Kind, r.Message, diff)
		}
	}
}

func sameTime(a, b time.Time) bool { return a.Equal(b) }

func private(p cmp.Path) bool {
	f, ok := p.Last().(cmp.StructField)
	return ok && f.Name() == "asked"
}

func TestEndingByToken(t *testing.T) {
	t.Parallel()
	ending := driver.Ending{Outcome: job.Consumed, Keep: time.Hour, Data: []byte("f"), KeepPosting: true}
	op := driver.Op{Kind: driver.Remove, Job: id, Precondition: driver.HeldByToken, Token: mine, Ending: &ending, Hold: &driver.Hold{For: time.Hour}}
	f := factsOf("mine")
	plan, _ := transition.Decide(&op, &f)
	if diff := cmp.Diff(ending, plan.Ending); diff != "" || plan.EndedBy != mine || plan.Stamp.Token != mine {
		t.Errorf("ended by %+v, the stamp by %+v, and left (-want +got):\n%s", plan.EndedBy, plan.Stamp.Token, diff)
	}
	if !plan.NotBefore.IsZero() {
		t.Errorf("a job that ended waits until %v", plan.NotBefore)
	}
	if r := transition.Finish(&plan, plan.Version, 71, 0, now); !r.NotBefore.IsZero() || !plan.Stamp.NotBefore.IsZero() {
		t.Errorf("the answer says %v, and its repetition %v: want that nothing waits", r.NotBefore, plan.Stamp.NotBefore)
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	op := driver.Op{Kind: driver.Extend, Job: id, Precondition: driver.HeldByToken, Token: mine, Lease: time.Hour}
	f := factsOf("mine")
	plan, _ := transition.Decide(&op, &f)
	r := transition.Finish(&plan, plan.Version, 71, 0, now)
	if r.Version != 7 || r.Lease != time.Hour || plan.Holder.Remaining != time.Hour || plan.Holder.Token != mine || plan.Stamp.Kind != 0 || plan.EndsClaim {
		t.Errorf("extended: %+v, %+v", r, plan)
	}
	op.NoExpiry = true
	plan, _ = transition.Decide(&op, &f)
	if r = transition.Finish(&plan, plan.Version, 71, 0, now); r.Lease != 0 || !plan.Holder.NoExpiry {
		t.Errorf("extended without an end: %+v, %+v", r, plan)
	}
}

func TestCandidate(t *testing.T) {
	t.Parallel()
	op := driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{Owner: "me", Lease: time.Hour}}
	for place, want := range map[string]job.Kind{
		"unknown": job.NotFound, "unclaimed": job.NoKind, "held": job.NotEligible, "mine": job.AlreadyClaimed, "endless": job.AlreadyClaimed,
		"lapsed": job.NoKind, "theirs": job.AlreadyClaimed, "foreign": job.AlreadyClaimed, "namesake": job.AlreadyClaimed,
		"trashed": job.NotFound, "by-me": job.NotFound, "by-another": job.NotFound,
	} {
		f := factsOf(place)
		plan, skipped := transition.Candidate(&op, &driver.Candidate{Job: id, Nonce: [16]byte{7}, Version: 7}, &f)
		if skipped.Kind != want || (plan.Do == driver.Claim) != (want == job.NoKind) {
			t.Errorf("%s: passed over as %v, planned %d; want %v", place, skipped.Kind, plan.Do, want)
		}
		if want == job.AlreadyClaimed && (skipped.Owner != f.Holder.Owner || skipped.Record == nil) {
			t.Errorf("%s: %+v, want the owner and the job", place, skipped)
		}
		if want != job.NoKind {
			continue
		}
		if plan.EndsClaim != (place == "lapsed") {
			t.Errorf("%s: ends a claim: %v", place, plan.EndsClaim)
		}
		transition.Finish(&plan, plan.Version, 71, 12, now)
		granted := driver.Claimed{
			Job: id, Token: job.Token{Generation: 1, Epoch: 12, Nonce: [16]byte{7}}, Lease: time.Hour, Version: 8, Position: 71, At: now,
		}
		if diff := cmp.Diff(granted, plan.Claimed()); diff != "" {
			t.Errorf("%s: granted (-want +got):\n%s", place, diff)
		}
	}
	f := factsOf("lapsed")
	if _, skipped := transition.Candidate(&op, &driver.Candidate{Job: id, Nonce: mine.Nonce, Version: 6}, &f); skipped.Kind != job.Aborted {
		t.Errorf("a lapsed claim of another version: %v", skipped.Kind)
	}
	f = factsOf("mine")
	plan, skipped := transition.Candidate(&op, &driver.Candidate{Job: id, Nonce: mine.Nonce, Version: 6}, &f)
	if c := plan.Claimed(); plan.Do != 0 || skipped.Kind != job.NoKind || c.Token != mine || c.Lease != time.Minute || c.Version != 7 {
		t.Errorf("claimed by an earlier try: %+v, %+v", skipped, c)
	}
}

func TestRemember(t *testing.T) {
	t.Parallel()
	one, two := driver.Claimed{Job: id, Token: mine, Record: &driver.Record{}}, driver.Claimed{Job: job.ID{2}, Token: theirs}
	kept := transition.Remember(nil, []driver.Claimed{one})
	kept = transition.Remember(kept, []driver.Claimed{one, two})
	one.Record = nil
	if diff := cmp.Diff([]driver.Claimed{one, two}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// TestAllocations: who asks pays nothing for an op that is done.
func TestAllocations(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	ops := []driver.Op{
		{Kind: driver.Post, Posting: &driver.Posting{ID: id, Digest: [16]byte{9}}},
		{Kind: driver.Extend, Job: id, Precondition: driver.HeldByToken, Token: mine, Lease: time.Hour},
		{Kind: driver.Update, Job: id, Request: [16]byte{1}},
		{Kind: driver.Remove, Job: id, Precondition: driver.HeldByToken, Token: mine},
	}
	claim := driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{Owner: "me", Lease: time.Hour}}
	candidate := driver.Candidate{Job: id, Nonce: [16]byte{7}}
	facts := map[string]transition.Facts{"unknown": factsOf("unknown"), "mine": factsOf("mine"), "unclaimed": factsOf("unclaimed")}
	free, none, taken := facts["unclaimed"], facts["unknown"], facts["mine"]
	allocated := testing.AllocsPerRun(100, func() {
		for i := range ops {
			f := &taken
			if ops[i].Kind == driver.Post {
				f = &none
			}
			plan, r := transition.Decide(&ops[i], f)
			if plan.Do == 0 {
				t.Fatalf("op %d: %v", ops[i].Kind, r.Kind)
			}
			transition.Finish(&plan, plan.Version, 1, 1, now)
		}
		plan, _ := transition.Candidate(&claim, &candidate, &free)
		transition.Finish(&plan, plan.Version, 1, 1, now)
		_ = plan.Claimed()
	})
	if allocated != 0 {
		t.Errorf("%v allocations: want none", allocated)
	}
}
