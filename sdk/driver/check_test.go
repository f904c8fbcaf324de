package driver_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// small is what the ops of these tests are checked against.
func small() driver.Capabilities {
	return driver.Capabilities{
		Encodings: []string{"json"}, MaxDetails: 40, MaxRecord: 20, MaxCandidates: 2, Limits: true, Rates: true, Keys: true, Attachments: true,
	}
}

var one = job.ID{15: 1}

func post(change func(*driver.Op)) driver.Op {
	op := driver.Op{Kind: driver.Post, Posting: &driver.Posting{ID: one}}
	change(&op)
	return op
}

func claim(change func(*driver.ClaimSpec)) driver.Op {
	spec := &driver.ClaimSpec{Owner: "w", Count: 1, Lease: job.MinLease, Candidates: []driver.Candidate{{Job: one, Nonce: [16]byte{1}}}}
	change(spec)
	return driver.Op{Kind: driver.Claim, Claim: spec}
}

func update(change func(*driver.Op)) driver.Op {
	op := driver.Op{Kind: driver.Update, Job: one}
	change(&op)
	return op
}

func extend(change func(*driver.Op)) driver.Op {
	op := driver.Op{Kind: driver.Extend, Job: one, Precondition: driver.HeldByToken, Token: job.Token{Nonce: [16]byte{1}}, Lease: job.MinLease}
	change(&op)
	return op
}

func hold(h driver.Hold) driver.Op { return update(func(op *driver.Op) { op.Hold = &h }) }

func attach(a driver.Attachment) driver.Op {
	return update(func(op *driver.Op) { op.Attach = []driver.Attachment{{Name: "a/b"}, a} })
}

func end(e driver.Ending) driver.Op {
	return driver.Op{Kind: driver.Remove, Job: one, Ending: &e}
}

