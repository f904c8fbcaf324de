package board

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// TestWaitingBeforeTheIndex looks at a job that waits before the index knows it, as happens
// between the two steps of a post: it is looked at again, and one that is gone is not.
func TestWaitingBeforeTheIndex(t *testing.T) {
	t.Parallel()
	d, err := memdriver.Program().Open(t.Context(), driver.Config{Settings: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	opened, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	first, second, gone := job.ID{1}, job.ID{2}, job.ID{3}
	post := driver.Op{Kind: driver.Post, Posting: &driver.Posting{ID: second, Name: "second"}, Hold: &driver.Hold{Always: true}, Request: [16]byte{1}}
	if r := d.Apply(t.Context(), "b", []driver.Op{post}); r[0].Kind != job.NoKind {
		t.Fatal(r[0])
	}
	b := New(d, Spec{Name: "b", Key: "b"})
	for _, id := range []job.ID{second, gone} {
		b.waiting.add(id, []job.Prerequisite{{ID: first}})
	}
	done, _, again, err := b.judgeWaiting(t.Context(), &opened, []job.ID{second, gone})
	if err != nil || len(done) > 0 || !slices.Equal(again, []job.ID{second}) {
		t.Errorf("let go %v, to be looked at again %v, %v; want none, and the second job", done, again, err)
	}
	if !b.waiting.awaited(first) {
		t.Error("it is forgotten that the second job waits for the first")
	}
	b.waiting.drop(second)
	if b.waiting.awaited(first) {
		t.Error("a job that is gone is said to wait still")
	}
}

// TestDoneOnASharedBoard: where other programs write, a job that is said to be done may yet be
// given back; where nobody but boardd does, what waits for it goes on at once.
func TestDoneOnASharedBoard(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]driver.Capabilities{"alone": {Shared: true, Alone: true}, "with others": {Shared: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := memdriver.Program().Open(t.Context(), driver.Config{Settings: []byte("{}")})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
				t.Fatal(err)
			}
			first, second := job.ID{1}, job.ID{2}
			ops := []driver.Op{
				{Kind: driver.Post, Posting: &driver.Posting{ID: first, Name: "first"}, Request: [16]byte{1}},
				{Kind: driver.Post, Posting: &driver.Posting{ID: second, Name: "second"}, Hold: &driver.Hold{Always: true}, Request: [16]byte{2}},
				{Kind: driver.Remove, Job: first, Request: [16]byte{3}, Ending: &driver.Ending{Outcome: job.Consumed}},
			}
			for i, r := range d.Apply(t.Context(), "b", ops) {
				if r.Kind != job.NoKind {
					t.Fatalf("op %d: %+v", i, r)
				}
			}
			b := New(d, Spec{Name: "b", Key: "b"})
			after := []job.Prerequisite{{ID: first}}
			records, err := b.read(t.Context(), []job.ID{second}, 0)
			if err != nil {
				t.Fatal(err)
			}
			b.index.Put(b.entryWith(&records[0], &record.Extra{After: after}, time.Now()))
			done, _, again, err := b.judgeWaiting(t.Context(), &driver.BoardStatus{Capabilities: caps}, []job.ID{second})
			if err != nil {
				t.Fatal(err)
			}
			if now := len(done) == 1; now != caps.Alone || now == (len(again) == 1) {
				t.Errorf("let go %v, to be looked at again %v", done, again)
			}
		})
	}
}

func endJob(t *testing.T, b *Board, id job.ID) {
	t.Helper()
	wantKind(t, one(b.Consume(t.Context(), []Ref{takeJob(t, b, id)})), job.NoKind)
}

