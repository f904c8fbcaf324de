package store

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

const beyond = 1 << 50 // further than ZooKeeper is

var aMove = [16]byte{7}

func (s *Store) move(t *testing.T, m driver.Move) {
	t.Helper()
	m.ID = aMove
	if err := s.MoveBoard(t.Context(), "b", m); err != nil {
		t.Fatalf("step %d of a move: %v", m.Step, err)
	}
}

func (s *Store) noMove(t *testing.T, step driver.MoveStep, why string) {
	t.Helper()
	err := s.MoveBoard(t.Context(), "b", driver.Move{Step: step, ID: aMove})
	if job.KindOf(err) != job.Precondition || !strings.Contains(err.Error(), why) {
		t.Errorf("step %d of a move: %v; want it refused, since %q", step, err, why)
	}
}

func (s *Store) claimOne(t *testing.T, id job.ID) driver.Claimed {
	t.Helper()
	r := s.one(t, driver.Op{Kind: driver.Claim, Event: job.ClaimedEvent, Claim: &driver.ClaimSpec{
		Count: 1, Owner: "w", Lease: time.Minute, Candidates: []driver.Candidate{{Job: id, Nonce: [16]byte{1}}},
	}})
	if len(r.Claims) != 1 {
		t.Fatalf("a claim: %+v", r)
	}
	return r.Claims[0]
}

func (s *Store) read(t *testing.T, id job.ID) driver.Record {
	t.Helper()
	list, err := s.Read(t.Context(), "b", []job.ID{id}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// TestMovedPositions has a board come from a store where it was further than ZooKeeper is, while
// other hosts have it open: all hosts show its changes and tokens alike, beyond what there was,
// also one that comes later.
func TestMovedPositions(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	first, _ := inside(t, z, Options{})
	second, b := inside(t, z, Options{})
	for _, far := range []driver.Position{math.MaxInt64, math.MaxUint64} {
		err := first.MoveBoard(t.Context(), "b", driver.Move{Step: driver.Receive, ID: aMove, Position: far})
		if job.KindOf(err) != job.Invalid {
			t.Errorf("a board that was at position %d: %v, want %v", far, err, job.Invalid)
		}
	}
	first.move(t, driver.Move{Step: driver.Receive, Generation: 3, Position: beyond})
	status, err := second.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"})
	if err != nil || status.Generation != 3 || status.Position <= beyond || status.Loss != "" {
		t.Fatalf("a host that had the board open: %+v, %v", status, err)
	}
	first.move(t, driver.Move{Step: driver.Admit})
	id := first.post(t)
	var told driver.Change
	for changes, err := range second.Watch(t.Context(), "b", status.Position) {
		if err != nil {
			t.Fatal(err)
		}
		if changes.Position <= status.Position {
			t.Errorf("a watch from %d is told of %d", status.Position, changes.Position)
		}
		if len(changes.List) > 0 {
			told = changes.List[0]
			break
		}
	}
	if r := first.read(t, id); told.Job != id || told.Position != r.Position || told.Record.Position != r.Position || r.Position <= beyond {
		t.Errorf("one host shows the job at %d, and the other told of it at %d with %d: want the same, beyond %d", r.Position, told.Position, told.Record.Position, beyond)
	}
	c := second.claimOne(t, id)
	third, _ := inside(t, z, Options{})
	for n, s := range []*Store{first, second, third} {
		r := s.read(t, id)
		if r.Holder == nil || r.Holder.Token != c.Token || c.Token.Epoch <= beyond || r.Position != c.Position || uint64(r.Position) != c.Token.Epoch {
			t.Errorf("host %d shows %+v, held by %+v: want the claim %+v", n, r, r.Holder, c)
		}
	}
	first.one(t, driver.Op{Kind: driver.Extend, Job: id, Precondition: driver.HeldByToken, Token: c.Token, Lease: time.Minute})
	again, err := third.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Witness: status.Witness, Seen: c.Position})
	if err != nil || again.Loss != "" {
		t.Errorf("the board as a host remembers it: %+v, %v", again, err)
	}
	if lost, _ := b.root.recall(again.Witness, uint64(c.Position), uint64(c.Position)-1); lost == "" {
		t.Error("a change that was seen is gone, and nothing is said to be lost")
	}
}

