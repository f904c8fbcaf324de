package board

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// slowReads is a driver whose answers to Read come when something else has happened.
type slowReads struct {
	driver.Driver
	meanwhile func() // called once
	gone      bool   // whether it knows no job
}

func (d *slowReads) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	records, err := d.Driver.Read(ctx, board, ids, parts)
	if meanwhile := d.meanwhile; meanwhile != nil {
		d.meanwhile = nil
		meanwhile()
	}
	if d.gone {
		clear(records)
	}
	return records, err
}

// TestPostedWhileItWasReadAsUnknown: an answer that a job is unknown takes it off no board that
// another host has put it on meanwhile.
func TestPostedWhileItWasReadAsUnknown(t *testing.T) {
	t.Parallel()
	id := job.ID{15: 1}
	for name, read := range map[string]func(*testing.T, *Board) error{
		"get": func(t *testing.T, b *Board) error {
			_, err := b.Get(t.Context(), []job.ID{id}, GetOptions{})
			return err
		},
		"claim": func(t *testing.T, b *Board) error {
			r, err := b.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: []job.ID{id}})
			for _, c := range r.Claims {
				_, _ = b.Abandon(t.Context(), []Ref{refOf(b, c)}, AbandonOptions{})
			}
			return err
		},
		"trash": func(t *testing.T, b *Board) error {
			_, err := b.Trash(t.Context(), nil, []job.ID{id}, "")
			return err
		},
		"reread": func(t *testing.T, b *Board) error {
			b.reread(t.Context(), id)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				store := openStore(t)
				slow := &slowReads{Driver: store}
				b, other := start(t, slow, Spec{}), start(t, store, Spec{})
				slow.meanwhile = func() {
					if _, err := other.Post(t.Context(), []job.Posting{{ID: id, Name: "job"}}); err != nil {
						t.Error(err)
					}
					synctest.Wait()
				}
				if err := read(t, b); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if n := b.index.Count().Ready; n != 1 {
					t.Fatalf("%d jobs are ready on a board of one", n)
				}
				claimOne(t, b, ClaimRequest{})
			})
		})
	}
}

// TestGoneAndChangedMeanwhile: whoever is told that a job is gone does not find it among the open
// ones afterwards, though a change before that arrived while the store was asked.
func TestGoneAndChangedMeanwhile(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store := openStore(t)
		slow := &slowReads{Driver: store}
		b, other := start(t, slow, Spec{}), start(t, store, Spec{})
		id := postN(t, other, 1)[0].ID
		synctest.Wait()
		slow.gone = true
		slow.meanwhile = func() {
			claimOne(t, other, ClaimRequest{})
			synctest.Wait()
		}
		results, err := b.Get(t.Context(), []job.ID{id}, GetOptions{})
		if err != nil || job.KindOf(results[0].Err) != job.NotFound {
			t.Fatal(results, err)
		}
		if n := b.index.Count(); n.Ready != 0 || n.Claimed != 0 {
			t.Errorf("a job that is gone is counted: %+v", n)
		}
	})
}

// TestEntryOfChangedPriority: an entry does not grow with the changes of a job whose priority was
// changed, and knows the posting's own.
func TestEntryOfChangedPriority(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	id := postN(t, b, 1)[0].ID
	size := func(to job.Priority) int {
		t.Helper()
		e, ok := b.index.Get(id)
		if !ok || e.Priority != to || ownPriority(e) != job.Normal {
			t.Fatalf("%+v; want priority %v, posted as %v", e, to, job.Normal)
		}
		return len(e.Extra)
	}
	change := func(to job.Priority) {
		t.Helper()
		if got, err := b.SetPriority(t.Context(), []job.ID{id}, to); err != nil || !got[0].Changed {
			t.Fatal(got, err)
		}
	}
	change(job.High)
	want := size(job.High)
	change(job.Low)
	ref := refOf(b, claimOne(t, b, ClaimRequest{}))
	for range 10 {
		if _, err := b.AppendLog(t.Context(), LogRequest{Ref: ref, Entries: []job.LogEntry{{Message: "x"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := size(job.Low); got != want {
		t.Errorf("what the entry says besides has %d bytes, want %d", got, want)
	}
	change(job.Normal)
	size(job.Normal)
}
