package board

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// The rules for a wrong claim, for every call that takes one.
func TestWrongClaims(t *testing.T) {
	t.Parallel()
	zero := time.Duration(0)
	calls := map[string]func(b *Board, r Ref) error{
		"consume": func(b *Board, r Ref) error { return one(b.Consume(t.Context(), []Ref{r})) },
		"abandon": func(b *Board, r Ref) error {
			return one(b.Abandon(t.Context(), []Ref{r}, AbandonOptions{RetryAfter: &zero}))
		},
		"trash": func(b *Board, r Ref) error { return one(b.Trash(t.Context(), []Ref{r}, nil, "bad")) },
		"extend": func(b *Board, r Ref) error {
			results, err := b.Extend(t.Context(), []Ref{r}, 0)
			if err != nil {
				return err
			}
			return results[0].Err
		},
	}
	tests := []struct {
		name  string
		fence bool // by owner
		ref   func(w *wrongClaims) Ref
		want  job.Kind
		owner string // in the error
	}{
		{"right", false, func(w *wrongClaims) Ref { return Ref{w.held.ID, "me", w.held.Token} }, job.NoKind, ""},
		{"without owner", false, func(w *wrongClaims) Ref { return Ref{w.held.ID, "", w.held.Token} }, job.NoKind, ""},
		{"another owner", false, func(w *wrongClaims) Ref { return Ref{w.held.ID, "you", w.held.Token} }, job.NotOwner, "me"},
		{"no token", false, func(w *wrongClaims) Ref { return Ref{w.held.ID, "me", ""} }, job.Invalid, ""},
		{"malformed token", false, func(w *wrongClaims) Ref { return Ref{w.held.ID, "me", "x"} }, job.NotOwner, ""},
		{"another job's token", false, func(w *wrongClaims) Ref { return Ref{w.held.ID, "me", w.other.Token} }, job.NotOwner, ""},
		{"an earlier claim's token", false, func(w *wrongClaims) Ref { return Ref{w.held.ID, "me", w.old.Token} }, job.LeaseLost, "me"},
		{"released", false, func(w *wrongClaims) Ref { return Ref{w.released.ID, "me", w.released.Token} }, job.LeaseLost, ""},
		{"never seen", false, func(w *wrongClaims) Ref { return Ref{job.ID{99}, "me", w.never} }, job.NotFound, ""},
		{"ended by somebody else", false, func(w *wrongClaims) Ref { return Ref{w.ended.ID, "me", w.endedOld.Token} }, job.NotFound, ""},
		{"in the trash", false, func(w *wrongClaims) Ref { return Ref{w.trashed.ID, "me", w.trashed.Token} }, job.LeaseLost, ""},

		{"by owner", true, func(w *wrongClaims) Ref { return Ref{w.held.ID, "me", ""} }, job.NoKind, ""},
		{"by owner, held by another", true, func(w *wrongClaims) Ref { return Ref{w.held.ID, "you", ""} }, job.NotOwner, "me"},
		{"by owner, held by nobody", true, func(w *wrongClaims) Ref { return Ref{w.released.ID, "me", ""} }, job.NotClaimed, ""},
		{"by owner, never seen", true, func(*wrongClaims) Ref { return Ref{job.ID{99}, "me", ""} }, job.NotFound, ""},
		{"by owner, ended", true, func(w *wrongClaims) Ref { return Ref{w.ended.ID, "me", ""} }, job.NotFound, ""},
		{"by nothing", true, func(w *wrongClaims) Ref { return Ref{w.held.ID, "", ""} }, job.Invalid, ""},
		{"by owner's token", true, func(w *wrongClaims) Ref { return Ref{w.held.ID, "me", w.held.Token} }, job.NoKind, ""},
		{"by an earlier token", true, func(w *wrongClaims) Ref { return Ref{w.held.ID, "me", w.old.Token} }, job.LeaseLost, "me"},
	}
	for _, tt := range tests {
		for name, call := range calls {
			t.Run(fmt.Sprintf("%v/%s/%s", tt.fence, tt.name, name), func(t *testing.T) {
				t.Parallel()
				w := newWrongClaims(t, tt.fence)
				err := call(w.b, tt.ref(w))
				wantKind(t, err, tt.want)
				var e *job.Error
				if tt.owner != "" && (!errors.As(err, &e) || e.Owner != tt.owner) {
					t.Fatalf("the error %v does not name the owner %s", err, tt.owner)
				}
				// Whatever was refused changed nothing.
				if got := get(t, w.b, w.held.ID); tt.want != job.NoKind && (got.State != job.Claimed || got.Owner != "me") {
					t.Fatalf("%+v", got)
				}
			})
		}
	}
}

