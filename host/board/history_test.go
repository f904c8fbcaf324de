package board

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// end posts a job, claims it and consumes it.
func end(t testing.TB, b *Board, name, details string) job.ID {
	t.Helper()
	id := post(t, b, job.Posting{Name: name, Details: []byte(details)})[0].ID
	c := claimOne(t, b, ClaimRequest{IDs: []job.ID{id}})
	wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
	return id
}

// kept returns the names of the jobs in the history, oldest first.
func kept(t testing.TB, b *Board) string {
	t.Helper()
	page, err := b.List(t.Context(), ListRequest{States: []job.State{job.Complete}, Details: true})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, j := range page.Jobs {
		if j.Details != nil { // else only a tombstone is left of it
			names = append(names, j.Name)
		}
	}
	return strings.Join(names, " ")
}

// The history keeps as many jobs as it may and no more; the oldest go, and the
// board says so.
func TestHistoryEntries(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		b := start(t, openStore(t), Spec{History: time.Hour, HistoryEntries: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for n, want := range []string{"0", "0 1", "0 1 2", "1 2 3", "2 3 4"} {
			end(t, b, strconv.Itoa(n), "{}")
			synctest.Wait()
			if got := kept(t, b); got != want {
				t.Errorf("after %d ends %q is kept, want %q", n+1, got, want)
			}
			counts, err := b.Count(t.Context())
			if err != nil || counts.History.Jobs != int64(min(n+1, 3)) || counts.History.MaxJobs != 3 || counts.History.Full != (n >= 2) {
				t.Errorf("after %d ends: %+v %v", n+1, counts.History, err)
			}
			if told := strings.Count(log.String(), "the history is full"); told != map[bool]int{true: 1}[n >= 2] {
				t.Errorf("after %d ends the log tells it %d times:\n%s", n+1, told, log.String())
			}
			time.Sleep(time.Second)
		}
	})
}

// Likewise for bytes.
func TestHistoryBytes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		details := `{"a":"` + strings.Repeat("x", 10_000) + `"}`
		b := start(t, openStore(t), Spec{History: time.Hour, HistoryBytes: 35_000})
		for n, want := range []string{"0", "0 1", "0 1 2", "1 2 3"} {
			end(t, b, strconv.Itoa(n), details)
			if got := kept(t, b); got != want {
				t.Errorf("after %d ends %q is kept, want %q", n+1, got, want)
			}
			counts, err := b.Count(t.Context())
			if h := counts.History; err != nil || h.Bytes < h.Jobs*10_000 || h.Bytes > h.MaxBytes || h.MaxBytes != 35_000 || h.Full != (n >= 2) {
				t.Errorf("after %d ends: %+v %v", n+1, h, err)
			}
			time.Sleep(time.Second)
		}
	})
}

// A store that keeps less has the last word; a board without a history says
// nothing of one.
func TestHistoryOfStore(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store := openStore(t)
		less := &spy{Driver: store, t: t, open: func(_ driver.BoardSpec, status driver.BoardStatus) (driver.BoardStatus, error) {
			status.MaxFinals = 10
			return status, nil
		}}
		counts, err := start(t, less, Spec{Name: "less", History: time.Hour}).Count(t.Context())
		if err != nil || counts.History.MaxJobs != 10 || counts.History.Full {
			t.Errorf("%+v %v", counts.History, err)
		}
		counts, err = start(t, store, Spec{Name: "none"}).Count(t.Context())
		if err != nil || counts.History != nil {
			t.Errorf("%+v %v", counts.History, err)
		}
	})
}

// asking counts what a board asks its store.
type asking struct {
	driver.Driver
	calls atomic.Int64
}

func (a *asking) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	a.calls.Add(1)
	return a.Driver.Apply(ctx, board, ops)
}

func (a *asking) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	a.calls.Add(1)
	return a.Driver.Read(ctx, board, ids, parts)
}

func (a *asking) Scan(ctx context.Context, board string, r driver.ScanRequest) iter.Seq2[driver.Page, error] {
	a.calls.Add(1)
	return a.Driver.Scan(ctx, board, r)
}

func (a *asking) Count(ctx context.Context, board string) (driver.Counts, error) {
	a.calls.Add(1)
	return a.Driver.Count(ctx, board)
}

// That jobs leave the history costs the board nothing: no scan, no read, no op.
func TestHistoryExpiresByItself(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store := &asking{Driver: openStore(t)}
		b := start(t, store, Spec{History: time.Hour, Window: time.Minute})
		for n := range 50 {
			end(t, b, strconv.Itoa(n), "{}")
			time.Sleep(time.Second)
		}
		synctest.Wait()
		before := store.calls.Load()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := store.calls.Load() - before; n != 0 {
			t.Errorf("the store was asked %d times while 50 jobs left the history, want never", n)
		}
		counts, err := b.Count(t.Context())
		if err != nil || counts.History.Jobs != 0 || counts.Complete != 0 || kept(t, b) != "" {
			t.Errorf("%+v %v", counts, err)
		}
	})
}
