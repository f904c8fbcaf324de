package host_test

import (
	"testing"

	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/job"
)

// TestMovedEndings moves a board after its workers have given claims up: who does so once more
// is answered as before, whatever became of the job since, and who does otherwise is not.
func TestMovedEndings(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ctx := within(t)
	ids := d.post(4)
	claims := d.claim(4)
	trash := func(i int) error {
		errs, err := d.board(1).Trash(ctx, []hostboard.Ref{refOn(d.board(1), &claims[i])}, nil, "wrong")
		if err != nil {
			return err
		}
		return errs[0]
	}
	abandon := func(i int) error {
		errs, err := d.board(1).Abandon(ctx, []hostboard.Ref{refOn(d.board(1), &claims[i])}, hostboard.AbandonOptions{})
		if err != nil {
			return err
		}
		return errs[0]
	}
	for i, end := range []func(int) error{trash, abandon, abandon, trash} {
		if err := end(i); err != nil {
			t.Fatal(err)
		}
	}
	d.move(0, "two")
	d.until(catalog.Moved)
	eventually(t, "both hosts serve the board from its new store", func() bool {
		return d.hosts[0].Hosted(d.at()).Config().Backend == "two" && d.hosts[1].Hosted(d.at()).Config().Backend == "two"
	})
	next, err := d.board(0).Claim(ctx, hostboard.ClaimRequest{Owner: "next", IDs: ids[2:3]})
	if err != nil || len(next.Claims) != 1 {
		t.Fatal(next, err)
	}
	if errs, err := d.board(0).Restore(ctx, ids[3:]); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	for i, end := range []func(int) error{trash, abandon, abandon, trash} {
		for range 2 {
			if err := again(ctx, func() error { return end(i) }); err != nil {
				t.Errorf("job %d, whose claim was given up before the move, once more: %v", i, err)
			}
		}
	}
	for i, end := range []func(int) error{abandon, trash, trash, abandon} {
		if err := end(i); job.KindOf(err) != job.LeaseLost {
			t.Errorf("job %d, whose claim ended in another way: %v, want LEASE_LOST", i, err)
		}
	}
	if counts, err := d.board(0).Count(ctx); err != nil || counts.Trashed != 1 || counts.Claimed != 1 || counts.Ready != 2 {
		t.Errorf("%+v on the board, %v: want a job in the trash, one that is claimed and two that are ready", counts, err)
	}
}
