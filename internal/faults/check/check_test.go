package check_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/check"
	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

const (
	a = "00000000-0000-0000-0000-00000000000a"
	b = "00000000-0000-0000-0000-00000000000b"
	c = "00000000-0000-0000-0000-00000000000c"
)

// a call that took from the given millisecond until one millisecond later.
func call(at int, who string, what history.Call, id string, more func(*history.Op)) history.Op {
	op := history.Op{
		Client: who, Call: what, Job: id, Outcome: history.Done, From: int64(2 * at), To: int64(2*at + 1),
		Begin: time.Duration(at) * time.Millisecond, End: time.Duration(at+1) * time.Millisecond,
	}
	if more != nil {
		more(&op)
	}
	return op
}

func posting(sequence int64) func(*history.Op) {
	return func(op *history.Op) { op.Posting, op.Priority, op.Sequence = "as posted", 3, sequence }
}

func claim(owner, token string, epoch int64) func(*history.Op) {
	return func(op *history.Op) {
		op.Owner, op.Granted, op.Generation, op.Epoch, op.Lease, op.Request = owner, token, 1, epoch, time.Second, "request "+owner
	}
}

func by(token string) func(*history.Op) { return func(op *history.Op) { op.Token = token } }

func refused(kind job.Kind, more func(*history.Op)) func(*history.Op) {
	return func(op *history.Op) {
		if more != nil {
			more(op)
		}
		op.Outcome, op.Kind = history.Refused, kind
	}
}

func unknown(more func(*history.Op)) func(*history.Op) {
	return func(op *history.Op) {
		more(op)
		op.Outcome, op.To, op.End = history.Unknown, int64(history.Forever), history.Forever
	}
}

func shows(state job.State, holder string) func(*history.Op) {
	return func(op *history.Op) {
		op.State, op.Holder, op.Final = state, holder, true
		if state != job.Complete {
			op.Shown = "as posted"
		}
	}
}

