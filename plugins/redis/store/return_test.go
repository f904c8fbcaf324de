package store

import (
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestReturn has a board leave for another store and come back, by one host: another one that
// knew it before takes that for no loss, and what it is afterwards lost is found.
func TestReturn(t *testing.T) {
	t.Parallel()
	addr := testserver.StartRedis(t, testserver.RedisOptions{}).Addr
	one, other := openStore(t, addr), openStore(t, addr)
	t.Cleanup(func() {
		for _, s := range []*Store{one, other} {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	opened := func(s *Store, witness []byte) driver.BoardStatus {
		t.Helper()
		status, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "a/b", Witness: witness})
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	post := func(s *Store) {
		t.Helper()
		op := driver.Op{Kind: driver.Post, Posting: &driver.Posting{ID: job.ID{1}, Name: "a"}, Request: [16]byte{1}}
		if r := s.Apply(t.Context(), "a/b", []driver.Op{op}); r[0].Kind != job.NoKind {
			t.Fatal(r[0])
		}
	}
	step := func(m driver.Move) {
		t.Helper()
		m.ID = [16]byte{7}
		if err := one.MoveBoard(t.Context(), "a/b", m); err != nil {
			t.Fatal(err)
		}
	}
	opened(one, nil)
	post(one)
	before := opened(other, nil)
	for _, remembers := range [][]byte{nil, before.Witness} { // by its driver alone, and by the host, too
		if err := one.DropBoard(t.Context(), "a/b"); err != nil { // it has left
			t.Fatal(err)
		}
		now := opened(one, nil)
		step(driver.Move{Step: driver.Receive, Generation: now.Generation + 2, Position: now.Position + 1000})
		step(driver.Move{Step: driver.Admit})
		if status := opened(other, remembers); status.Loss != "" || status.Generation != now.Generation+2 {
			t.Errorf("a board that came back: generation %d, %q", status.Generation, status.Loss)
		}
	}
	post(other)
	status := opened(other, nil)
	if err := one.client.Del(t.Context(), one.boardNamed("a/b").opening.Load().keys.head).Err(); err != nil {
		t.Fatal(err)
	}
	if again := opened(other, status.Witness); again.Loss == "" {
		t.Error("that the board is gone is taken for nothing")
	}
}

// TestMadeAnew has a board dropped and made anew by one host: another one that had it open, and was
// told of that by its host, takes it for no loss.
func TestMadeAnew(t *testing.T) {
	t.Parallel()
	addr := testserver.StartRedis(t, testserver.RedisOptions{}).Addr
	one, other := openStore(t, addr), openStore(t, addr)
	t.Cleanup(func() {
		for _, s := range []*Store{one, other} {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	post := func(s *Store, n byte) {
		t.Helper()
		op := driver.Op{Kind: driver.Post, Posting: &driver.Posting{ID: job.ID{n}, Name: "a"}, Request: [16]byte{n}}
		if r := s.Apply(t.Context(), "a/b", []driver.Op{op}); r[0].Kind != job.NoKind {
			t.Fatal(r[0])
		}
	}
	for n, s := range []*Store{one, other} {
		if _, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "a/b"}); err != nil {
			t.Fatal(err)
		}
		post(s, byte(n+1))
	}
	if err := one.DropBoard(t.Context(), "a/b"); err != nil {
		t.Fatal(err)
	}
	if _, err := one.OpenBoard(t.Context(), driver.BoardSpec{Name: "a/b"}); err != nil {
		t.Fatal(err)
	}
	post(one, 3)
	status, err := other.OpenBoard(t.Context(), driver.BoardSpec{Name: "a/b"})
	if err != nil || status.Loss != "" || status.Generation != 1 {
		t.Errorf("a board that was made anew: generation %d, %q, %v", status.Generation, status.Loss, err)
	}
	post(other, 4)
}
