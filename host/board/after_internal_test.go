package board

import (
	"slices"
	"testing"

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