// good is a history in which everything is as promised: a is consumed at its second
// claim, b is in the trash, c is left for the drainer.
func good() *history.History {
	h := &history.History{Store: "none", OpenJobs: map[string]int{"": 3}}
	h.Ops = []history.Op{
		call(0, "p", history.Post, a, func(op *history.Op) { posting(1)(op); op.Timeout, op.Attempts = 2200*time.Millisecond, 2 }),
		call(1, "p", history.Post, b, posting(2)),
		call(2, "p", history.Post, b, posting(2)), // again
		call(3, "w1", history.Claim, a, claim("w1", "t1", 1)),
		call(4, "w1", history.Claim, a, claim("w1", "t1", 1)), // again
		call(5, "w2", history.Claim, a, refused(job.AlreadyClaimed, func(op *history.Op) { op.Owner = "w2" })),
		call(6, "w1", history.Extend, a, func(op *history.Op) { op.Token, op.Lease, op.Given = "t1", 2*time.Second, 2*time.Second }),
		call(2500, "w3", history.Claim, a, claim("w3", "t3", 2)), // the lease of w1 is over
		call(2501, "w1", history.Consume, a, refused(job.LeaseLost, by("t1"))),
		call(2502, "w3", history.Consume, a, by("t3")),
		call(2503, "w3", history.Consume, a, by("t3")), // again
		call(2504, "w4", history.Claim, b, claim("w4", "t4", 1)),
		call(2505, "w4", history.Trash, b, by("t4")),
		call(2506, "p", history.Post, c, posting(3)),
		call(2507, "p", history.Post, b, refused(job.AlreadyExists, func(op *history.Op) { op.Posting = "another" })),
		call(3000, "r", history.Get, a, shows(job.Complete, "")),
		call(3001, "r", history.Get, b, shows(job.Trashed, "")),
		call(3002, "r", history.Get, c, shows(job.Unclaimed, "")),
		call(3003, check.Drainer, history.Claim, c, claim("d", "t5", 1)),
		call(3004, check.Drainer, history.Consume, c, by("t5")),
	}
	h.Lists = []history.List{
		{Server: "s", State: job.Unclaimed, Final: true, Jobs: []history.Listed{{Job: c, Priority: 3, Sequence: 3}}},
		{Server: "s", State: job.Claimed, Final: true},
		{Server: "s", State: job.Trashed, Final: true, Jobs: []history.Listed{{Job: b, Priority: 3, Sequence: 2}}},
	}
	h.Counts = []history.Count{{Server: "s", Unclaimed: 1, Trashed: 1, Complete: 1, Final: true}}
	counts := history.BatchCounts{Posted: 2, Consumed: 1, Trashed: 1}
	h.Batches = []history.Batch{{Name: "b", Then: "t", BatchCounts: counts, Shown: counts, Done: true, Listed: true}}
	h.Schedules = []history.Schedule{{ // one tick came between the list and the end
		Name: "s", First: time.Unix(2, 0).UTC(), Every: time.Second, Purged: []string{"1", "2", "3"}, Jobs: []string{"4", "5"},
		From: time.Unix(6, 0).UTC(), To: time.Unix(7, 0).UTC(), WentOn: true,
	}}
	h.Relays = []history.Relay{{Job: "r", From: "s", To: "t", Ready: 10 * time.Millisecond, Asked: 11 * time.Millisecond, Wait: 7 * time.Second, Got: 5 * time.Second}}
	events := []history.Event{
		{Type: job.Posted, Job: a, Position: 1},
		{Type: job.Posted, Job: b, Position: 2},
		{Type: job.ClaimedEvent, Job: a, Owner: "w1", Position: 3},
		{Type: job.Extended, Job: a, Owner: "w1", Position: 4},
		{Type: job.Expired, Job: a, Position: 5},
		{Type: job.ClaimedEvent, Job: a, Owner: "w3", Position: 6},
		{Type: job.ConsumedEvent, Job: a, Position: 7},
		{Type: job.ClaimedEvent, Job: b, Owner: "w4", Position: 8},
		{Type: job.TrashedEvent, Job: b, Position: 9},
		{Type: job.Posted, Job: c, Position: 10},
		{Type: job.ClaimedEvent, Job: c, Owner: "d", Position: 11},
		{Type: job.ConsumedEvent, Job: c, Position: 12},
	}
	h.Watchers = []history.Watcher{
		{Name: "all", Opened: -1, Caught: true, Events: events},
		{Name: "late", Opened: 2400 * time.Millisecond, Caught: true, Events: slices.Clone(events[4:])},
	}
	return h
}

func TestGood(t *testing.T) {
	t.Parallel()
	for _, p := range check.Run(good()) {
		t.Errorf("%v", p)
	}
}

// A history says the same after it was written and read.
func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.json")
	h := good()
	if err := h.Write(path); err != nil {
		t.Fatal(err)
	}
	read, err := history.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(check.Run(read)) != 0 || !reflect.DeepEqual(read.Ops, h.Ops) {
		t.Errorf("%d problems, and the ops are %+v", len(check.Run(read)), read.Ops)
	}
}

// change returns the good history with one op made another.
func change(at int, who string, what history.Call, edit func(*history.Op)) func(*history.History) {
	return func(h *history.History) {
		for i := range h.Ops {
			if op := &h.Ops[i]; op.Begin == time.Duration(at)*time.Millisecond && op.Client == who && op.Call == what {
				edit(op)
				return
			}
		}
		panic("the good history has no such op")
	}
}

func more(ops ...history.Op) func(*history.History) {
	return func(h *history.History) { h.Ops = append(h.Ops, ops...) }
}

