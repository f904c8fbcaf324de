package board

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// What a newer version wrote survives being rewritten by this one.

func TestStatusReasons(t *testing.T) {
	t.Parallel()
	var s record.Status
	e := &index.Entry{Claim: &index.Claim{Owner: "w"}}
	for range record.MaxReasons + 5 {
		s.Present.Lease = time.Second
		s.Lose(strings.Repeat("é", record.MaxReasonKept), attemptOf(&s, e))
	}
	s.Lose("nobody's", attemptOf(&s, nil))
	e.Claim.Foreign, s.Present.Lease = true, time.Second
	s.Lose("the last one", attemptOf(&s, e))
	got, err := record.ReadStatus(s.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.Attempts); n != record.MaxReasons || got.Attempts[0].Owner != "w" || got.Attempts[0].Lease != time.Second || got.Attempts[0].Ended.IsZero() ||
		got.Attempts[n-2] != (record.Attempt{}) || got.Attempts[n-1].Owner != "w" || got.Attempts[n-1].Lease != 0 || got.Present != (record.Attempt{}) {
		t.Fatalf("the attempts are %+v", got.Attempts)
	}
	if len(got.Reasons) != record.MaxReasons || len(got.Reasons[0]) != record.MaxReasonKept || got.Last != "the last one" {
		t.Fatalf("%d reasons, the first of %d bytes, last %q", len(got.Reasons), len(got.Reasons[0]), got.Last)
	}
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
