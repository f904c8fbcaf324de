package board

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func TestStatusRoundTrip(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	tests := []status{
		{},
		{attempt: 7, last: "why", reasons: []string{"one", "two"}, startedAt: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)},
		{hasPriority: true, priority: job.VeryHigh, operationPriority: -3, exhausted: true, ranOutBy: 1 << 63, cancel: true},
		{hasPriority: true, priority: job.VeryLow},
		{
			operations: operations{
				statuses: []byte{6, 4, 1}, priorities: []byte{0, 0xec, 19},
				times: []opTimes{{1e15, 1e15 + 1, 1e15 + 5}, {1e15 + 6, 0, 0}, {}}, results: []uint16{1, canceledResult, 0},
			},
			resultBytes: 7, met: true, awaited: true,
			log: logState{last: 10, request: 1 << 63, chunks: []logChunk{{2, 700}, {5, 8192}, {10, 1}}},
		},
		{
			reasons: []string{"of an older version", "two", "three"}, attempts: []attempt{{}, {owner: "w", begun: at, ended: at.Add(time.Hour), lease: 30 * time.Second}},
			last: "three", present: attempt{begun: at.Add(time.Minute), lease: job.MaxLease},
		},
	}
	for _, want := range tests {
		got, err := readStatus(want.encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, statusParts); diff != "" {
			t.Fatal(diff)
		}
	}
}

var statusParts = cmp.AllowUnexported(status{}, attempt{}, operations{}, opTimes{}, logState{}, logChunk{})

// What a newer version wrote survives being rewritten by this one.
func TestStatusKeepsUnknownFields(t *testing.T) {
	t.Parallel()
	old := status{attempt: 1}
	record := appendField(appendField(old.encode(), 900, []byte("from the future")), 901, nil)
	s, err := readStatus(record)
	if err != nil {
		t.Fatal(err)
	}
	s.attempt++
	again := s.encode()
	if !bytes.Contains(again, []byte("from the future")) {
		t.Fatalf("%q lost the field", again)
	}
	if s, err = readStatus(again); err != nil || s.attempt != 2 {
		t.Fatal(s, err)
	}
}

func TestStatusReasons(t *testing.T) {
	t.Parallel()
	var s status
	e := &index.Entry{Claim: &index.Claim{Owner: "w"}}
	for range maxReasons + 5 {
		s.present.lease = time.Second
		s.lost(strings.Repeat("é", maxReasonKept), e)
	}
	s.lost("nobody's", nil)
	e.Claim.Foreign, s.present.lease = true, time.Second
	s.lost("the last one", e)
	got, err := readStatus(s.encode())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.attempts); n != maxReasons || got.attempts[0].owner != "w" || got.attempts[0].lease != time.Second || got.attempts[0].ended.IsZero() ||
		got.attempts[n-2] != (attempt{}) || got.attempts[n-1].owner != "w" || got.attempts[n-1].lease != 0 || got.present != (attempt{}) {
		t.Fatalf("the attempts are %+v", got.attempts)
	}
	if len(got.reasons) != maxReasons || len(got.reasons[0]) != maxReasonKept || got.last != "the last one" {
		t.Fatalf("%d reasons, the first of %d bytes, last %q", len(got.reasons), len(got.reasons[0]), got.last)
	}
}