// bads are histories that are bad, with the checker that has to say so and what it
// says.
var bads = []struct {
	checker string
	what    string
	make    func(*history.History)
}{
	{"posts", "it is not there", change(3002, "r", history.Get, refused(job.NotFound, nil))},
	{"posts", "which nobody posted", change(3001, "r", history.Get, func(op *history.Op) { op.Shown = "something" })},
	{"posts", "in the end it is UNCLAIMED", change(3000, "r", history.Get, shows(job.Unclaimed, ""))},
	{"consumption", "by another claim", change(2501, "w1", history.Consume, func(op *history.Op) { op.Outcome, op.Kind = history.Done, job.NoKind })},
	{"fencing", "do not grow", change(2500, "w3", history.Claim, func(op *history.Op) { op.Generation = 0 })},
	{"fencing", "have the same claim", change(2500, "w3", history.Claim, func(op *history.Op) { op.Epoch = 1 })},
	{"fencing", "was accepted at", more(call(2501, "w1", history.Extend, a, func(op *history.Op) { op.Token, op.Lease = "t1", time.Second }))},
	{"leases", "was given it at", change(2500, "w3", history.Claim, func(op *history.Op) { op.Begin, op.End = 1500*time.Millisecond, 1501*time.Millisecond })},
	{"timeouts", "was given it for 3s", change(3, "w1", history.Claim, func(op *history.Op) { op.Given = 3 * time.Second })},
	{"timeouts", "was given it for another", change(6, "w1", history.Extend, func(op *history.Op) { op.Given = 2300 * time.Millisecond })},
	{"timeouts", "had stood for", more(call(2400, "w1", history.Abandon, a, by("t1")))},
	{"timeouts", "it may be claimed 1 times, and was 2 times", change(0, "p", history.Post, func(op *history.Op) { op.Attempts = 1 })},
	{"refusals", "its post was refused", change(2506, "p", history.Post, refused(job.QuotaExceeded, nil))},
	{"refusals", "answered without it", func(h *history.History) { h.Watchers[0].Events[2].Owner = "w2" }},
	{"refusals", "who never asked", func(h *history.History) { h.Lists[0].Jobs[0].Holder = "nobody" }},
	{"watchers", "and then", func(h *history.History) { e := h.Watchers[0].Events; e[3], e[4] = e[4], e[3] }},
	{"watchers", "and not the event", func(h *history.History) { h.Watchers[1].Events = slices.Delete(h.Watchers[1].Events, 2, 3) }},
	{"watchers", "and another one", func(h *history.History) { h.Watchers[1].Events[2].Job = b }},
	{"watchers", "has 0 events POSTED", func(h *history.History) {
		for i := range h.Watchers {
			h.Watchers[i].Events = slices.DeleteFunc(h.Watchers[i].Events, func(e history.Event) bool { return e.Job == c && e.Type == job.Posted })
		}
	}},
	{"soon", "was answered without it", func(h *history.History) { h.Relays[0].Got = history.Forever }},
	{"soon", "at 6s only", func(h *history.History) { h.Relays[0].Got = 6 * time.Second }},
	{"soon", "was shown CONSUMED at 8s only", func(h *history.History) { h.Watchers[1].Events[2].Seen = 8 * time.Second }},
	{"repetitions", "were once", change(4, "w1", history.Claim, func(op *history.Op) { op.Granted = "t2" })},
	{"repetitions", "the numbers", change(2, "p", history.Post, func(op *history.Op) { op.Sequence = 7 })},
	{"repetitions", "and they differ", change(2507, "p", history.Post, func(op *history.Op) { op.Outcome, op.Kind = history.Done, job.NoKind })},
	{"counts", "counts 2 jobs", func(h *history.History) { h.Counts[0].Unclaimed = 2 }},
	{"counts", "does not list it so", func(h *history.History) { h.Lists[2].Jobs = nil; h.Counts[0].Trashed = 0 }},
	{"counts", "lists it twice", func(h *history.History) {
		h.Lists[0].Jobs = append(h.Lists[0].Jobs, h.Lists[0].Jobs[0])
		h.Counts[0].Unclaimed = 2
	}},
	{"order", "lists it", func(h *history.History) {
		h.Lists[0].Jobs = append(h.Lists[0].Jobs, history.Listed{Job: b, Priority: 2, Sequence: 2})
	}},
	{"order", "was posted after", change(2506, "p", history.Post, func(op *history.Op) { op.Sequence = 1 })},
	{"stuck", "nobody can claim", change(3004, check.Drainer, history.Consume, refused(job.LeaseLost, nil))},
	{"limits", "surely had", func(h *history.History) { h.OpenJobs[""] = 1 }},
	{"limits", "at most", more(call(2600, "p", history.Post, "d", refused(job.QuotaExceeded, posting(0))))},
	{"keys", "was open all the while", func(h *history.History) { keyed(h, a, b) }},
	{"keys", "and none did", func(h *history.History) {
		keyed(h, a)
		h.Ops = append(h.Ops, call(2600, "p", history.Post, "d", refused(job.AlreadyExists, func(op *history.Op) { op.Key, op.Taken = "k", true })))
	}},
	{"batches", "was followed while a job of it was open", func(h *history.History) { h.Batches[0].Early = true }},
	{"batches", "and it is not done", func(h *history.History) { h.Batches[0].Done = false }},
	{"batches", "it counts", func(h *history.History) { h.Batches[0].Shown.Trashed = 0 }},
	{"batches", "posted once more", func(h *history.History) { h.Batches[0].Away = true }},
	{"batches", "is not on the board", func(h *history.History) { h.Batches[0].Listed = false }},
	{"webhooks", "is not signed", func(h *history.History) {
		h.Webhooks = []history.Webhook{told()}
		h.Webhooks[0].Requests[3].Signed = false
	}},
	{"ticks", "it was posted twice", func(h *history.History) { h.Schedules[0].Jobs[0] = "3" }},
	{"ticks", "3 ticks of schedule s were posted, and 5 to 7 have been", func(h *history.History) { h.Schedules[0].Jobs = nil }},
	{"ticks", "posted nothing any more after its tick of 1970-01-01T00:00:06Z", func(h *history.History) { h.Schedules[0].WentOn = false }},
	{"moves", "is COPYING for ever", func(h *history.History) {
		h.Moves = []history.Move{{To: "there", Begin: 4 * time.Second, End: history.Forever, State: "COPYING"}}
	}},
	{"apart", "of the board other shows it", func(h *history.History) {
		h.Lists = append(h.Lists, history.List{Server: "s", Board: "other", State: job.Unclaimed, Jobs: []history.Listed{{Job: c, Priority: 3, Sequence: 3}}})
	}},
	{"apart", "was told at", more(call(2600, "x", history.Foreign, c, func(op *history.Op) { op.Board = "other" }))},
	{"policies", "goes by rule 7", func(h *history.History) {
		h.Policies = append(h.Policies, history.PolicyCall{Call: history.Explain, Server: "s", Outcome: history.Done, Shown: 7})
	}},
	{"linear", "impossible", change(2500, "w3", history.Claim, func(op *history.Op) { op.Begin, op.End = 1500*time.Millisecond, 1501*time.Millisecond })},
	{"linear", "impossible", change(3001, "r", history.Get, shows(job.Unclaimed, ""))},
	{"linear", "impossible", change(5, "w2", history.Claim, func(op *history.Op) { op.Kind = job.NotFound })},
}

