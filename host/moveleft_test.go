package host_test

import (
	"testing"

	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// read asks a host for a job and for a batch.
func (d *deployment) read(i int, id job.ID) (one, batch error) {
	d.Helper()
	b := d.board(i)
	results, one := b.Get(within(d.T), []job.ID{id}, hostboard.GetOptions{})
	if one == nil {
		one = results[0].Err
	}
	_, batch = b.Batch(within(d.T), "b", 0)
	return one, batch
}

// TestLeftBoard asks a host that has not heard that its board is in another store: it is not
// told how a job stood in the old one. A frozen board is read.
func TestLeftBoard(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	results, err := d.board(0).Post(within(t), []job.Posting{{Name: "part", Batch: "b"}})
	if err != nil || results[0].Err != nil {
		t.Fatal(results, err)
	}
	id := results[0].Job.ID
	for i := range d.hosts {
		d.board(i) // from now on it is open there
	}
	paused, goOn := d.pauseAt(0, "leave")
	d.move(0, "two")
	paused()
	for i := range d.hosts {
		if one, batch := d.read(i, id); one != nil || batch != nil {
			t.Errorf("host %d: a job of a frozen board: %v, and a batch: %v", i, one, batch)
		}
	}
	left, goOnToo := d.pauseAt(0, "switch") // before anybody can have heard of it
	goOn()
	left()
	for i := range d.hosts {
		if one, batch := d.read(i, id); job.KindOf(one) != job.Unavailable || job.KindOf(batch) != job.Unavailable {
			t.Errorf("host %d: a job of a board that has gone: %v, and a batch: %v, want UNAVAILABLE", i, one, batch)
		}
	}
	goOnToo()
	d.until(catalog.Moved)
	for i := range d.hosts {
		if err := again(within(t), func() error { one, _ := d.read(i, id); return one }); err != nil {
			t.Errorf("host %d: a job of a board that has moved: %v", i, err)
		}
	}
}

// TestLeftBoardComesBack gives a move up after the old store was left.
func TestLeftBoardComesBack(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	id := d.post(1)[0]
	paused, goOn := d.pauseAt(0, "switch")
	d.move(0, "two")
	paused()
	if one, _ := d.read(1, id); job.KindOf(one) != job.Unavailable {
		t.Errorf("a job of a board that has gone: %v, want UNAVAILABLE", one)
	}
	if _, err := d.as[1].AbandonMove(within(t), tenant.Default, "builds"); err != nil {
		t.Fatal(err)
	}
	goOn()
	d.until(catalog.Abandoned)
	for i := range d.hosts {
		if one, _ := d.read(i, id); one != nil {
			t.Errorf("host %d: a job of a board whose move was given up: %v", i, one)
		}
	}
	d.claim(1)
}