// wrongClaims is a board with claims in every state.
type wrongClaims struct {
	b                                                    *Board
	held, old, other, released, ended, endedOld, trashed Ref
	never                                                string
}

func newWrongClaims(t *testing.T, fence bool) *wrongClaims {
	t.Helper()
	b := start(t, openStore(t), Spec{FenceByOwner: fence})
	w := &wrongClaims{b: b}
	jobs := postN(t, b, 5)
	take := func(i int) Ref {
		return refOf(b, claimOne(t, b, ClaimRequest{Owner: "me", IDs: []job.ID{jobs[i].ID}}))
	}
	release := func(r Ref) { wantKind(t, one(b.Release(t.Context(), []job.ID{r.ID}, "", "by a person")), job.NoKind) }
	w.old = take(0)
	release(w.old)
	w.held = take(0)
	w.other = take(1)
	w.released = take(2)
	release(w.released)
	w.endedOld = take(3)
	release(w.endedOld)
	w.ended = take(3)
	wantKind(t, one(b.Consume(t.Context(), []Ref{w.ended})), job.NoKind)
	w.trashed = take(4)
	release(w.trashed)
	wantKind(t, one(b.Trash(t.Context(), nil, []job.ID{w.trashed.ID}, "")), job.NoKind)
	w.never = b.FormatToken(job.ID{99}, job.Token{Generation: 1, Epoch: 1, Nonce: [16]byte{1}})
	return w
}

// Repeated with the same token each ending answers as it first did, and another
// ending does not.
func TestEndingsRepeated(t *testing.T) {
	t.Parallel()
	for _, limit := range []int32{0, 1} {
		t.Run(fmt.Sprintf("maxAttempts=%d", limit), func(t *testing.T) {
			t.Parallel()
			b := start(t, openStore(t), Spec{Retry: Retry{MaxAttempts: limit}})
			calls := map[string]func(r Ref) error{
				"consume": func(r Ref) error { return one(b.Consume(t.Context(), []Ref{r})) },
				"abandon": func(r Ref) error { return one(b.Abandon(t.Context(), []Ref{r}, AbandonOptions{Reason: "no"})) },
				"trash":   func(r Ref) error { return one(b.Trash(t.Context(), []Ref{r}, nil, "no")) },
			}
			for name, call := range calls {
				postN(t, b, 1)
				c := claimOne(t, b, ClaimRequest{})
				r := refOf(b, c)
				wantKind(t, call(r), job.NoKind)
				before := get(t, b, c.ID)
				for range 2 {
					wantKind(t, call(r), job.NoKind)
				}
				if after := get(t, b, c.ID); after.State != before.State || !after.ModifiedAt.Equal(before.ModifiedAt) || len(after.Reasons) != len(before.Reasons) {
					t.Errorf("%s repeated changed something: %+v, %+v", name, before, after)
				}
				for other, call := range calls {
					if other != name {
						if got := job.KindOf(call(r)); got != job.LeaseLost {
							t.Errorf("%s after %s: got %v, want LEASE_LOST", other, name, got)
						}
					}
				}
				if before.State == job.Unclaimed {
					wantKind(t, one(b.Trash(t.Context(), nil, []job.ID{c.ID}, "")), job.NoKind)
				}
			}
		})
	}
}