// keyed gives the postings of jobs one key.
func keyed(h *history.History, ids ...string) {
	for i := range h.Ops {
		if h.Ops[i].Call == history.Post && slices.Contains(ids, h.Ops[i].Job) {
			h.Ops[i].Key = "k"
		}
	}
}

// TestKeysInTurn: a key may be had by one job after another, and is refused while one has it.
func TestKeysInTurn(t *testing.T) {
	t.Parallel()
	h := good()
	keyed(h, a, c) // c is posted when a was consumed
	h.Ops = append(h.Ops, call(7, "p", history.Post, "d", refused(job.AlreadyExists, func(op *history.Op) { op.Key, op.Taken = "k", true })))
	if problems := check.Run(h); len(problems) > 0 {
		t.Errorf("found %v", problems)
	}
}

func TestBad(t *testing.T) {
	t.Parallel()
	for _, bad := range bads {
		t.Run(bad.checker+" "+bad.what, func(t *testing.T) {
			t.Parallel()
			h := good()
			bad.make(h)
			problems := check.Run(h)
			if !slices.ContainsFunc(problems, func(p check.Problem) bool { return p.Checker == bad.checker && strings.Contains(p.Text, bad.what) }) {
				t.Errorf("not found; there is: %v", problems)
			}
		})
	}
}

