package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
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
		after, err = d.board(0).Batch(ctx, "b", 0)
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

// postOne posts one job and returns its uuid.
func (d *deployment) postOne(i int, p job.Posting) (job.ID, error) {
	results, err := d.board(i).Post(within(d.T), []job.Posting{p})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return job.ID{}, err
	}
	return results[0].Job.ID, nil
}

// away takes a job off the board, so that nothing is left of it.
func (d *deployment) away(id job.ID) {
	d.Helper()
	trashed, err := d.board(0).Trash(within(d.T), nil, []job.ID{id}, "by hand")
	if err == nil {
		err = trashed[0]
	}
	if err == nil {
		var purged []error
		if purged, err = d.board(0).Purge(within(d.T), []job.ID{id}); err == nil {
			err = purged[0]
		}
	}
	if err != nil {
		d.Fatal(err)
	}
}

// TestMovedBatchWithAPurge moves a batch, of which a job was purged, to another store and back:
// it counts what it did, and is complete with as many jobs as it was told.
func TestMovedBatchWithAPurge(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ctx := within(t)
	if _, err := d.board(0).PutBatch(ctx, "b", &job.Posting{Name: "then"}, 4); err != nil {
		t.Fatal(err)
	}
	var ids []job.ID
	for range 3 {
		id, err := d.postOne(0, job.Posting{Name: "part", Batch: "b"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	d.away(ids[0])
	if _, err := d.board(0).Cancel(ctx, ids[1:2], false); err != nil {
		t.Fatal(err)
	}
	want := driver.Group{Open: 1, Canceled: 1, Purged: 1}
	for i, to := range []string{"two", "one", "two"} {
		d.move(i%2, to)
		d.until(catalog.Moved)
		var shown hostboard.Batch
		err := again(ctx, func() (err error) {
			shown, err = d.board(0).Batch(ctx, "b", 0)
			return err
		})
		if err != nil || shown.Group != want {
			t.Fatalf("on %s the batch counts %+v, %v: want %+v", to, shown.Group, err, want)
		}
		if i == 0 {
			d.away(ids[2])
			want.Open, want.Purged = 0, 2
		}
	}
	if err := again(ctx, func() error { _, err := d.postOne(0, job.Posting{Name: "part", Batch: "b"}); return err }); err != nil {
		t.Fatal(err)
	}
	d.claim(1)
	want.Open, want.Closed = 1, true
	eventually(t, "the batch has as many jobs as it was told, and is closed", func() bool {
		shown, err := d.board(0).Batch(ctx, "b", 0)
		return err == nil && shown.Group == want
	})
}

// TestMovedBatchThatWasFollowed moves a batch whose record did not say yet that it was followed,
// when nothing was left of what followed it: it is not followed once more.
func TestMovedBatchThatWasFollowed(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ctx := within(t)
	if _, err := d.board(0).PutBatch(ctx, "b", &job.Posting{Name: "then"}, 0); err != nil {
		t.Fatal(err)
	}
	id, err := d.postOne(0, job.Posting{Name: "part", Batch: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.board(0).CloseBatch(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	d.one.keep.Store(true)
	d.away(id)
	var then job.ID
	eventually(t, "the batch is followed", func() bool {
		shown, err := d.board(0).Batch(ctx, "b", 0)
		then = shown.ThenID
		return err == nil && then != (job.ID{})
	})
	d.away(then)
	d.move(0, "two")
	d.until(catalog.Moved)
	d.one.keep.Store(false)
	var shown hostboard.Batch
	err = again(ctx, func() (err error) {
		shown, err = d.board(0).Batch(ctx, "b", time.Minute)
		return err
	})
	if err != nil || !shown.Done() || shown.ThenID != then {
		t.Errorf("after it moved: %+v, %v: want it done, and followed by %v", shown, err, then)
	}
	if counts, err := d.board(0).Count(ctx); err != nil || counts.Ready != 0 {
		t.Errorf("%+v on the board, %v: want nothing, as what followed the batch was purged", counts, err)
	}
}

// TestMoveWithoutBatches moves a board to a store that counts no batches: one that is not done is
// in the way, also where it begins while the board is brought there, and one that is done is not.
func TestMoveWithoutBatches(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ctx := within(t)
	d.two.plain.Store(true)
	if _, err := d.board(0).PutBatch(ctx, "b", nil, 2); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		if _, _, err := d.as[0].MoveBoard(ctx, tenant.Default, "builds", "two", host.MoveOptions{Dry: dry}); job.KindOf(err) != job.Precondition || !strings.Contains(err.Error(), `"b"`) {
			t.Errorf("a move with a batch that is not done: %v", err)
		}
	}
	for range 2 {
		results, err := d.board(0).Post(ctx, []job.Posting{{Name: "part", Batch: "b"}})
		if err != nil || results[0].Err != nil {
			t.Fatal(results, err)
		}
		response, err := d.board(0).Claim(ctx, hostboard.ClaimRequest{Owner: "w", IDs: []job.ID{results[0].Job.ID}})
		if err != nil || len(response.Claims) != 1 {
			t.Fatal(response, err)
		}
		if errs, err := d.board(0).Consume(ctx, []hostboard.Ref{d.refOf(&response.Claims[0])}); err != nil || errs[0] != nil {
			t.Fatal(err, errs)
		}
	}
	if b, err := d.board(0).Batch(ctx, "b", time.Minute); err != nil || !b.Done() {
		t.Fatalf("the batch is %+v, %v", b, err)
	}
	if _, notes, err := d.as[0].MoveBoard(ctx, tenant.Default, "builds", "two", host.MoveOptions{Dry: true}); err != nil || !strings.Contains(strings.Join(notes, "\n"), "keeps 1 jobs of the history") {
		t.Errorf("a plan of a move with two jobs in the history to where one is kept: %q, %v", notes, err)
	}
	paused, goOn := d.pauseAt(0, "documents")
	d.move(0, "two")
	paused()
	if results, err := d.board(0).Post(ctx, []job.Posting{{Name: "part", Batch: "late"}}); err != nil || results[0].Err != nil {
		t.Fatal(results, err)
	}
	goOn()
	if m := d.until(catalog.Abandoned); !strings.Contains(m.Problem, `"late"`) {
		t.Errorf("the move ended with %q: want the name of the batch that began meanwhile", m.Problem)
	}
}