func TestAbandon(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Retry: Retry{MaxAttempts: 4, Backoff: 10 * time.Second, MaxBackoff: 25 * time.Second}})
		id := postN(t, b, 1)[0].ID
		abandon := func(o AbandonOptions) *job.Job {
			t.Helper()
			c := claimOne(t, b, ClaimRequest{Wait: time.Minute})
			wantKind(t, one(b.Abandon(t.Context(), []Ref{refOf(b, c)}, o)), job.NoKind)
			return get(t, b, id)
		}
		wait := func(j *job.Job) time.Duration {
			if j.NotBefore.IsZero() {
				return 0
			}
			return time.Until(j.NotBefore).Round(time.Millisecond)
		}
		if j := abandon(AbandonOptions{Reason: "first"}); wait(j) != 10*time.Second || j.Attempt != 1 || j.LastReason != "first" {
			t.Fatalf("%+v", j)
		}
		if j := abandon(AbandonOptions{RefundAttempt: true}); j.Attempt != 1 || j.LastReason != "abandoned by worker" {
			t.Fatalf("%+v", j)
		}
		if j := abandon(AbandonOptions{}); wait(j) != 20*time.Second || j.Attempt != 2 {
			t.Fatalf("%v %+v", wait(j), j)
		}
		if j := abandon(AbandonOptions{}); wait(j) != 25*time.Second || j.Attempt != 3 {
			t.Fatalf("%v %+v", wait(j), j)
		}
		zero, later := time.Duration(0), 7*time.Second
		if j := abandon(AbandonOptions{RetryAfter: &zero, RefundAttempt: true}); wait(j) != 0 {
			t.Fatalf("%v %+v", wait(j), j)
		}
		if j := abandon(AbandonOptions{RetryAfter: &later, RefundAttempt: true}); wait(j) != 7*time.Second {
			t.Fatalf("%v %+v", wait(j), j)
		}
		j := abandon(AbandonOptions{Reason: "the last"})
		if j.State != job.Trashed || j.Attempt != 4 || len(j.Reasons) != 7 || j.LastReason != "the last" {
			t.Fatalf("%+v", j)
		}
		negative := -time.Second
		_, err := b.Abandon(t.Context(), nil, AbandonOptions{RetryAfter: &negative})
		wantKind(t, err, job.Invalid)

		// From the trash its attempts start anew; the history stays.
		wantKind(t, one(b.Restore(t.Context(), []job.ID{id})), job.NoKind)
		if j := get(t, b, id); j.State != job.Unclaimed || j.Attempt != 0 || len(j.Reasons) != 7 {
			t.Fatalf("%+v", j)
		}
		if c := claimOne(t, b, ClaimRequest{}); c.Attempt != 1 {
			t.Fatalf("%+v", c)
		}
	})
}