// Every checker has a bad history.
func TestEveryChecker(t *testing.T) {
	t.Parallel()
	tested := map[string]bool{}
	for _, bad := range bads {
		tested[bad.checker] = true
	}
	for _, c := range check.All() {
		if !tested[c.Name] {
			t.Errorf("no bad history for %s", c.Name)
		}
	}
}

func TestOrderOfDrain(t *testing.T) {
	t.Parallel()
	h := good()
	h.Lists[0].Jobs = append(h.Lists[0].Jobs, history.Listed{Job: b, Priority: 3, Sequence: 4})
	h.Ops = append(h.Ops,
		call(3005, check.Drainer, history.Claim, b, claim("d2", "t6", 2)),
		call(3006, check.Drainer, history.Claim, c, claim("d3", "t7", 2)))
	if !slices.ContainsFunc(check.Run(h), func(p check.Problem) bool {
		return p.Checker == "order" && strings.Contains(p.Text, "is claimed after")
	}) {
		t.Error("a drain in the wrong order was not found")
	}
}

// What nobody was told may have happened or not, and both are fine.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]history.Op{
		"it happened":         call(3000, "r", history.Get, a, shows(job.Complete, "")),
		"it did not":          call(3000, "r", history.Get, a, shows(job.Unclaimed, "")),
		"and it came to pass": call(3000, "r", history.Get, a, shows(job.Claimed, "w")),
	} {
		h := &history.History{Ops: []history.Op{
			call(0, "p", history.Post, a, unknown(posting(0))),
			call(1, "w", history.Claim, "", unknown(claim("w", "", 0))),
			call(2, "w", history.Claim, a, func(op *history.Op) { claim("w", "t1", 1)(op); op.Lease = time.Minute; op.Request = "request w" }),
			call(3, "w", history.Consume, a, unknown(by("t1"))),
			call(4, "w", history.Abandon, a, unknown(by("t1"))),
			end,
		}}
		for _, p := range check.Run(h) {
			t.Errorf("%s: %v", name, p)
		}
	}
}

// A claim whose client was told nothing is known by its owner's name.
func TestLostClaim(t *testing.T) {
	t.Parallel()
	h := &history.History{Ops: []history.Op{
		call(0, "p", history.Post, a, posting(1)),
		call(1, "w", history.Claim, "", unknown(claim("w", "", 0))),
		call(2, "r", history.Get, a, shows(job.Claimed, "w")),
		call(3, "v", history.Claim, a, refused(job.AlreadyClaimed, func(op *history.Op) { op.Owner = "v" })),
	}}
	for _, p := range check.Run(h) {
		t.Error(p)
	}
	h.Ops[1].Outcome, h.Ops[1].End, h.Ops[1].To = history.Done, 2*time.Millisecond, 3 // it was told that there is nothing
	problems := check.Run(h)
	for _, name := range []string{"refusals", "linear"} {
		if !slices.ContainsFunc(problems, func(p check.Problem) bool { return p.Checker == name }) {
			t.Errorf("%s did not find a claim that nobody was given: %v", name, problems)
		}
	}
	h.Store, h.Faults = "fleet", []history.Fault{{Name: "server stopped", Begin: time.Millisecond, End: 3 * time.Millisecond}}
	for _, p := range check.Run(h) { // it was passed on to a server that stood still, and made the call later
		t.Error(p)
	}
	h.Faults[0].Begin = 3 * time.Millisecond
	if len(check.Run(h)) == 0 {
		t.Error("what was broken later explains nothing")
	}
}

