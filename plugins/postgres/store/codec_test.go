package store

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// fullRow is a row with everything set that is kept of one.
func fullRow() *row {
	at := func(n int64) time.Time { return time.Unix(1, n) }
	return &row{
		Record: driver.Record{
			Posting: driver.Posting{
				Name: "n\x00\xff", Priority: job.VeryHigh, Book: job.Book{UUID: "u", Name: "b"}, Encoding: job.Msgpack,
				Extra: []byte("extra"), Digest: [16]byte{1, 2}, CreatedAt: at(1), Sequence: 1 << 60,
			},
			Status: []byte("status"), Version: 7, Position: 1 << 61, NotBefore: at(2), Held: true, ModifiedAt: at(3), EndedAt: at(4),
			Outcome: job.Failed,
			Holder:  &driver.Holder{Owner: "o", Token: job.Token{Generation: 1, Epoch: 2, Nonce: [16]byte{3}}, Since: at(5)},
		},
		limits: []driver.Limit{{Key: "k", Weight: 2, Max: 3}}, claimLimits: []driver.Limit{{Key: "c", Max: 1}},
		endedBy: job.Token{Generation: 4, Epoch: 5, Nonce: [16]byte{6}},
	}
}

// fullKept is the same of what is kept of an op.
func fullKept() *kept {
	return &kept{
		Stamp: transition.Stamp{
			Kind: driver.Remove, Precondition: driver.Lapsed, Outcome: job.Canceled, Token: job.Token{Generation: 1, Epoch: 2, Nonce: [16]byte{3}},
			Version: 4, Position: 5, At: time.Unix(6, 7), NotBefore: time.Unix(8, 9),
		},
		Claims: []driver.Claimed{{
			Job: job.ID{1}, Token: job.Token{Epoch: 9, Nonce: [16]byte{1}}, Lease: time.Minute, Version: 2, Position: 3, At: time.Unix(4, 5),
		}},
		Given: true,
	}
}

func TestRowsComeBack(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*row{"full": fullRow(), "empty": {}, "empty status": {Record: driver.Record{Status: []byte{}}}} {
		var got row
		if err := got.decode(encodePosting(&r.Posting, r.limits), r.encodeRecord()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(r, &got, cmp.AllowUnexported(row{})); diff != "" {
			t.Errorf("%s: a row comes back as another (-want +got):\n%s", name, diff)
		}
	}
}

func TestKeptComesBack(t *testing.T) {
	t.Parallel()
	want := fullKept()
	var got kept
	if err := got.decode(want.encode()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, &got, cmp.AllowUnexported(kept{})); diff != "" {
		t.Errorf("it comes back as another (-want +got):\n%s", diff)
	}
}

func TestChangesComeBack(t *testing.T) {
	t.Parallel()
	w := newWriter(0)
	now := time.Unix(100, 0)
	for n := range 3 {
		r := fullRow()
		r.Posting.ID, r.State, r.Position, r.lease = job.ID{byte(n + 1)}, job.Claimed, driver.Position(n+1), int64(time.Minute)
		r.ends = now.Add(time.Second).UnixNano()
		kind := driver.Claim
		if n == 2 {
			kind = driver.Post
		}
		w.change(&driver.Op{Kind: kind, Event: job.ClaimedEvent, Reason: "why"}, r, "")
	}
	list, err := decodeChanges(w.out, 1, now)
	if err != nil || len(list) != 2 {
		t.Fatalf("of three changes two come after the first: got %d, %v", len(list), err)
	}
	sparse, whole := list[0], list[1]
	if !sparse.Sparse || sparse.Position != 2 || sparse.Reason != "why" || sparse.Owner != "o" || sparse.Record.Posting.Name != "" ||
		sparse.Record.Holder.Remaining != time.Second {
		t.Errorf("the claim is told as %+v", sparse)
	}
	want := fullRow().Posting
	want.ID = job.ID{3}
	if diff := cmp.Diff(want, whole.Record.Posting); whole.Sparse || diff != "" {
		t.Errorf("the post is told with another posting: sparse %v (-want +got):\n%s", whole.Sparse, diff)
	}
}

// FuzzDecode gives bytes to everything that is decoded: what can be read is written as
// it was read.
func FuzzDecode(f *testing.F) {
	full := fullRow()
	f.Add(encodePosting(&full.Posting, full.limits), full.encodeRecord(), fullKept().encode())
	f.Fuzz(func(t *testing.T, posting, record, answer []byte) {
		var r, again row
		if r.decode(posting, record) == nil {
			if err := again.decode(encodePosting(&r.Posting, r.limits), r.encodeRecord()); err != nil {
				t.Errorf("a row that was read cannot be read again: %v", err)
			}
			if !bytes.Equal(r.encodeRecord(), again.encodeRecord()) {
				t.Errorf("a record that was read is written as another")
			}
		}
		var k, sameAgain kept
		if k.decode(answer) == nil {
			if err := sameAgain.decode(k.encode()); err != nil || !bytes.Equal(k.encode(), sameAgain.encode()) {
				t.Errorf("an answer that was read is written as another: %v", err)
			}
		}
		_, _ = decodeChanges(answer, 0, time.Unix(0, 0)) // it returns
	})
}
