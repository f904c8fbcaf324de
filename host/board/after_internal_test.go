package board

import (
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// TestWaitingBeforeTheIndex looks at a job that waits before the index knows it, as happens
// between the two steps of a post: it is looked at again, and one that is gone is not.
func TestWaitingBeforeTheIndex(t *testing.T) {
	t.Parallel()
	d, err := memdriver.Program().Open(t.Context(), driver.Config{Settings: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	opened, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	first, second, gone := job.ID{1}, job.ID{2}, job.ID{3}
	post := driver.Op{Kind: driver.Post, Posting: &driver.Posting{ID: second, Name: "second"}, Hold: &driver.Hold{Always: true}, Request: [16]byte{1}}
	if r := d.Apply(t.Context(), "b", []driver.Op{post}); r[0].Kind != job.NoKind {
		t.Fatal(r[0])
	}
	b := New(d, Spec{Name: "b", Key: "b"})
	for _, id := range []job.ID{second, gone} {
		b.waiting.add(id, []job.Prerequisite{{ID: first}})
	}
	done, _, again, err := b.judgeWaiting(t.Context(), &opened, []job.ID{second, gone})
	if err != nil || len(done) > 0 || !slices.Equal(again, []job.ID{second}) {
		t.Errorf("let go %v, to be looked at again %v, %v; want none, and the second job", done, again, err)
	}
	if !b.waiting.awaited(first) {
		t.Error("it is forgotten that the second job waits for the first")
	}
	b.waiting.drop(second)
	if b.waiting.awaited(first) {
		t.Error("a job that is gone is said to wait still")
	}
}

// TestDoneOnASharedBoard: where other programs write, a job that is said to be done may yet be
// given back; where nobody but boardd does, what waits for it goes on at once.
func TestDoneOnASharedBoard(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]driver.Capabilities{"alone": {Shared: true, Alone: true}, "with others": {Shared: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := memdriver.Program().Open(t.Context(), driver.Config{Settings: []byte("{}")})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
				t.Fatal(err)
			}
			first, second := job.ID{1}, job.ID{2}
			ops := []driver.Op{
				{Kind: driver.Post, Posting: &driver.Posting{ID: first, Name: "first"}, Request: [16]byte{1}},
				{Kind: driver.Post, Posting: &driver.Posting{ID: second, Name: "second"}, Hold: &driver.Hold{Always: true}, Request: [16]byte{2}},
				{Kind: driver.Remove, Job: first, Request: [16]byte{3}, Ending: &driver.Ending{Outcome: job.Consumed}},
			}
			for i, r := range d.Apply(t.Context(), "b", ops) {
				if r.Kind != job.NoKind {
					t.Fatalf("op %d: %+v", i, r)
				}
			}
			b := New(d, Spec{Name: "b", Key: "b"})
			after := []job.Prerequisite{{ID: first}}
			records, err := b.read(t.Context(), []job.ID{second}, 0)
			if err != nil {
				t.Fatal(err)
			}
			b.index.Put(b.entryWith(&records[0], &record.Extra{After: after}, time.Now()))
			done, _, again, err := b.judgeWaiting(t.Context(), &driver.BoardStatus{Capabilities: caps}, []job.ID{second})
			if err != nil {
				t.Fatal(err)
			}
			if now := len(done) == 1; now != caps.Alone || now == (len(again) == 1) {
				t.Errorf("let go %v, to be looked at again %v", done, again)
			}
		})
	}
}