// On ZooKeeper a call that was tried again need not be told of a claim that lapsed before,
// and whose job has gone to somebody else; of one that stands it has to be.
func TestLapsedUntold(t *testing.T) {
	t.Parallel()
	for store, want := range map[string]int{"zookeeper": 0, "redis": 1} {
		h := &history.History{Store: store, Ops: []history.Op{
			call(0, "p", history.Post, a, posting(1)),
			call(1, "p", history.Post, b, posting(2)),
			call(2, "w", history.Claim, "", unknown(claim("w", "", 0))),
			call(2000, "v", history.Claim, a, claim("v", "t2", 2)),
			call(1000, "x", history.Claim, a, refused(job.AlreadyClaimed, func(op *history.Op) { op.Owner = "x" })),
			call(2500, "w", history.Claim, b, claim("w", "t3", 3)),
			call(2600, "r", history.Get, a, shows(job.Claimed, "v")),
		}}
		h.Ops[2].Request, h.Ops[5].Request, h.Ops[6].Owners = "once", "once", []string{"w", "v"}
		found := func() (n int) {
			for _, p := range check.Run(h) {
				if p.Checker == "refusals" {
					n++
				}
			}
			return n
		}
		if n := found(); n != want {
			t.Errorf("%s: %d problems, want %d", store, n, want)
		}
		if good := len(check.Run(h)) == 0; good != (want == 0) {
			t.Errorf("%s: a job that the call had, and of which it was not told: %v", store, check.Run(h))
		}
		h.Ops[3], h.Ops[6].Holder, h.Ops[6].Owners = h.Ops[0], "w", nil // nobody else had it
		if n := found(); n != 1 {
			t.Errorf("%s: a claim that stands: %d problems, want one", store, n)
		}
	}
}

// It need not be told either of a claim that an operator ended before, and may be told that it has
// none; of one that was ended later it has to be.
func TestReleasedUntold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		store    string
		released int // when, in ms
		told     bool
		want     bool
	}{
		{"zookeeper", 100, true, true},
		{"zookeeper", 100, false, true},
		{"zookeeper", 300, true, false},
		{"zookeeper", 300, false, false},
		{"redis", 100, true, false},
	} {
		h := &history.History{Store: c.store, Ops: []history.Op{
			call(0, "p", history.Post, a, posting(1)),
			call(1, "p", history.Post, b, posting(2)),
			call(2, "w", history.Claim, b, claim("w", "t2", 2)),
			call(c.released, "o", history.Release, a, nil),
			call(400, "r", history.Get, a, shows(job.Unclaimed, "")),
		}}
		if !c.told {
			h.Ops[2] = call(2, "w", history.Claim, "", func(op *history.Op) { op.Owner = "w" })
		}
		h.Ops[2].End, h.Ops[4].Owners = 200*time.Millisecond, []string{"w"}
		h.Watchers = []history.Watcher{{Name: "x", Events: []history.Event{
			{Job: a, Type: job.Posted, Position: 1, Seen: time.Millisecond},
			{Job: b, Type: job.Posted, Position: 2, Seen: time.Millisecond},
			{Job: a, Type: job.ClaimedEvent, Owner: "w", Position: 3, Seen: 50 * time.Millisecond},
			{Job: a, Type: job.Abandoned, Position: 5, Seen: time.Duration(c.released) * time.Millisecond},
		}}}
		if good := !finds(h, "refusals") && !finds(h, "linear"); good != c.want {
			t.Errorf("%+v: good: %v: %v", c, good, check.Run(h))
		}
	}
}

// Who is told that it has nothing may have been given a job by a try before, whose answer was lost.
func TestToldOfNothingAfterALostAnswer(t *testing.T) {
	t.Parallel()
	h := &history.History{Store: "redis", Ops: []history.Op{
		call(0, "p", history.Post, a, posting(1)),
		call(1, "w", history.Claim, "", unknown(claim("w", "", 0))),
		call(10, "v", history.Claim, a, refused(job.AlreadyClaimed, func(op *history.Op) { op.Owner = "v" })),
		call(20, "r", history.Get, a, shows(job.Claimed, "w")),
		call(30, "w", history.Claim, "", func(op *history.Op) { op.Owner = "w" }),
	}}
	h.Ops[1].Request, h.Ops[4].Request = "once", "once"
	if problems := check.Linear(h); len(problems) > 0 {
		t.Errorf("the history is good: %v", problems)
	}
}

