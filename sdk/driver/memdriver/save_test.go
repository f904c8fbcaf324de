package memdriver_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// TestSaved runs the suite's restarts on drivers that are saved when they are
// closed, and loaded when they are opened again.
func TestSaved(t *testing.T) {
	t.Parallel()
	drivertest.RunIn(t, synctest.Test, drivertest.Harness{
		Only: []string{"restart"},
		Open: func(t drivertest.T) driver.Driver { return openFor(t) },
		Store: func(t drivertest.T) func() driver.Driver {
			boards := map[string][]byte{}
			return func() driver.Driver {
				d := openFor(t)
				for _, data := range boards {
					if err := memdriver.Load(d, bytes.NewReader(data)); err != nil {
						t.Fatalf("Load: %v", err)
					}
				}
				return &savedOnClose{Driver: d, boards: boards}
			}
		},
	})
}

func openFor(t drivertest.T) driver.Driver {
	d, err := memdriver.Open(t.Context(), driver.Config{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return d
}

type savedOnClose struct {
	driver.Driver
	boards map[string][]byte
}

func (s *savedOnClose) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	s.boards[spec.Name] = nil
	return s.Driver.OpenBoard(ctx, spec)
}

func (s *savedOnClose) Close() error {
	for name := range s.boards {
		var out bytes.Buffer
		if err := memdriver.Save(s.Driver, name, &out); err != nil {
			return err
		}
		s.boards[name] = out.Bytes()
	}
	return s.Driver.Close()
}

// TestSaveTwice checks that a board that was loaded is saved as it was: nothing
// is lost on the way, whatever the jobs have.
func TestSaveTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := busy(t)
		second := open(t)
		if err := memdriver.Load(second, strings.NewReader(first)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, saved(t, second)); diff != "" {
			t.Errorf("saved, loaded and saved again (-first +second):\n%s", diff)
		}
	})
}

func TestRolledBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := open(t)
	spec := driver.BoardSpec{Name: "b"}
	if _, err := d.OpenBoard(ctx, spec); err != nil {
		t.Fatal(err)
	}
	backup := saved(t, d)
	d.Apply(ctx, "b", []driver.Op{{Kind: driver.Post, Posting: &driver.Posting{ID: job.ID{1}}}})
	status, err := d.OpenBoard(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	spec.Witness = status.Witness
	restored := open(t)
	if err := memdriver.Load(restored, strings.NewReader(backup)); err != nil {
		t.Fatal(err)
	}
	if status, err := restored.OpenBoard(ctx, spec); err != nil || status.Loss == "" || status.Generation != 2 {
		t.Errorf("opened from a backup: %+v, %v; want a loss and generation 2", status, err)
	}
}

func TestSaveOthers(t *testing.T) {
	t.Parallel()
	other := struct{ driver.Driver }{}
	if err := memdriver.Save(other, "b", io.Discard); err == nil {
		t.Error("another driver was saved")
	}
	if err := memdriver.Load(other, strings.NewReader("{}")); err == nil {
		t.Error("a board was loaded into another driver")
	}
}

// busy returns a saved board with one job of each sort, in an order that does not
// depend on chance: one job of a sort, one document.
func busy(t *testing.T) string {
	t.Helper()
	ctx := t.Context()
	d := open(t)
	if _, err := d.OpenBoard(ctx, driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	status, id := []byte{}, job.ID{1}
	ops := []driver.Op{
		{Kind: driver.Post, Request: [16]byte{1}, Posting: &driver.Posting{ID: id, Name: "n\x00ö", Details: []byte{0xff, 0}, Extra: []byte{}}},
		{Kind: driver.Update, Job: id, Request: [16]byte{2}, Status: &status, Attach: []driver.Attachment{{Name: "a", Data: []byte("x")}}},
		{Kind: driver.Claim, Request: [16]byte{3}, Claim: &driver.ClaimSpec{
			Candidates: []driver.Candidate{{Job: id, Nonce: [16]byte{4}, Limits: []driver.Limit{{Key: "k", Max: 1}}}},
			Count:      1, Owner: "w", Lease: time.Minute, Remember: true,
		}},
		{Kind: driver.Post, Posting: &driver.Posting{ID: job.ID{2}}},
		{Kind: driver.Remove, Job: job.ID{2}, Ending: &driver.Ending{Outcome: job.Failed, Keep: time.Hour, KeepPosting: true, Data: []byte("f")}},
	}
	for _, r := range d.Apply(ctx, "b", ops) {
		if r.Kind != job.NoKind {
			t.Fatalf("%v: %s", r.Kind, r.Message)
		}
	}
	if _, err := d.Documents().Put(ctx, driver.Space{Board: "b", Name: "s"}, driver.Document{Name: "d"}, 0); err != nil {
		t.Fatal(err)
	}
	return saved(t, d)
}

func saved(t *testing.T, d driver.Driver) string {
	t.Helper()
	var out bytes.Buffer
	if err := memdriver.Save(d, "b", &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// FuzzLoad checks that no file makes Load panic, and that what it took can be
// opened, read and saved.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"Name":"b","Board":{"Jobs":[{"Record":{"State":1}}],"Ended":[{"Final":true}],"Stamps":[{"Ended":true}]}}`))
	f.Add([]byte(`{"Name":"b","Documents":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := open(t)
		if memdriver.Load(d, bytes.NewReader(data)) != nil {
			return
		}
		if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Count(t.Context(), "b"); err != nil {
			t.Error(err)
		}
		saved(t, d)
	})
}
