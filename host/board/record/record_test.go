package record

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/boardd/boardd/sdk/job"
)

func TestStatusRoundTrip(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	tests := []Status{
		{},
		{Attempt: 7, Last: "why", Reasons: []string{"one", "two"}, StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)},
		{HasPriority: true, Priority: job.VeryHigh, OperationPriority: -3, Exhausted: true, Cancel: true},
		{HasPriority: true, Priority: job.VeryLow},
		{
			Operations: Operations{
				Statuses: []byte{6, 4, 1}, Priorities: []byte{0, 0xec, 19},
				Times: []OpTimes{{1e15, 1e15 + 1, 1e15 + 5}, {1e15 + 6, 0, 0}, {}}, Results: []uint16{1, CanceledResult, 0},
			},
			ResultBytes: 7, Met: true, Awaited: true,
			Log: Log{Last: 10, Request: 1 << 63, Chunks: []Chunk{{2, 700}, {5, 8192}, {10, 1}}},
		},
		{
			Reasons: []string{"of an older version", "two", "three"}, Attempts: []Attempt{{}, {Owner: "w", Begun: at, Ended: at.Add(time.Hour), Lease: 30 * time.Second}},
			Last: "three", Present: Attempt{Begun: at.Add(time.Minute), Lease: job.MaxLease},
		},
		{Ended: []Ended{{By: job.Token{Generation: 1, Epoch: 1 << 63, Nonce: [16]byte{1, 15: 2}}}, {By: job.Token{Nonce: [16]byte{3}}, Trashed: true}}},
	}
	for _, want := range tests {
		got, err := ReadStatus(want.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, statusParts); diff != "" {
			t.Fatal(diff)
		}
	}
}

var statusParts = cmp.AllowUnexported(Status{}, Attempt{}, Operations{}, OpTimes{}, Log{}, Chunk{})

// TestStatusEnded keeps the last claims that were given up, and tells them apart.
func TestStatusEnded(t *testing.T) {
	t.Parallel()
	by := func(n int) Ended {
		return Ended{By: job.Token{Epoch: uint64(n), Nonce: [16]byte{7}}, Trashed: n%2 == 0}
	}
	var s Status
	for n := range MaxEnded {
		s.End(by(n + 1))
	}
	before := s
	s.End(by(MaxEnded + 1))
	if !before.HasEnded(by(1)) || before.HasEnded(by(MaxEnded+1)) {
		t.Errorf("a record is changed by what becomes of its copy: %+v", before.Ended)
	}
	got, err := ReadStatus(s.Encode())
	if err != nil || len(got.Ended) != MaxEnded {
		t.Fatalf("%d claims of %d are known: %v", len(got.Ended), MaxEnded, err)
	}
	for n := range MaxEnded + 1 {
		if e := by(n + 1); got.HasEnded(e) != (n > 0) {
			t.Errorf("claim %d is known: %v", n+1, got.HasEnded(e))
		}
	}
	other := by(5)
	other.Trashed = !other.Trashed
	if got.HasEnded(other) || got.HasEnded(Ended{}) {
		t.Error("a claim is known that ended in another way, or none")
	}
	for _, cut := range [][]byte{nil, make([]byte, 16), make([]byte, 18)} {
		if _, err := ReadStatus(AppendField([]byte{Version}, statusEnded, cut)); err == nil {
			t.Errorf("a claim of %d bytes is read", len(cut))
		}
	}
}

func TestStatusKeepsUnknownFields(t *testing.T) {
	t.Parallel()
	old := Status{Attempt: 1}
	encoded := AppendField(AppendField(old.Encode(), 900, []byte("from the future")), 901, nil)
	s, err := ReadStatus(encoded)
	if err != nil {
		t.Fatal(err)
	}
	s.Attempt++
	again := s.Encode()
	if !bytes.Contains(again, []byte("from the future")) {
		t.Fatalf("%q lost the field", again)
	}
	if s, err = ReadStatus(again); err != nil || s.Attempt != 2 {
		t.Fatal(s, err)
	}
}

func FuzzStatus(f *testing.F) {
	s := Status{Attempt: 3, Reasons: []string{"x"}, Last: "x", HasPriority: true, Priority: job.Low}
	f.Add(s.Encode())
	s.Attempts, s.Present = []Attempt{{Owner: "w", Begun: time.UnixMicro(5)}}, Attempt{Lease: time.Second}
	f.Add(s.Encode())
	s.End(Ended{By: job.Token{Epoch: 300, Nonce: [16]byte{9}}, Trashed: true})
	f.Add(s.Encode())
	f.Add([]byte{1, 1, 1})
	f.Add([]byte{1, StatusStarted, 1, 0})
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, encoded []byte) {
		first, err := ReadStatus(encoded)
		if err != nil {
			if !cmp.Equal(first, Status{}, statusParts) {
				t.Fatal("an unreadable record says something")
			}
			return
		}
		again := first.Encode()
		second, err := ReadStatus(again)
		if err != nil {
			t.Fatal(err)
		}
		// What says nothing is left out, so that the records are compared, not what they were read into.
		if diff := cmp.Diff(again, second.Encode()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzLogChunk(f *testing.F) {
	e := job.LogEntry{Index: 3, At: time.UnixMicro(7).UTC(), Type: "out", Message: "hello"}
	f.Add(AppendEntry(AppendEntry(nil, &e), &job.LogEntry{At: time.UnixMicro(0)}))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := ReadChunk(data, 5)
		if err != nil {
			return
		}
		var again []byte
		for i := range first {
			again = AppendEntry(again, &first[i])
		}
		second, err := ReadChunk(again, 5)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzOperation(f *testing.F) {
	f.Add(AppendOperation([]byte{Version}, &job.NewOperation{Name: "fetch", Input: []byte("{}"), Priority: -20}))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		var list []PostedOperation
		err := EachField(encoded, func(tag uint64, data, _ []byte) error {
			op, err := ReadOperation(data)
			if tag == ExtraOperation && err == nil {
				list = append(list, op)
			}
			return err
		})
		if err != nil {
			return
		}
		var again []PostedOperation
		for i := range list {
			op := job.NewOperation{Name: string(list[i].Name), Input: list[i].Input, Priority: list[i].Priority}
			_ = EachField(AppendOperation([]byte{Version}, &op), func(_ uint64, data, _ []byte) error {
				op, err := ReadOperation(data)
				if err != nil {
					t.Fatal(err)
				}
				again = append(again, op)
				return nil
			})
		}
		if diff := cmp.Diff(list, again, cmp.AllowUnexported(PostedOperation{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzExtra(f *testing.F) {
	e := Extra{
		Labels: []job.Label{{Key: "a", Value: "b"}}, MaxAttempts: 3, NotBefore: time.UnixMicro(5).UTC(),
		After: []job.Prerequisite{{ID: job.ID{1}, Statuses: []job.OperationStatus{job.OpError}}, {ID: job.ID{2}}},
	}
	f.Add(e.Encode())
	f.Add([]byte{1, ExtraNotBefore, 1, 0}) // the first moment of 1970
	f.Fuzz(func(t *testing.T, encoded []byte) {
		first, err := ReadExtra(encoded)
		if err != nil {
			return
		}
		second, err := ReadExtra(first.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second, cmp.AllowUnexported(Extra{})); diff != "" {
			t.Fatal(diff)
		}
	})
}