// Where each host tells by itself when a lease is over, one may refuse a token and another
// not yet, after the lease; before that none may. Nor is it settled where the store counts leases
// anew afterwards.
func TestLeaseOverAtOneHost(t *testing.T) {
	t.Parallel()
	type killed struct {
		store string
		ends  time.Duration // of its kill
	}
	for store, want := range map[killed]bool{
		{"zookeeper", 0}: true, {"redis", 0}: false, {"redis", 2 * time.Second}: false,
		{"postgres", 0}: false, {"postgres", 1400 * time.Millisecond}: false, {"postgres", 1505 * time.Millisecond}: true,
	} {
		h := &history.History{Store: store.store, Faults: []history.Fault{{Name: "store killed", End: store.ends}}, Ops: []history.Op{
			call(0, "p", history.Post, a, posting(1)),
			call(1, "w", history.Claim, a, claim("w", "t1", 1)),
			call(1500, "w", history.Extend, a, refused(job.LeaseLost, func(op *history.Op) { op.Token, op.Lease = "t1", time.Second })),
			call(1510, "v", history.Claim, a, refused(job.AlreadyClaimed, func(op *history.Op) { op.Owner = "v" })),
		}}
		if good := len(check.Linear(h)) == 0; good != want {
			t.Errorf("%+v: the history is good: %v, want %v", store, good, want)
		}
		h.Ops[2].Begin, h.Ops[2].End = 500*time.Millisecond, 501*time.Millisecond
		if len(check.Linear(h)) == 0 {
			t.Errorf("%+v: a token may be refused before its lease is over", store)
		}
	}
}

// A claim that nobody has ended comes along when its board moves, and has a second at least in the
// next store, also if its token was refused before since its lease was over.
func TestLeaseOverBeforeAMove(t *testing.T) {
	t.Parallel()
	at := func(board string, begin, end int) history.Move {
		return history.Move{Board: board, To: "embedded", Begin: time.Duration(begin) * time.Millisecond, End: time.Duration(end) * time.Millisecond, State: "MOVED"}
	}
	for move, want := range map[history.Move]bool{at("b", 1490, 1510): true, at("b", 1, 1400): false, at("other", 1490, 1510): false} {
		h := &history.History{Store: "moving", Moves: []history.Move{move}, Ops: []history.Op{
			call(0, "p", history.Post, a, posting(1)),
			call(1, "w", history.Claim, a, claim("w", "t1", 1)),
			call(1500, "w", history.Consume, a, refused(job.LeaseLost, func(op *history.Op) { op.Token = "t1" })),
			call(1520, "w", history.Abandon, a, func(op *history.Op) { op.Token = "t1" }),
		}}
		for i := range h.Ops {
			h.Ops[i].Board = "b"
		}
		if good := len(check.Linear(h)) == 0; good != want {
			t.Errorf("%+v: the history is good: %v, want %v", move, good, want)
		}
	}
}

// A post that is refused since the store is full is not refused for the board's limit.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	h := good()
	h.OpenJobs = map[string]int{"": 100}
	h.Ops = append(h.Ops, call(2600, "p", history.Post, "d", refused(job.QuotaExceeded, posting(0))))
	find := func() bool {
		return slices.ContainsFunc(check.Run(h), func(p check.Problem) bool { return p.Checker == "limits" })
	}
	if !find() {
		t.Error("a post was refused for a limit that was not reached")
	}
	h.Ops[len(h.Ops)-1].Text = "Redis has no memory left (maxmemory)"
	if find() {
		t.Error("a store that is full has refused a post, and the limit is judged")
	}
}