// TestReceiveBegun has a host end after it kept others from claiming and before it looked whether
// somebody had: nothing comes in, and who goes on looks.
func TestReceiveBegun(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	c := s.claimOne(t, s.post(t))
	begin := func() {
		t.Helper()
		b.mu.Lock()
		r := b.root
		b.mu.Unlock()
		if _, err := b.receive(t.Context(), r, &driver.Move{Step: driver.Receive, ID: aMove}); err != nil || !b.root.entering {
			t.Fatalf("the board is %+v, %v", b.root, err)
		}
	}
	begin()
	p := &driver.Posting{ID: job.ID{9}, Name: "a job", Encoding: job.JSON, Details: []byte(`{}`)}
	brought := driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Import: &driver.Import{CreatedAt: time.Now(), Move: aMove}}
	if r := s.Apply(t.Context(), "b", []driver.Op{brought})[0]; r.Kind != job.Unavailable {
		t.Errorf("an import before the board has received: %v, want %v", r.Kind, job.Unavailable)
	}
	next, _ := inside(t, z, Options{})
	next.noMove(t, driver.Receive, "somebody holds a job")
	s.one(t, driver.Op{Kind: driver.Remove, Job: c.Job, Precondition: driver.HeldByToken, Token: c.Token})
	begin()
	next.move(t, driver.Move{Step: driver.Receive, Position: beyond})
	if r := s.one(t, brought); r.Position <= beyond {
		t.Errorf("an import is at %d, want it beyond %d", r.Position, beyond)
	}
}

// TestSharedBoardStays: a board to which other programs write is not moved, and says why.
func TestSharedBoardStays(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	id := s.post(t)
	for settings, why := range map[string]string{`{"foreign":true}`: "foreign = false", `{"claims":"session"}`: "claims = \"lease\""} {
		status, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Settings: []byte(settings)})
		if err != nil || status.Capabilities.Moves {
			t.Errorf("a board with %s: %+v, %v: want that it does not move", settings, status.Capabilities, err)
		}
		s.noMove(t, driver.Freeze, why)
		s.noMove(t, driver.Receive, why)
	}
	open := func(settings string) {
		t.Helper()
		if _, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Settings: []byte(settings)}); err != nil {
			t.Fatal(err)
		}
	}
	open(`{}`)
	s.move(t, driver.Move{Step: driver.Freeze})
	open(`{"foreign":true}`)
	s.move(t, driver.Move{Step: driver.Thaw}) // or it would stay frozen
	open(`{}`)
	data, err := taskflow.EncodeLock("a conductor")
	if err != nil {
		t.Fatal(err)
	}
	lock := b.at.Lock(b.known(id).node)
	m := b.client().Multi(session.World())
	m.Create(lock, data, session.Persistent)
	if _, err := m.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another program's claim is seen", func() bool { return s.read(t, id).State == job.Claimed })
	eventually(t, "and what it means", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.other == id })
	s.noMove(t, driver.Freeze, id.String())
	b.mu.Lock()
	b.other = job.ID{} // as a host that has seen the claim from the beginning
	b.mu.Unlock()
	s.noMove(t, driver.Freeze, "its claim cannot come along")
	s.noMove(t, driver.Receive, "somebody holds a job")
	if err := s.deleteThese(t.Context(), []string{lock}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the claim is gone", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.tally.claimed == 0 })
	b.mu.Lock()
	b.other = job.ID{}
	b.mu.Unlock()
	s.move(t, driver.Move{Step: driver.Freeze})
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: not yet that %s", what)
		}
	}
}

// TestFrozenBoardRests: boardd does nothing by itself with a board that is frozen, and what was
// due meanwhile once it goes on, whichever host thawed it. A program of before reads it then.
func TestFrozenBoardRests(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	other, _ := inside(t, z, Options{})
	id := s.post(t)
	before := node(t, b, b.at.own)
	s.one(t, driver.Op{Kind: driver.Update, Job: id, Event: job.OperationEvent, Hold: &driver.Hold{For: time.Hour}})
	s.move(t, driver.Move{Step: driver.Freeze})
	s.clock.offset.Add((2 * time.Hour).Milliseconds())
	v := b.known(id)
	if v.waits(b.now()) {
		t.Error("the hold has not ended")
	}
	if err := b.release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := b.chores(t.Context()); err != nil {
		t.Error(err)
	}
	lock := b.at.Lock(v.node)
	if stat, err := b.client().Exists(t.Context(), lock); stat == nil || err != nil {
		t.Errorf("the lock of a job that was held back is gone from a frozen board, %v", err)
	}
	other.move(t, driver.Move{Step: driver.Thaw})
	eventually(t, "the lock is gone", func() bool {
		stat, err := b.client().Exists(t.Context(), lock)
		return stat == nil && err == nil
	})
	if after := node(t, b, b.at.own); !bytes.Equal(before, after) {
		t.Errorf("after a move that was given up the board's root is %x, and was %x", after, before)
	}
}