func FuzzStatus(f *testing.F) {
	s := status{attempt: 3, reasons: []string{"x"}, last: "x", hasPriority: true, priority: job.Low}
	f.Add(s.encode())
	s.attempts, s.present = []attempt{{owner: "w", begun: time.UnixMicro(5)}}, attempt{lease: time.Second}
	f.Add(s.encode())
	f.Add([]byte{1, 1, 1})
	f.Add([]byte{1, statusStarted, 1, 0})
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, record []byte) {
		first, err := readStatus(record)
		if err != nil {
			if !cmp.Equal(first, status{}, statusParts) {
				t.Fatal("an unreadable record says something")
			}
			return
		}
		again := first.encode()
		second, err := readStatus(again)
		if err != nil {
			t.Fatal(err)
		}
		// What says nothing is left out, so that the records are compared, not what they were read into.
		if diff := cmp.Diff(again, second.encode()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzLogChunk(f *testing.F) {
	e := job.LogEntry{Index: 3, At: time.UnixMicro(7).UTC(), Type: "out", Message: "hello"}
	f.Add(appendEntry(appendEntry(nil, &e), &job.LogEntry{At: time.UnixMicro(0)}))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := readChunk(data, 5)
		if err != nil {
			return
		}
		var again []byte
		for i := range first {
			again = appendEntry(again, &first[i])
		}
		second, err := readChunk(again, 5)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzOperation(f *testing.F) {
	f.Add(appendOperation([]byte{recordVersion}, &job.NewOperation{Name: "fetch", Input: []byte("{}"), Priority: -20}))
	f.Fuzz(func(t *testing.T, record []byte) {
		var list []postedOperation
		err := eachField(record, func(tag uint64, data, _ []byte) error {
			op, err := readOperation(data)
			if tag == extraOperation && err == nil {
				list = append(list, op)
			}
			return err
		})
		if err != nil {
			return
		}
		var again []postedOperation
		for i := range list {
			op := job.NewOperation{Name: string(list[i].name), Input: list[i].input, Priority: list[i].priority}
			_ = eachField(appendOperation([]byte{recordVersion}, &op), func(_ uint64, data, _ []byte) error {
				op, err := readOperation(data)
				if err != nil {
					t.Fatal(err)
				}
				again = append(again, op)
				return nil
			})
		}
		if diff := cmp.Diff(list, again, cmp.AllowUnexported(postedOperation{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzExtra(f *testing.F) {
	e := extra{
		labels: []job.Label{{Key: "a", Value: "b"}}, maxAttempts: 3, notBefore: time.UnixMicro(5).UTC(),
		after: []job.Prerequisite{{ID: job.ID{1}, Statuses: []job.OperationStatus{job.OpError}}, {ID: job.ID{2}}},
	}
	f.Add(e.encode())
	f.Add([]byte{1, extraNotBefore, 1, 0}) // the first moment of 1970
	f.Fuzz(func(t *testing.T, record []byte) {
		first, err := readExtra(record)
		if err != nil {
			return
		}
		second, err := readExtra(first.encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second, cmp.AllowUnexported(extra{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A status or posting that cannot be read hides no job.
func TestCorruptRecordsHideNoJob(t *testing.T) {
	t.Parallel()
	d := openStore(t)
	b := start(t, d, Spec{Name: "x"})
	bad := []byte("\xff not a record")
	r := d.Apply(t.Context(), "x", []driver.Op{{
		Kind: driver.Post, Job: job.ID{1}, Status: &bad, Event: job.Posted,
		Posting: &driver.Posting{ID: job.ID{1}, Name: "foreign", Details: []byte("{}"), Extra: bad},
	}})[0]
	if r.Kind != job.NoKind {
		t.Fatal(r.Message)
	}
	c := claimOne(t, b, ClaimRequest{Wait: time.Minute})
	if c.ID != (job.ID{1}) || c.Attempt != 1 {
		t.Fatalf("%+v", c)
	}
	wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	b := New(nil, Spec{Name: "x"})
	id, token := job.ID{1, 2}, job.Token{Generation: 1, Epoch: 1 << 60, Nonce: [16]byte{9}}
	text := b.FormatToken(id, token)
	if got, err := b.ParseToken(id, text); err != nil || got != token {
		t.Fatal(got, err)
	}
	if b.FormatToken(id, job.Token{}) != "" {
		t.Fatal("the zero token has a text")
	}
	for name, bad := range map[string]string{
		"empty": "", "short": text[1:], "long": text + "A", "another alphabet": "+" + text[1:],
		"another version": "Ag" + text[2:], "another job": b.FormatToken(job.ID{3}, token),
		"zero": tokenEncoding.EncodeToString(append(append([]byte{tokenVersion}, id[:]...), make([]byte, 32)...)),
	} {
		_, err := b.ParseToken(id, bad)
		if job.KindOf(err) != job.NotOwner {
			t.Errorf("%s: got %v, want NOT_OWNER", name, err)
		}
	}
}

func FuzzToken(f *testing.F) {
	b := New(nil, Spec{Name: "x"})
	f.Add(b.FormatToken(job.ID{1}, job.Token{Epoch: 3}))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if token, err := b.ParseToken(job.ID{1}, text); err == nil && b.FormatToken(job.ID{1}, token) != text {
			t.Fatalf("%q is not the only text of its token", text)
		}
	})
}

func FuzzPageToken(f *testing.F) {
	b := New(nil, Spec{Name: "x"})
	t1 := pageToken{part: partTrash, scan: "17.3"}
	f.Add(t1.encode(6, ""))
	f.Fuzz(func(t *testing.T, text string) {
		token, err := b.parsePageToken(text, 6, "")
		if err != nil || text == "" {
			return
		}
		again, err := b.parsePageToken(token.encode(6, ""), 6, "")
		if err != nil || !cmp.Equal(token, again, cmp.AllowUnexported(pageToken{})) {
			t.Fatal(token, again, err)
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add("1.17")
	f.Add("1.-1")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parseCursor(text); err == nil && c.String() != text {
			t.Fatalf("%q is not the only text of its cursor", text)
		}
	})
}