// A claim whose lease is over can be released by hand until somebody has ended it in the
// store; one that was ended cannot.
func TestReleasedAfterItsLease(t *testing.T) {
	t.Parallel()
	ops := []history.Op{
		call(0, "p", history.Post, a, posting(1)),
		call(1, "w", history.Claim, a, claim("w", "t1", 1)),
		call(1500, "w", history.Consume, a, refused(job.LeaseLost, by("t1"))),
		call(1510, "o", history.Release, a, nil),
	}
	if problems := check.Linear(&history.History{Ops: ops}); len(problems) > 0 {
		t.Error(problems)
	}
	again := append(slices.Clip(ops), call(1520, "o", history.Release, a, nil))
	abandoned := append(slices.Clip(ops[:2]), call(100, "w", history.Abandon, a, by("t1")), ops[3])
	for _, wrong := range [][]history.Op{again, abandoned} {
		if len(check.Linear(&history.History{Ops: wrong})) == 0 {
			t.Error("nobody had what was released")
		}
	}
}

// A purge whose answer was lost is made again, and may then purge what came meanwhile.
func TestPurgedTwice(t *testing.T) {
	t.Parallel()
	h := &history.History{
		Faults: []history.Fault{{Name: "client mute", Begin: 5 * time.Millisecond, End: time.Second}},
		Ops: []history.Op{
			call(0, "p", history.Post, a, posting(1)),
			call(1, "q", history.SetAside, a, nil),
			call(2, "q", history.Purge, a, func(op *history.Op) { op.Retries, op.To, op.End = true, 2*100+1, 100*time.Millisecond }),
			call(20, "p", history.Post, a, posting(2)),
			call(30, "q", history.SetAside, a, nil),
			call(110, "r", history.Get, a, refused(job.NotFound, nil)),
		},
	}
	if problems := check.Linear(h); len(problems) > 0 {
		t.Error(problems)
	}
	h.Ops[2].Retries = false // the second posting was purged by nobody then
	if len(check.Linear(h)) == 0 {
		t.Error("a job that was purged once is gone twice")
	}
}

// What was set aside by two tries of one call, neither of which was answered, is set aside once
// more after somebody restored it.
func TestSetAsideTwiceUntold(t *testing.T) {
	t.Parallel()
	h := &history.History{
		Faults: []history.Fault{{Name: "store cut", Begin: 5 * time.Millisecond, End: time.Second}},
		Ops: []history.Op{
			call(0, "p", history.Post, a, posting(1)),
			call(2, "q", history.SetAside, a, func(op *history.Op) {
				op.Retries, op.To, op.End, op.Outcome = true, int64(history.Forever), history.Forever, history.Unknown
			}),
			call(20, "r", history.Restore, a, nil),
			call(110, "r", history.Get, a, func(op *history.Op) { op.State = job.Trashed }),
		},
	}
	if problems := check.Linear(h); len(problems) > 0 {
		t.Error(problems)
	}
	h.Ops[1].Retries = false // it was made once then, before the restoration
	if len(check.Linear(h)) == 0 {
		t.Error("a job that was set aside once is in the trash again")
	}
}

func TestPutBack(t *testing.T) {
	t.Parallel()
	h := good()
	h.PutBack = true
	if problems := check.Run(h); len(problems) > 0 {
		t.Error(problems)
	}
	change(3002, "r", history.Get, refused(job.NotFound, nil))(h)
	if problems := check.Run(h); len(problems) != 1 || problems[0].Checker != "loss reported" {
		t.Errorf("a silent loss: %v", problems)
	}
	h.Reported = "3 changes are gone"
	if problems := check.Run(h); len(problems) > 0 {
		t.Error(problems)
	}
}

// TestKept checks histories again that were kept, such as BOARDD_TEST_HISTORY=FOLDER/history.json.
func TestKept(t *testing.T) {
	t.Parallel()
	for path := range strings.FieldsSeq(os.Getenv("BOARDD_TEST_HISTORY")) {
		h, err := history.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range check.Run(h) {
			t.Errorf("%s, seed %d: %v", h.Store, h.Seed, p)
		}
	}
}
