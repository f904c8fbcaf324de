package store

import (
	"context"
	"slices"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// TestAnswerLost has changes be made whose answers are lost, and found out about only
// after the log has told watchers of them: they are told once, and the op is answered as
// done now, and not as repeated, even if the job could not be read at first.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	id := s.post(t)
	a := newAttempt(b, id, func() bool { return true })
	a.known, a.search, a.doubt = true, anywhere, true
	_, _, w := unanswered(t, b, id, a.mark)
	testserver.Eventually(t, "watchers are told", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.events.told >= w.zxid
	})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	a.look(gone) // the connection is lost once more
	if a.view != nil {
		t.Fatal("the job was read without a connection")
	}
	a.look(t.Context())
	r := a.run(t.Context(), func(*view, instant) (*change, *driver.Result, error) {
		return nil, &driver.Result{Repeated: true}, nil // what the record says
	}, func(_ *view, w written) driver.Result { return driver.Result{Position: driver.Position(w.zxid)} })
	if r.Repeated || uint64(r.Position) != w.zxid {
		t.Errorf("a change whose answer was lost is answered as %+v, want it done at %d", r, w.zxid)
	}
	s.post(t) // and all before that is told
	if told := toldOf(b, id); !slices.Equal(told, []driver.Position{driver.Position(w.zxid)}) {
		t.Errorf("watchers are told of the change at %v, want once at %d", told, w.zxid)
	}
}

// unanswered makes an update of a job whose answer the board does not get.
func unanswered(t *testing.T, b *board, id job.ID, mark [16]byte) (*view, *change, written) {
	t.Helper()
	op := driver.Op{Kind: driver.Update, Job: id, Event: job.OperationEvent, Request: [16]byte{1}}
	var plan transition.Plan
	ch, refused := b.planned(&op, &plan, b.known(id), b.now(), true)
	if refused != nil {
		t.Fatalf("an update of a job that is there: %+v", refused)
	}
	ch.rec.mark = mark
	ch.rec.changed()
	b.mu.Lock()
	root, acl, v := b.root, b.acl, b.jobs[id]
	b.mu.Unlock()
	next, w, err := b.transact(t.Context(), v, ch, root, acl, func(*session.Multi) {})
	if err != nil {
		t.Fatal(err)
	}
	return next, ch, w
}

// toldOf returns the positions at which watchers were told, or will be, that a job was
// updated.
func toldOf(b *board, id job.ID) []driver.Position {
	b.mu.Lock()
	defer b.mu.Unlock()
	var told []driver.Position
	for _, c := range slices.Concat(b.events.list, b.events.waiting) {
		if c.Job == id && c.Event == job.OperationEvent {
			told = append(told, c.Position)
		}
	}
	return told
}