func TestTrashRestorePurge(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	jobs := postN(t, b, 3)
	c := claimOne(t, b, ClaimRequest{IDs: []job.ID{jobs[1].ID}})
	errs, err := b.Trash(t.Context(), []Ref{refOf(b, c)}, []job.ID{jobs[0].ID, jobs[1].ID, {99}}, "broken")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []job.Kind{job.NoKind, job.NoKind, job.NotFound, job.NotFound} {
		if got := job.KindOf(errs[i]); got != want {
			t.Errorf("item %d: got %v, want %v", i, errs[i], want)
		}
	}
	held := claimOne(t, b, ClaimRequest{})
	wantKind(t, one(b.Trash(t.Context(), nil, []job.ID{held.ID}, "")), job.AlreadyClaimed)
	if got := get(t, b, jobs[1].ID); got.State != job.Trashed || got.LastReason != "broken" || string(got.Details) != "{}" {
		t.Fatalf("%+v", got)
	}
	if counts, _ := b.Count(t.Context()); counts.Trashed != 2 || counts.Claimed != 1 || counts.Ready != 0 {
		t.Fatalf("%+v", counts)
	}
	wantKind(t, one(b.Restore(t.Context(), []job.ID{jobs[1].ID})), job.NoKind)
	wantKind(t, one(b.Restore(t.Context(), []job.ID{jobs[1].ID})), job.AlreadyExists)
	wantKind(t, one(b.Restore(t.Context(), []job.ID{{99}})), job.NotFound)
	wantKind(t, one(b.Purge(t.Context(), []job.ID{jobs[1].ID})), job.NotEligible)
	wantKind(t, one(b.Purge(t.Context(), []job.ID{jobs[0].ID})), job.NoKind)
	results, err := b.Get(t.Context(), []job.ID{jobs[0].ID}, GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, results[0].Err, job.NotFound)
	wantKind(t, one(b.Restore(t.Context(), []job.ID{jobs[0].ID})), job.NotFound)
	if c := claimOne(t, b, ClaimRequest{}); c.ID != jobs[1].ID {
		t.Fatalf("%+v", c)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	id := postN(t, b, 1)[0].ID
	wantKind(t, one(b.Release(t.Context(), []job.ID{id}, "", "x")), job.NotClaimed)
	wantKind(t, one(b.Release(t.Context(), []job.ID{{99}}, "", "x")), job.NotFound)
	c := claimOne(t, b, ClaimRequest{})
	wantKind(t, one(b.Release(t.Context(), []job.ID{id}, "another", "x")), job.NotOwner)
	wantKind(t, one(b.Release(t.Context(), []job.ID{id}, "worker", "it hangs")), job.NoKind)
	wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.LeaseLost)
	if got := get(t, b, id); got.State != job.Unclaimed || got.LastReason != "it hangs" {
		t.Fatalf("%+v", got)
	}
	claimOne(t, b, ClaimRequest{})
}

func TestExtend(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Lease: 10 * time.Second, MaxLease: time.Minute})
		id := postN(t, b, 1)[0].ID
		c := claimOne(t, b, ClaimRequest{})
		for range 5 {
			time.Sleep(8 * time.Second)
			results, err := b.Extend(t.Context(), []Ref{refOf(b, c)}, 0)
			if err != nil || results[0].Err != nil || results[0].Lease != 10*time.Second || !results[0].LeaseExpiresAt.Equal(time.Now().Add(10*time.Second)) {
				t.Fatal(results, err)
			}
		}
		results, err := b.Extend(t.Context(), []Ref{refOf(b, c)}, time.Hour)
		if err != nil || results[0].Lease != time.Minute {
			t.Fatal(results, err)
		}
		for _, lease := range []time.Duration{-1, time.Millisecond, century} {
			_, err := b.Extend(t.Context(), []Ref{refOf(b, c)}, lease)
			wantKind(t, err, job.Invalid)
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if got := get(t, b, id); got.State != job.Claimed {
			t.Fatalf("%+v", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		results, _ = b.Extend(t.Context(), []Ref{refOf(b, c)}, 0)
		wantKind(t, results[0].Err, job.LeaseLost)
		if got := get(t, b, id); got.State != job.Unclaimed || got.Attempt != 1 {
			t.Fatalf("%+v", got)
		}
	})
}