func node(t *testing.T, b *board, path string) []byte {
	t.Helper()
	n, err := b.client().Get(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	return n.Data
}

// TestDocumentsOfAMovingBoard: a host that does not have the board open keeps to the move as well,
// and whichever document it changed last.
func TestDocumentsOfAMovingBoard(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, _ := inside(t, z, Options{})
	other, _ := inside(t, z, Options{})
	if err := other.DropBoard(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	space := driver.Space{Board: "b", Name: driver.SettingSpace}
	put := func(version uint64) (uint64, error) {
		return other.Documents().Put(t.Context(), space, driver.Document{Name: "a", Data: []byte("x")}, version)
	}
	version, err := put(0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.move(t, driver.Move{Step: driver.Freeze})
		for range 2 {
			if _, err := put(version); job.KindOf(err) != job.Unavailable {
				t.Errorf("a document of a frozen board is changed: %v", err)
			}
			if err := other.Documents().Delete(t.Context(), space, "a", version); job.KindOf(err) != job.Unavailable {
				t.Errorf("a document of a frozen board is deleted: %v", err)
			}
		}
		s.move(t, driver.Move{Step: driver.Thaw})
		if version, err = put(version); err != nil {
			t.Errorf("a document of a board that was thawed: %v", err)
		}
	}
	s.move(t, driver.Move{Step: driver.Freeze})
	if err := s.DropBoard(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := put(0); err != nil {
		t.Errorf("a document of a board that was dropped while it was frozen: %v", err)
	}
}

// TestFrozenPositions has a frozen board be left, which is a change in ZooKeeper, and none of the
// board, and then has a host find an extension of before: no host says of it that it has come further,
// so that nobody has a cursor which the new store would take for one of its own.
func TestFrozenPositions(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	first, _ := inside(t, z, Options{})
	_, b := inside(t, z, Options{})
	id := first.post(t)
	first.move(t, driver.Move{Step: driver.Freeze})
	var frozen driver.Position
	for page, err := range first.Scan(t.Context(), "b", driver.ScanRequest{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		frozen = page.Position
	}
	heard := func(what string, so func() bool) {
		t.Helper()
		testserver.Eventually(t, what, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return so()
		})
	}
	heard("the other host knows that the board is frozen", func() bool { return b.frozen > 0 })
	first.move(t, driver.Move{Step: driver.Leave})
	heard("the other host knows that it was left", func() bool { return b.instant().shown(b.events.told) > frozen })
	b.mu.Lock()
	b.emit(job.Extended, &driver.Record{Posting: driver.Posting{ID: id}}, uint64(frozen)-1, 0, "", "w")
	b.events.tell(b.events.told + 10)
	b.mu.Unlock()
	w := &watcher{board: b}
	changes, _, _, err := w.step()
	beyond := func(c driver.Change) bool { return c.Position > frozen }
	if err != nil || changes.Position != frozen || slices.ContainsFunc(changes.List, beyond) {
		t.Errorf("a watch is at %d, %v, and tells of %+v: want %d, where the board was frozen", changes.Position, err, changes.List, frozen)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if status := b.status(); status.Position != frozen {
		t.Errorf("the board is at %d: want %d", status.Position, frozen)
	}
}

// TestWatchOfAnotherHost has a host that opened a board before the imports came be asked for what
// was done since a position between them, at which a watcher of the old board may be: it begins
// anew, and what is done after the move is told.
func TestWatchOfAnotherHost(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	first, _ := inside(t, z, Options{})
	second, _ := inside(t, z, Options{})
	open := func() driver.BoardStatus {
		t.Helper()
		status, err := second.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"})
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	begins := func(after driver.Position) driver.Changes {
		t.Helper()
		for changes, err := range second.Watch(t.Context(), "b", after) {
			if err != nil {
				t.Fatal(err)
			}
			return changes
		}
		return driver.Changes{}
	}
	first.move(t, driver.Move{Step: driver.Receive, Position: beyond})
	open()
	var at []driver.Position
	for n := range byte(3) {
		p := &driver.Posting{ID: job.ID{9, n}, Name: "a job", Encoding: job.JSON, Details: []byte(`{}`)}
		r := first.one(t, driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Import: &driver.Import{CreatedAt: time.Now(), Move: aMove}})
		at = append(at, r.Position)
	}
	first.move(t, driver.Move{Step: driver.Receive, Position: beyond})
	first.move(t, driver.Move{Step: driver.Admit})
	admitted := open().Position
	if changes := begins(at[1]); !changes.Resync || changes.Position < at[2] {
		t.Errorf("a watch from %d, between the imports at %d, begins with %+v", at[1], at, changes)
	}
	id := first.post(t)
	if changes := begins(admitted); changes.Resync || len(changes.List) != 1 || changes.List[0].Job != id {
		t.Errorf("a watch from %d, where the board was admitted, begins with %+v: want job %s", admitted, changes, id)
	}
}