// TestArchivedJobsAreNotLetGo: a job that waited for others and is left between the two steps of
// Archive stays held until the call is made again, on this host and on one that starts later.
func TestArchivedJobsAreNotLetGo(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(t *testing.T, b *Board, first, second job.ID){
		"it ran": func(t *testing.T, b *Board, first, second job.ID) {
			t.Helper()
			endJob(t, b, first)
			time.Sleep(time.Second) // it is let go
			c := claimOne(t, b, ClaimRequest{IDs: []job.ID{second}})
			wantKind(t, one(b.Trash(t.Context(), []Ref{refOf(b, c)}, nil, "")), job.NoKind)
		},
		"it still waited": func(t *testing.T, b *Board, first, second job.ID) {
			t.Helper()
			wantKind(t, one(b.Trash(t.Context(), nil, []job.ID{second}, "")), job.NoKind)
			endJob(t, b, first)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				var away atomic.Bool
				away.Store(true)
				s := &spy{Driver: openStore(t), t: t}
				s.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
					if away.Load() && ops[0].Kind == driver.Remove && ops[0].Ending != nil && ops[0].Ending.Outcome == job.Failed {
						return []driver.Result{{Kind: job.Unavailable, Message: "the store is away"}}
					}
					return next(ctx, ops)
				}
				b := start(t, s, Spec{})
				first := post(t, b, job.Posting{Name: "first"})[0].ID
				second := post(t, b, job.Posting{Name: "second", After: []job.Prerequisite{{ID: first}}})[0].ID
				before(t, b, first, second)
				wantKind(t, one(b.Archive(t.Context(), []job.ID{second})), job.Unavailable)
				for _, at := range []*Board{b, start(t, s, Spec{})} {
					time.Sleep(time.Minute)
					if got := claim(t, at, ClaimRequest{}); len(got) > 0 {
						t.Fatalf("a job that is being archived was given to a worker: %+v", got[0].Job)
					}
				}
				away.Store(false)
				wantKind(t, one(b.Archive(t.Context(), []job.ID{second})), job.NoKind)
				if got := get(t, b, second); got.State != job.Complete || got.Outcome != job.Failed {
					t.Errorf("archived at last, it is %v %v", got.State, got.Outcome)
				}
			})
		})
	}
}

// TestArchivedJobThatGotAway: a job that somebody lets go between the two steps of Archive is not
// said to be archived.
func TestArchivedJobThatGotAway(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]driver.Op{
		"let go":       {Kind: driver.Update, Hold: &driver.Hold{}, Request: [16]byte{1}},
		"in the trash": {Kind: driver.Trash, Precondition: driver.Free, Request: [16]byte{2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &spy{Driver: openStore(t), t: t}
			s.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
				results := next(ctx, ops)
				if ops[0].Kind == driver.Restore {
					then.Job = ops[0].Job
					if r := next(ctx, []driver.Op{then}); r[0].Kind != job.NoKind {
						t.Error(r[0])
					}
				}
				return results
			}
			b := start(t, s, Spec{})
			id := postN(t, b, 1)[0].ID
			wantKind(t, one(b.Trash(t.Context(), nil, []job.ID{id}, "")), job.NoKind)
			wantKind(t, one(b.Archive(t.Context(), []job.ID{id})), job.NotEligible)
			if got := get(t, b, id); got.State == job.Complete {
				t.Errorf("it has ended: %v", got.Outcome)
			}
		})
	}
}

// TestPostedAgainWithOtherPrerequisites: a job that is posted anew under its uuid is let go when
// what it waits for now has ended, not what it waited for before.
func TestPostedAgainWithOtherPrerequisites(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		b, other := start(t, d, Spec{}), start(t, d, Spec{})
		jobs := postN(t, b, 2)
		wrong, right, id := jobs[0].ID, jobs[1].ID, job.ID{15: 9}
		waits := func(on job.ID) job.Posting {
			return job.Posting{ID: id, Name: "waits", After: []job.Prerequisite{{ID: on}}}
		}
		post(t, b, waits(wrong))
		synctest.Wait()
		if _, err := b.Cancel(t.Context(), []job.ID{id}, false); err != nil {
			t.Fatal(err)
		}
		wantKind(t, one(b.Purge(t.Context(), []job.ID{id})), job.NoKind)
		post(t, b, waits(right))
		synctest.Wait()
		if !b.waiting.awaited(right) || !other.waiting.awaited(right) {
			t.Error("nobody is known to wait for the second job")
		}
		endJob(t, b, right)
		time.Sleep(time.Minute)
		for _, at := range []*Board{b, other} {
			if get(t, at, id).Held {
				t.Error("it is held though what it waits for has ended")
			}
		}
		if b.waiting.awaited(wrong) || other.waiting.awaited(wrong) {
			t.Error("it is said to wait still for what it waited for before")
		}
	})
}
