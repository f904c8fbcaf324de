package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// batchLine says how the jobs of a batch stand.
func batchLine(b *client.Batch) string {
	return fmt.Sprintf("posted %d open %d consumed %d trashed %d closed %v", b.GetPosted(), b.GetOpen(), b.GetConsumed(), b.GetTrashed(), b.GetClosed())
}

// TestMoveABatchWithZooKeeper moves a board with a batch from a file to ZooKeeper, to Redis and
// back, and has one of the batch's jobs consumed in each store: it counts all of them, and what
// follows it comes once, on ZooKeeper.
func TestMoveABatchWithZooKeeper(t *testing.T) {
	t.Parallel()
	m := startMovingBoard(t, time.Minute, "red", "zk")
	ctx := t.Context()
	if _, err := m.board.PutBatch(ctx, "night", &client.NewJob{Name: "sum"}, 5); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 4 {
		jobs, err := m.board.Post(ctx, &client.NewJob{Name: "part", Batch: "night"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, jobs[0].GetUuid())
	}
	consume := func(id string) {
		t.Helper()
		claims, err := m.board.Claim(ctx, client.ClaimOptions{Owner: "w", UUIDs: []string{id}})
		if err != nil || len(claims) != 1 {
			t.Fatalf("the job %s: %v, %v", id, claims, err)
		}
		if err := m.board.Consume(ctx, claims[0]); err != nil {
			t.Fatal(err)
		}
	}
	stands := func(want string) *client.Batch {
		t.Helper()
		b, err := m.board.Batch(ctx, "night", 0)
		if err != nil || batchLine(b) != want {
			t.Fatalf("the batch is %s (%v), want %s", batchLine(b), err, want)
		}
		return b
	}
	consume(ids[0])
	for i, to := range []string{"zk", "red", "zk"} {
		m.move(to, 0)
		stands(fmt.Sprintf("posted 4 open %d consumed %d trashed 0 closed false", 3-i, 1+i))
		consume(ids[1+i])
	}
	stands("posted 4 open 0 consumed 4 trashed 0 closed false")
	if _, err := m.board.Post(ctx, &client.NewJob{Uuid: client.NewUUID(), Name: "part", Batch: "night"}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.board.CloseBatch(ctx, "night"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.board.Post(ctx, &client.NewJob{Name: "late", Batch: "night"}); !errors.Is(err, job.NotEligible) {
		t.Errorf("a job of a closed batch: %v", err)
	}
	claims, err := m.board.Claim(ctx, client.ClaimOptions{Owner: "w", Names: []string{"part"}})
	if err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	if err := m.board.Consume(ctx, claims[0]); err != nil {
		t.Fatal(err)
	}
	done, err := m.board.Batch(ctx, "night", time.Minute)
	if err != nil || !done.GetDone() || done.GetThenUuid() == "" {
		t.Fatalf("the batch is %v, %v: want it done and followed", done, err)
	}
	m.move("disk", 0)
	if _, err := m.board.Batch(ctx, "night", time.Minute); err != nil { // the new store is told a moment later that it is closed
		t.Fatal(err)
	}
	if b := stands("posted 5 open 0 consumed 5 trashed 0 closed true"); !b.GetDone() || b.GetThenUuid() != done.GetThenUuid() {
		t.Errorf("back in the file the batch is %v, want it followed by %s", b, done.GetThenUuid())
	}
	counts, err := m.board.Count(ctx)
	if err != nil || counts.GetUnclaimed() != 1 {
		t.Errorf("the board has %v, %v: want what follows the batch, once", counts, err)
	}
}
