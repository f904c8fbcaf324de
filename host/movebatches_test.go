package host_test

import (
	"testing"
	"time"

	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/job"
)

// TestMovedBatch moves a board with a batch that is done: it is done there, too, takes no more
// jobs, and is not followed once more.
func TestMovedBatch(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ctx := within(t)
	post := func(p job.Posting) (job.ID, error) {
		results, err := d.board(0).Post(ctx, []job.Posting{p})
		if err == nil {
			err = results[0].Err
		}
		if err != nil {
			return job.ID{}, err
		}
		return results[0].Job.ID, nil
	}
	if _, err := d.board(0).PutBatch(ctx, "b", &job.Posting{Name: "then"}, 0); err != nil {
		t.Fatal(err)
	}
	id, err := post(job.Posting{Name: "part", Batch: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.board(0).CloseBatch(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	response, err := d.board(0).Claim(ctx, hostboard.ClaimRequest{Owner: "w", IDs: []job.ID{id}})
	if err != nil || len(response.Claims) != 1 {
		t.Fatal(response, err)
	}
	if errs, err := d.board(0).Consume(ctx, []hostboard.Ref{d.refOf(&response.Claims[0])}); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	before, err := d.board(0).Batch(ctx, "b", time.Minute)
	if err != nil || !before.Done() {
		t.Fatalf("before it moves: %+v, %v", before, err)
	}
	d.move(0, "two")
	d.until(catalog.Moved)
	var after hostboard.Batch
	err = again(ctx, func() (err error) { // until this host serves it from there
		after, err = d.board(0).Batch(ctx, "b", time.Minute)
		return err
	})
	before.Group.Followed = after.Group.Followed // the board's own record says so there
	if err != nil || !after.Done() || after.Group != before.Group || after.ThenID != before.ThenID {
		t.Errorf("after it moved: %+v, %v; before: %+v", after, err, before)
	}
	if err := again(ctx, func() error { _, err := post(job.Posting{Name: "part", Batch: "b"}); return err }); job.KindOf(err) != job.NotEligible {
		t.Errorf("a posting of the batch that is closed: %v", err)
	}
	counts, err := d.board(0).Count(ctx)
	if err != nil || counts.Ready != 1 {
		t.Errorf("%+v on the board, %v: want the one job that follows", counts, err)
	}
}

// TestBatchOfAFrozenBoard asks for batches while nothing can be changed.
func TestBatchOfAFrozenBoard(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ctx := within(t)
	if _, err := d.board(0).PutBatch(ctx, "b", &job.Posting{Name: "then"}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := d.board(0).Post(ctx, []job.Posting{{Name: "part", Batch: "b"}}); err != nil {
		t.Fatal(err)
	}
	paused, goOn := d.pauseAt(0, "rest")
	d.move(0, "two")
	paused()
	for i := range d.hosts {
		b, err := d.board(i).Batch(ctx, "b", 0)
		if err != nil || b.Group.Open != 1 || b.Then == nil {
			t.Errorf("host %d: the batch is %+v, %v: want one open job, and what follows it", i, b, err)
		}
		if all, _, err := d.board(i).Batches(ctx, "", 10, nil); err != nil || len(all) != 1 {
			t.Errorf("host %d: the batches are %+v, %v: want one", i, all, err)
		}
		if _, err := d.board(i).CloseBatch(ctx, "b"); job.KindOf(err) != job.Unavailable {
			t.Errorf("host %d: a batch of a frozen board is closed: %v", i, err)
		}
	}
	goOn()
	d.until(catalog.Moved)
}