// An abandon that is repeated when its job is long gone tells the index nothing: the
// store answers as it did the first time, and what has become of the job since, the
// index may have heard and forgotten.
func TestRepeatedAbandonOfAnEndedJob(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store := openStore(t)
		b := start(t, store, Spec{})
		postN(t, b, 1)
		first := claimOne(t, b, ClaimRequest{})
		abandon := func(b *Board) {
			t.Helper()
			now := time.Duration(0)
			if errs, err := b.Abandon(t.Context(), []Ref{refOf(b, first)}, AbandonOptions{RetryAfter: &now}); err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
		}
		abandon(b)
		second := claimOne(t, b, ClaimRequest{})
		if errs, err := b.Consume(t.Context(), []Ref{refOf(b, second)}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		// After a restart, and while others are busy: between the store's answer and
		// the index much is heard of other jobs.
		watcher := &spy{Driver: store, t: t}
		again := start(t, watcher, Spec{})
		synctest.Wait()
		watcher.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			results := next(ctx, ops)
			if ops[0].Kind == driver.Release {
				again.index.Forget(1 << 40) // all of it is known by now
			}
			return results
		}
		abandon(again)
		synctest.Wait()
		if n, err := again.Count(t.Context()); err != nil || n.Ready+n.Delayed != 0 {
			t.Errorf("counts %+v, %v: want no unclaimed job", n, err)
		}
		if page, err := again.List(t.Context(), ListRequest{}); err != nil || len(page.Jobs) != 0 {
			t.Errorf("%d jobs are listed, %v: want none", len(page.Jobs), err)
		}
	})
}

// TestRestoredForItsTime: what comes back from the trash waits for the time that it was posted for, if
// that is still to come, and not for a back-off.
func TestRestoredForItsTime(t *testing.T) {
	t.Parallel()
	const long = time.Hour
	ended := func(t *testing.T, b *Board, id job.ID) {
		t.Helper()
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, claimOne(t, b, ClaimRequest{IDs: []job.ID{id}}))})), job.NoKind)
	}
	for name, c := range map[string]struct {
		put  func(t *testing.T, b *Board) job.ID // a job that may go into the trash
		wait time.Duration                       // for which it waits afterwards
	}{
		"posted for later": {func(t *testing.T, b *Board) job.ID {
			return post(t, b, job.Posting{Name: "x", NotBefore: time.Now().Add(long)})[0].ID
		}, long},
		"its time has come": {func(t *testing.T, b *Board) job.ID {
			id := post(t, b, job.Posting{Name: "x", NotBefore: time.Now().Add(long)})[0].ID
			time.Sleep(long)
			return id
		}, 0},
		"abandoned for a while": {func(t *testing.T, b *Board) job.ID {
			id, wait := post(t, b, job.Posting{Name: "x"})[0].ID, long
			wantKind(t, one(b.Abandon(t.Context(), []Ref{refOf(b, claimOne(t, b, ClaimRequest{}))}, AbandonOptions{RetryAfter: &wait})), job.NoKind)
			return id
		}, 0},
		"posted for later, after another one": {func(t *testing.T, b *Board) job.ID {
			first := post(t, b, job.Posting{Name: "first"})[0].ID
			id := post(t, b, job.Posting{Name: "x", NotBefore: time.Now().Add(long), After: []job.Prerequisite{{ID: first}}})[0].ID
			ended(t, b, first)
			synctest.Wait()
			return id
		}, long},
	} {
		bubble(t, func(t *testing.T) {
			b := start(t, openStore(t), Spec{})
			id := c.put(t, b)
			wantKind(t, one(b.Trash(t.Context(), nil, []job.ID{id}, "by mistake")), job.NoKind)
			wantKind(t, one(b.Restore(t.Context(), []job.ID{id})), job.NoKind)
			if c.wait > 0 {
				if j := get(t, b, id); !j.NotBefore.Equal(time.Now().Add(c.wait)) || j.Held {
					t.Errorf("%s: restored it is %+v", name, j)
				}
				if claims := claim(t, b, ClaimRequest{}); len(claims) > 0 {
					t.Errorf("%s: it was claimed at once", name)
				}
				time.Sleep(c.wait)
			}
			if claimed := claimOne(t, b, ClaimRequest{Wait: time.Second}); claimed.ID != id {
				t.Errorf("%s: claimed is %v", name, claimed.ID)
			}
		})
	}
}
