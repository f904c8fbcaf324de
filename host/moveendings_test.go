package host_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
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

// TestMoveWaitsForClaims: claims that cannot come along are waited for as long as was asked, also
// where that is longer than a move is tried.
func TestMoveWaitsForClaims(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	for i := range d.hosts {
		host.SetMoves(d.hosts[i], nil, time.Hour, 50*time.Millisecond)
	}
	d.later()
	d.post(1)
	claim := d.claim(1)[0]
	if _, _, err := d.as[0].MoveBoard(within(t), tenant.Default, "builds", "two", host.MoveOptions{Wait: time.Hour}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // ten times as long as a move is tried
	if m, err := d.as[1].Move(within(t), tenant.Default, "builds"); err != nil || m.State != catalog.Preparing {
		t.Errorf("the move is %s, %v: want one that waits", m.State, err)
	}
	if errs, err := d.board(0).Consume(within(t), []hostboard.Ref{d.refOf(&claim)}); err != nil || errs[0] != nil {
		t.Errorf("a claim that is waited for: %v, %v", err, errs)
	}
	d.until(catalog.Moved)
}

// later has the second store be in a later generation of the board.
func (d *deployment) later() {
	d.Helper()
	spec := driver.BoardSpec{Name: tenant.Default + "/builds", Settings: []byte("{}"), Seen: 100}
	if _, err := d.two.OpenBoard(within(d.T), spec); err != nil {
		d.Fatal(err)
	}
}

// TestAbandonedMoveToNowhere: a move is given up though what it brought cannot be taken away, and the
// board goes on. It can be deleted then.
func TestAbandonedMoveToNowhere(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.post(2)
	var frozen atomic.Bool
	host.SetMoves(d.hosts[1], nil, time.Hour, 50*time.Millisecond)
	host.SetMoves(d.hosts[0], func(name string) error {
		if name == "rest" && !frozen.Swap(true) {
			d.two.stuck.Store(true)
			_, err := d.as[1].AbandonMove(within(t), tenant.Default, "builds")
			if err != nil {
				t.Error(err)
			}
		}
		return nil
	}, time.Hour, 50*time.Millisecond)
	d.move(0, "two")
	if m := d.until(catalog.Abandoned); !strings.Contains(m.Problem, "keeps what was brought") {
		t.Errorf("the move says %q", m.Problem)
	}
	eventually(t, "the host that is asked knows of it", func() bool {
		m, err := d.as[0].Move(within(t), tenant.Default, "builds")
		return err == nil && m.State == catalog.Abandoned
	})
	d.post(1)
	if err := d.as[0].DeleteBoard(within(t), tenant.Default, "builds", 0, false); err != nil {
		t.Error(err)
	}
	d.two.stuck.Store(false)
	if err := d.as[0].DeleteBoard(within(t), tenant.Default, "builds", 0, true); err != nil {
		t.Error(err)
	}
	for _, store := range []string{"one", "two"} {
		if places, err := d.hosts[0].Places(within(t), store, "", 0); err != nil || len(places) > 0 {
			t.Errorf("the store %s still has %+v, %v", store, places, err)
		}
	}
}