func status(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

// TestOpCheckInbox tries what is about a posting in an inbox, with one and without.
func TestOpCheckInbox(t *testing.T) {
	t.Parallel()
	with := small()
	with.Inbox = true
	refuse := driver.Op{Kind: driver.Refuse, Job: one, Inbox: 1, Reason: "no"}
	for _, tc := range []struct {
		name string
		op   driver.Op
		caps driver.Capabilities
		want string // in the message; "": it is taken
	}{
		{"a post", post(func(op *driver.Op) { op.Inbox = math.MaxInt64 }), with, ""},
		{"a refusal", refuse, with, ""},
		{"a post without an inbox", post(func(op *driver.Op) { op.Inbox = 1 }), small(), "there is no inbox here"},
		{"a refusal without an inbox", refuse, small(), "there is no inbox here"},
		{"a refusal of nothing", driver.Op{Kind: driver.Refuse, Job: one}, with, "has the number 0: want 1 to"},
		{"a number too high", post(func(op *driver.Op) { op.Inbox = math.MaxInt64 + 1 }), with, "want 1 to 9223372036854775807"},
		{"an update", update(func(op *driver.Op) { op.Inbox = 1 }), with, "an op of kind 4 is about a posting in the inbox"},
	} {
		if err := tc.op.Check(tc.caps); tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestOpCheckTakes(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]driver.Op{
		"a post":                  post(func(*driver.Op) {}),
		"a post that names a job": post(func(op *driver.Op) { op.Job = one }),
		"details of full size":    post(func(op *driver.Op) { op.Posting.Details = make([]byte, 40) }),
		"an extra of full size":   post(func(op *driver.Op) { op.Posting.Extra = make([]byte, 20) }),
		"a limit":                 post(func(op *driver.Op) { op.Limits = []driver.Limit{{Key: "k"}} }),
		"a claim":                 claim(func(*driver.ClaimSpec) {}),
		"a claim of nothing":      claim(func(c *driver.ClaimSpec) { c.Candidates = nil }),
		"a claim without lease":   claim(func(c *driver.ClaimSpec) { c.Lease, c.NoExpiry = 0, true }),
		"an extension":            extend(func(*driver.Op) {}),
		"an extension by owner":   extend(func(op *driver.Op) { op.Precondition, op.Owner, op.Token = driver.HeldByOwner, "w", job.Token{} }),
		"an extension for good":   extend(func(op *driver.Op) { op.Lease, op.NoExpiry = 0, true }),
		"an update of nothing":    update(func(*driver.Op) {}),
		"a status of full size":   update(func(op *driver.Op) { op.Status = status(20) }),
		"a reason of full size":   update(func(op *driver.Op) { op.Reason = strings.Repeat("r", job.MaxReason) }),
		"held by whomever":        update(func(op *driver.Op) { op.Precondition = driver.Held }),
		"a long name":             attach(driver.Attachment{Name: strings.Repeat("a", 128)}),
		"every sort of character": attach(driver.Attachment{Name: "az/09._-"}),
		"no hold":                 hold(driver.Hold{}),
		"a hold until":            hold(driver.Hold{Until: time.Unix(1, 0)}),
		"a hold for":              hold(driver.Hold{For: 1}),
		"a hold for good":         hold(driver.Hold{Always: true}),
		"a removal":               {Kind: driver.Remove, Job: one},
		"a cancellation":          end(driver.Ending{Outcome: job.Canceled, Keep: time.Hour, Data: make([]byte, 20)}),
		"a release":               {Kind: driver.Release, Job: one},
		"a setting aside":         {Kind: driver.Trash, Job: one},
		"a restoration":           {Kind: driver.Restore, Job: one},
		"a purge":                 {Kind: driver.Purge, Job: one},
	} {
		if err := op.Check(small()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpCheckRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		op   driver.Op
		want string // in the message
	}{
		{"no kind", driver.Op{Job: one}, "no op of kind 0: want 1 to 11"},
		{"an unknown kind", driver.Op{Kind: driver.Tally + 1, Job: one}, "no op of kind 12"},
		{"an unknown precondition", update(func(op *driver.Op) { op.Precondition = driver.Free + 1 }), "no precondition 6: want at most 5"},
		{"no job", driver.Op{Kind: driver.Update}, "the op names no job"},
		{"no token", update(func(op *driver.Op) { op.Precondition = driver.HeldByToken }), "the op has no token"},
		{"no token of a lapsed claim", update(func(op *driver.Op) { op.Precondition = driver.Lapsed }), "the op has no token"},
		{"no owner", update(func(op *driver.Op) { op.Precondition = driver.HeldByOwner }), "the op has no owner"},
		{"a long reason", update(func(op *driver.Op) { op.Reason = strings.Repeat("r", job.MaxReason+1) }), "4097 bytes of the reason: want at most 4096"},
		{"a large status", update(func(op *driver.Op) { op.Status = status(21) }), "21 bytes of the status record: want at most 20"},

		{"no posting", driver.Op{Kind: driver.Post}, "no posting"},
		{"a posting without uuid", post(func(op *driver.Op) { op.Posting.ID = job.ID{} }), "the posting names no job"},
		{"a posting of another job", post(func(op *driver.Op) { op.Job = job.ID{15: 2} }), "the op is for job 00000000-0000-0000-0000-000000000002 and its posting for"},
		{"an encoding that is not kept", post(func(op *driver.Op) { op.Posting.Encoding = job.Msgpack }), "encoding msgpack are not kept here: want json"},
		{"an unknown encoding", post(func(op *driver.Op) { op.Posting.Encoding = 9 }), "are not kept here: want json"},
		{"large details", post(func(op *driver.Op) { op.Posting.Details = make([]byte, 41) }), "41 bytes of details: want at most 40"},
		{"a large extra", post(func(op *driver.Op) { op.Posting.Extra = make([]byte, 21) }), "21 bytes of the posting's extra fields: want at most 20"},
		{"a limit without key", post(func(op *driver.Op) { op.Limits = []driver.Limit{{Key: "k"}, {}} }), `limit "" has weight 0`},
		{"a negative weight", post(func(op *driver.Op) { op.Limits = []driver.Limit{{Key: "k", Weight: -1}} }), `limit "k" has weight -1`},

		{"no claim", driver.Op{Kind: driver.Claim}, "the claim has no owner"},
		{"a claim without owner", claim(func(c *driver.ClaimSpec) { c.Owner = "" }), "the claim has no owner"},
		{"a claim of no jobs", claim(func(c *driver.ClaimSpec) { c.Count = 0 }), "asks for 0 jobs: want at least 1"},
		{"many candidates", claim(func(c *driver.ClaimSpec) { c.Candidates = make([]driver.Candidate, 3) }), "has 3 candidates: want at most 2"},
		{"nothing to remember by", claim(func(c *driver.ClaimSpec) { c.Remember = true }), "want a request"},
		{"a candidate without uuid", claim(func(c *driver.ClaimSpec) { c.Candidates[0].Job = job.ID{} }), "candidate 1: want a uuid"},
		{"a candidate without nonce", claim(func(c *driver.ClaimSpec) { c.Candidates[0].Nonce = [16]byte{} }), "candidate 1: want a uuid"},
		{"a candidate's large status", claim(func(c *driver.ClaimSpec) { c.Candidates[0].Status = status(21) }), "21 bytes of the status record"},
		{"a candidate's limit", claim(func(c *driver.ClaimSpec) { c.Candidates[0].Limits = []driver.Limit{{}} }), `limit ""`},
		{"a rate without key", rate(driver.Rate{Per: time.Second, Max: 1}), "a rate's key has 0 bytes: want 1 to 256"},
		{"a rate with a long key", rate(driver.Rate{Key: strings.Repeat("k", 257), Per: time.Second, Max: 1}), "a rate's key has 257 bytes"},
		{"a rate of nothing", rate(driver.Rate{Key: "k", Per: time.Second}), "grants 0 claims in a period"},
		{"a short period", rate(driver.Rate{Key: "k", Per: time.Second / 2, Max: 1}), "periods of 500ms: want whole seconds"},
		{"a long period", rate(driver.Rate{Key: "k", Per: driver.MaxPeriod + time.Second, Max: 1}), "want whole seconds, at most 744h0m0s"},
		{"a rate twice", rate(driver.Rate{Key: "k", Per: time.Second, Max: 1}, driver.Rate{Key: "k", Per: time.Second, Max: 1}), `rate "k" stands there twice`},
		{"a key of a rate's name", post(func(op *driver.Op) { op.Keys = []driver.Key{{Name: driver.RatePrefix + "k", Open: true}} }), "are for rates"},
		{"a short lease", claim(func(c *driver.ClaimSpec) { c.Lease-- }), "the claim's lease is"},

		{"an extension by nobody", extend(func(op *driver.Op) { op.Precondition = driver.Whatever }), "want the claim's token or owner"},
		{"an extension of what lapsed", extend(func(op *driver.Op) { op.Precondition = driver.Lapsed }), "want the claim's token or owner"},
		{"an extension with a status", extend(func(op *driver.Op) { op.Status = status(0) }), "changes the lease only"},
		{"an extension with a record", extend(func(op *driver.Op) { op.Attach = []driver.Attachment{{Name: "a"}} }), "changes the lease only"},
		{"an extension with a hold", extend(func(op *driver.Op) { op.Hold = &driver.Hold{} }), "changes the lease only"},
		{"a short extension", extend(func(op *driver.Op) { op.Lease-- }), "the extension's lease is"},

		{"a record without name", attach(driver.Attachment{}), `attached record ""`},
		{"a record with a long name", attach(driver.Attachment{Name: strings.Repeat("a", 129)}), "want a name of 1 to 128"},
		{"a record in capitals", attach(driver.Attachment{Name: "A"}), `attached record "A"`},
		{"a record that is no text", attach(driver.Attachment{Name: "a\xff"}), "attached record"},
		{"a large record", attach(driver.Attachment{Name: "a", Data: make([]byte, 21)}), "21 bytes of the attached record a:"},

		{"a hold for and until", hold(driver.Hold{Until: time.Unix(1, 0), For: 1}), "the hold is of two sorts"},
		{"a hold until and for good", hold(driver.Hold{Until: time.Unix(1, 0), Always: true}), "the hold is of two sorts"},
		{"a hold for a time and for good", hold(driver.Hold{For: 1, Always: true}), "the hold is of two sorts"},
		{"a hold for less than nothing", hold(driver.Hold{For: -1}), "or negative"},

		{"no outcome", end(driver.Ending{}), "a job cannot end as"},
		{"a record kept for less than nothing", end(driver.Ending{Outcome: job.Consumed, Keep: -1}), "is to be kept for -1ns"},
		{"a large final record", end(driver.Ending{Outcome: job.Failed, Data: make([]byte, 21)}), "21 bytes of the final record"},
		{"a restoration of a claim", driver.Op{Kind: driver.Restore, Job: one, Precondition: driver.Free}, "want no precondition"},
		{"a purge of a claim", driver.Op{Kind: driver.Purge, Job: one, Precondition: driver.Held}, "want no precondition"},
	} {
		wantInvalid(t, tc.name, tc.op.Check(small()), tc.want)
	}
}

func rate(list ...driver.Rate) driver.Op {
	return claim(func(c *driver.ClaimSpec) { c.Candidates[0].Rates = list })
}

func TestOpCheckWithoutCapability(t *testing.T) {
	t.Parallel()
	can := small()
	can.Limits, can.Attachments = false, false
	op := attach(driver.Attachment{Name: "a"})
	wantInvalid(t, "records", op.Check(can), "attached records are not kept here: want none, got 2")
	op = post(func(op *driver.Op) { op.Limits = []driver.Limit{{Key: "k"}} })
	wantInvalid(t, "limits of a post", op.Check(can), "limits are not counted here: want none, got 1")
	op = claim(func(c *driver.ClaimSpec) { c.Candidates[0].Limits = []driver.Limit{{Key: "k"}} })
	wantInvalid(t, "limits of a claim", op.Check(can), "limits are not counted here: want none, got 1")
	can.Rates = false
	op = rate(driver.Rate{Key: "k", Per: time.Second, Max: 1})
	wantInvalid(t, "rates of a claim", op.Check(can), "rates are not counted here: want none, got 1")
}

func TestCheckDocument(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"entities", "a.b-c_9"} {
		if err := driver.CheckDocument(driver.Space{Board: "any Board", Name: name}, "any/Name"); err != nil {
			t.Errorf("the space %q: %v", name, err)
		}
	}
	for _, name := range []string{"", "a/b", "A", "a b", "ä", "a\x00"} {
		wantInvalid(t, "a space", driver.Space{Name: name}.Check(), "the space is named ")
		wantInvalid(t, "a document's space", driver.CheckDocument(driver.Space{Name: name}, "n"), "the space is named ")
	}
	wantInvalid(t, "no name", driver.CheckDocument(driver.Space{Name: "s"}, ""), `the document in space "s" has no name`)
}

func TestDocumentExpired(t *testing.T) {
	t.Parallel()
	at := time.Unix(100, 0)
	for _, tc := range []struct {
		expires time.Time
		want    bool
	}{{time.Time{}, false}, {at.Add(1), false}, {at, true}, {at.Add(-1), true}} {
		doc := driver.Document{Expires: tc.expires}
		if got := doc.Expired(at); got != tc.want {
			t.Errorf("expires at %v: got %v, want %v", tc.expires, got, tc.want)
		}
	}
}

func wantInvalid(t *testing.T, what string, err error, message string) {
	t.Helper()
	e, ok := errors.AsType[*job.Error](err)
	if !ok || e.Kind != job.Invalid || !strings.Contains(e.Message, message) {
		t.Errorf("%s: got %v, want Invalid with %q", what, err, message)
	}
}
