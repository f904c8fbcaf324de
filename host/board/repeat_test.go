package board

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// meanwhile is what may happen to a job between an acknowledged abandon and its repetition.
var meanwhile = map[string]func(t *testing.T, b *Board, id job.ID){
	"nothing": func(*testing.T, *Board, job.ID) {},
	"claimed": func(t *testing.T, b *Board, id job.ID) { takeJob(t, b, id) },
	"claimed and canceled": func(t *testing.T, b *Board, id job.ID) {
		takeJob(t, b, id)
		if changes, err := b.Cancel(t.Context(), []job.ID{id}, true); err != nil || !changes[0].Changed {
			t.Fatal(changes, err)
		}
	},
	"canceled and given back": func(t *testing.T, b *Board, id job.ID) {
		r := takeJob(t, b, id)
		if _, err := b.Cancel(t.Context(), []job.ID{id}, true); err != nil {
			t.Fatal(err)
		}
		wantKind(t, one(b.Abandon(t.Context(), []Ref{r}, AbandonOptions{})), job.NoKind)
	},
	"consumed": func(t *testing.T, b *Board, id job.ID) {
		wantKind(t, one(b.Consume(t.Context(), []Ref{takeJob(t, b, id)})), job.NoKind)
	},
	"consumed and purged": func(t *testing.T, b *Board, id job.ID) {
		wantKind(t, one(b.Consume(t.Context(), []Ref{takeJob(t, b, id)})), job.NoKind)
		wantKind(t, one(b.Purge(t.Context(), []job.ID{id})), job.NoKind)
	},
	"failed": func(t *testing.T, b *Board, id job.ID) {
		wantKind(t, one(b.ConsumeAs(t.Context(), []Ref{takeJob(t, b, id)}, job.Failed)), job.NoKind)
	},
	"set aside": func(t *testing.T, b *Board, id job.ID) {
		wantKind(t, one(b.Trash(t.Context(), []Ref{takeJob(t, b, id)}, nil, "")), job.NoKind)
	},
	"abandoned by all the others": func(t *testing.T, b *Board, id job.ID) {
		for get(t, b, id).State != job.Trashed {
			wantKind(t, one(b.Abandon(t.Context(), []Ref{takeJob(t, b, id)}, AbandonOptions{})), job.NoKind)
		}
	},
	"abandoned by all the others, and restored": func(t *testing.T, b *Board, id job.ID) {
		for get(t, b, id).State != job.Trashed {
			wantKind(t, one(b.Abandon(t.Context(), []Ref{takeJob(t, b, id)}, AbandonOptions{})), job.NoKind)
		}
		wantKind(t, one(b.Restore(t.Context(), []job.ID{id})), job.NoKind)
	},
}

// recordOf returns what the store has of a job, but for how long its lease still runs.
func recordOf(t *testing.T, b *Board, id job.ID) driver.Record {
	t.Helper()
	records, err := b.read(t.Context(), []job.ID{id}, driver.Details)
	if err != nil {
		t.Fatal(err)
	}
	if h := records[0].Holder; h != nil {
		h.Remaining = 0
	}
	return records[0]
}

// takeJob claims a job, which is put back onto the board first if it is in the
// trash.
func takeJob(t *testing.T, b *Board, id job.ID) Ref {
	t.Helper()
	if get(t, b, id).State == job.Trashed {
		wantKind(t, one(b.Restore(t.Context(), []job.ID{id})), job.NoKind)
	}
	return refOf(b, claimOne(t, b, ClaimRequest{Owner: "another", IDs: []job.ID{id}}))
}

// An ending that was acknowledged answers as it first did, whatever has become of its
// job since: what the call would do to the job of today is not what it did.
func TestEndingsRepeatedLater(t *testing.T) {
	t.Parallel()
	endings := map[string]func(b *Board, r Ref) error{
		"abandon": func(b *Board, r Ref) error { return one(b.Abandon(t.Context(), []Ref{r}, AbandonOptions{})) },
		"refund": func(b *Board, r Ref) error {
			return one(b.Abandon(t.Context(), []Ref{r}, AbandonOptions{RefundAttempt: true}))
		},
		"trash": func(b *Board, r Ref) error { return one(b.Trash(t.Context(), []Ref{r}, nil, "")) },
	}
	for limit := range int32(3) {
		b := start(t, openStore(t), Spec{Retry: Retry{MaxAttempts: limit}})
		for name, end := range endings {
			for what, happens := range meanwhile {
				if limit == 0 && (what == "abandoned by all the others" || what == "abandoned by all the others, and restored") {
					continue // they never end
				}
				t.Run(fmt.Sprintf("limit %d/%s/%s", limit, name, what), func(t *testing.T) {
					id := postN(t, b, 1)[0].ID
					r := refOf(b, claimOne(t, b, ClaimRequest{IDs: []job.ID{id}}))
					wantKind(t, end(b, r), job.NoKind)
					happens(t, b, id)
					before, stale := recordOf(t, b, id), b.metrics.StaleTokens.Load()
					for range 2 {
						wantKind(t, end(b, r), job.NoKind)
					}
					if diff := cmp.Diff(before, recordOf(t, b, id)); diff != "" {
						t.Errorf("the repetition changed the job: %s", diff)
					}
					if n := b.metrics.StaleTokens.Load(); n != stale {
						t.Errorf("%d repetitions count as refused for their tokens", n-stale)
					}
				})
			}
		}
	}
}

// A token that ended its claim in one way did not end it in another, whoever had the job since,
// and also where that claim was the job's last attempt. It is told how it did.
func TestOtherEndingsLater(t *testing.T) {
	t.Parallel()
	abandon := func(b *Board, r Ref) error { return one(b.Abandon(t.Context(), []Ref{r}, AbandonOptions{})) }
	trash := func(b *Board, r Ref) error { return one(b.Trash(t.Context(), []Ref{r}, nil, "")) }
	later := []func(b *Board, id job.ID){
		func(*Board, job.ID) {},
		func(b *Board, id job.ID) { wantKind(t, one(b.Restore(t.Context(), []job.ID{id})), job.NoKind) },
		func(b *Board, id job.ID) { wantKind(t, abandon(b, takeJob(t, b, id)), job.NoKind) },
		func(b *Board, id job.ID) { takeJob(t, b, id) },
		func(b *Board, id job.ID) {
			wantKind(t, one(b.Release(t.Context(), []job.ID{id}, "", "")), job.NoKind)
			wantKind(t, one(b.Trash(t.Context(), nil, []job.ID{id}, "")), job.NoKind)
			wantKind(t, one(b.Purge(t.Context(), []job.ID{id})), job.NoKind)
		},
	}
	for _, limits := range [][2]int32{{1, 0}, {0, 1}} { // of the board, and of the job
		b := start(t, openStore(t), Spec{Retry: Retry{MaxAttempts: limits[0]}})
		for how, calls := range map[string][2]func(*Board, Ref) error{
			"its holder put the job into the trash":          {trash, abandon},
			"its holder gave up the last attempt at the job": {abandon, trash},
		} {
			id := post(t, b, job.Posting{Name: "job", MaxAttempts: limits[1]})[0].ID
			r := refOf(b, claimOne(t, b, ClaimRequest{IDs: []job.ID{id}}))
			wantKind(t, calls[0](b, r), job.NoKind)
			for n, happens := range later {
				happens(b, id)
				want := job.LeaseLost
				if n == len(later)-1 {
					want = job.NotFound
				}
				if err := calls[1](b, r); job.KindOf(err) != want || !strings.HasSuffix(err.Error(), how) {
					t.Errorf("the other ending, %d: got %v, want %v: %s", n, err, want, how)
				}
				wantKind(t, calls[0](b, r), job.NoKind)
			}
		}
	}
}

// Many workers abandon what they claim and repeat each abandon at once, while
// others claim the same jobs.
func TestAbandonsRepeatedAmongOthers(t *testing.T) {
	t.Parallel()
	const jobs, workers, rounds = 4, 16, 40
	b := start(t, openStore(t), Spec{Retry: Retry{MaxAttempts: 3}})
	postN(t, b, jobs)
	zero := time.Duration(0)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for range rounds {
				claims, err := b.Claim(t.Context(), ClaimRequest{Owner: fmt.Sprint(w), Wait: time.Minute})
				if err != nil || len(claims.Claims) != 1 {
					t.Errorf("claim: %d, %v", len(claims.Claims), err)
					return
				}
				r := refOf(b, claims.Claims[0])
				for range 3 {
					if err := one(b.Abandon(t.Context(), []Ref{r}, AbandonOptions{RetryAfter: &zero})); err != nil {
						t.Errorf("an abandon, or its repetition: %v", err)
					}
				}
				if results, err := b.Get(t.Context(), []job.ID{r.ID}, GetOptions{}); err == nil && results[0].Job != nil && results[0].Job.State == job.Trashed {
					if _, err := b.Restore(t.Context(), []job.ID{r.ID}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
}

// A repeated request is answered with what it was given at first. That such a claim has
// lapsed meanwhile, and the job is free again, takes it from nobody.
func TestRepeatedClaimThatLapsed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		postN(t, b, 1)
		first := claimOne(t, b, ClaimRequest{Lease: time.Second, RequestID: "once"})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		again := claimOne(t, b, ClaimRequest{Lease: time.Second, RequestID: "once"})
		if again.Token != first.Token {
			t.Fatalf("the repeated request was given %v, and first %v", again.Token, first.Token)
		}
		if claims := claim(t, b, ClaimRequest{Lease: time.Second}); len(claims) != 1 {
			t.Fatalf("the job is free, and %d claims were given", len(claims))
		}
	})
}

// TestClaimTriedTwiceAtOnce has a request be tried again while its first try still waits:
// the first one, too, is answered with what the second one claimed, and claims nothing
// that nobody would be told of.
func TestClaimTriedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store := openStore(t)
		a, b := start(t, store, Spec{}), start(t, store, Spec{})
		ask := func(at *Board, name string) []job.Claim {
			r, err := at.Claim(t.Context(), ClaimRequest{Owner: "worker", Names: []string{name}, Wait: time.Minute, RequestID: "once"})
			if err != nil {
				t.Error(err)
			}
			return r.Claims
		}
		first := make(chan []job.Claim)
		go func() { first <- ask(a, "for the first") }()
		synctest.Wait()
		post(t, b, job.Posting{Name: "for the second"})
		second := ask(b, "for the second")
		post(t, b, job.Posting{Name: "for the first"})
		if got := <-first; len(got) != 1 || len(second) != 1 || got[0].Token != second[0].Token {
			t.Errorf("the first try was answered with %v, and the second one with %v: want the same claim", got, second)
		}
		if n := len(claim(t, b, ClaimRequest{})); n != 1 {
			t.Errorf("%d jobs are left to be claimed, want one", n)
		}
	})
}

// TestClaimOfManyRounds has a request that claims in several rounds be tried again after
// the first of them: no try is told of fewer jobs than were claimed in its name.
func TestClaimOfManyRounds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store := openStore(t)
		a, b := start(t, store, Spec{}), start(t, store, Spec{})
		postN(t, a, 4*firstRound)
		synctest.Wait()
		request := ClaimRequest{Owner: "worker", Max: 4 * firstRound, RequestID: "once"}
		counts := make(chan int)
		for _, at := range []*Board{a, b, a, b} {
			go func() {
				r, err := at.Claim(t.Context(), request)
				if err != nil {
					t.Error(err)
				}
				counts <- len(r.Claims)
			}()
		}
		first := <-counts
		for range 3 {
			if n := <-counts; n != first {
				t.Errorf("of four tries one was told of %d jobs, and another of %d", first, n)
			}
		}
		if n := len(claim(t, b, request)); n != first {
			t.Errorf("tried again, it is told of %d jobs, want %d", n, first)
		}
	})
}

// TestReleasedBetweenRounds has an operator break a claim while the call that got it goes
// on to claim more: its answer has that job once, and the job is there for the next call.
func TestReleasedBetweenRounds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var broken job.ID
		s := &spy{Driver: openStore(t), t: t}
		s.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			results := next(ctx, ops)
			if ops[0].Kind == driver.Claim && broken == (job.ID{}) {
				broken = results[0].Claims[0].Job
				next(ctx, []driver.Op{{Kind: driver.Release, Job: broken, Precondition: driver.Held, Event: job.Abandoned}})
				time.Sleep(time.Second) // the board is told
			}
			return results
		}
		b := start(t, s, Spec{})
		postN(t, b, firstRound+1)
		synctest.Wait()
		seen := map[job.ID]int{}
		for _, c := range claim(t, b, ClaimRequest{Max: 2 * firstRound}) {
			seen[c.ID]++
		}
		if len(seen) != firstRound+1 || seen[broken] != 1 {
			t.Errorf("the answer has %d jobs, and %d times the one whose claim was broken; want %d, and once", len(seen), seen[broken], firstRound+1)
		}
		if again := claimOne(t, b, ClaimRequest{}); again.ID != broken {
			t.Errorf("the next call got %v, want the job whose claim was broken", again.ID)
		}
	})
}

// TestClaimWithoutClosing has a driver that adds to an answer also after it was given
// again: a request is served in one round then, so that no try can be told of a part.
func TestClaimWithoutClosing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		s := &spy{Driver: openStore(t), t: t}
		s.open = func(_ driver.BoardSpec, status driver.BoardStatus) (driver.BoardStatus, error) {
			status.Capabilities.AnswersClose = false
			return status, nil
		}
		b := start(t, s, Spec{})
		postN(t, b, 3*firstRound)
		synctest.Wait()
		if n := len(claim(t, b, ClaimRequest{Max: 2 * firstRound, RequestID: "once"})); n != firstRound {
			t.Errorf("a request got %d jobs, want the %d of one round", n, firstRound)
		}
		if n := len(claim(t, b, ClaimRequest{Max: 2 * firstRound})); n != 2*firstRound {
			t.Errorf("a call without a request id got %d jobs, want %d", n, 2*firstRound)
		}
	})
}

// A last attempt that a server of an earlier version gave up is not marked in the store as given
// up: its repetition is known by the job's record.
func TestGivenUpByAnEarlierServer(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	earlier := &spy{Driver: store, t: t}
	earlier.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
		for i := range ops {
			if ops[i].Kind == driver.Trash {
				ops[i].Ending = nil
			}
		}
		return next(ctx, ops)
	}
	spec := Spec{Retry: Retry{MaxAttempts: 1}}
	old, b := start(t, earlier, spec), start(t, store, spec)
	abandon := func(at *Board, r Ref) error { return one(at.Abandon(t.Context(), []Ref{r}, AbandonOptions{})) }
	id := postN(t, old, 1)[0].ID
	r := refOf(old, claimOne(t, old, ClaimRequest{}))
	wantKind(t, abandon(old, r), job.NoKind)
	wantKind(t, abandon(b, r), job.NoKind)
	wantKind(t, one(b.Restore(t.Context(), []job.ID{id})), job.NoKind)
	takeJob(t, b, id)
	wantKind(t, abandon(b, r), job.NoKind)
	if got := get(t, b, id); got.State != job.Claimed {
		t.Errorf("the repetition left the job %v", got.State)
	}
}

// Of a store that does not tell the two apart, the job's record does.
func TestOtherEndingsByTheRecord(t *testing.T) {
	t.Parallel()
	s := &spy{Driver: openStore(t), t: t}
	s.open = func(_ driver.BoardSpec, status driver.BoardStatus) (driver.BoardStatus, error) {
		status.Capabilities.Endings = false
		return status, nil
	}
	s.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
		for i := range ops {
			if ops[i].Kind == driver.Trash && ops[i].Ending != nil {
				t.Errorf("a store that does not say that it knows of endings is given one: %+v", ops[i].Ending)
			}
		}
		return next(ctx, ops)
	}
	b := start(t, s, Spec{Retry: Retry{MaxAttempts: 1}})
	abandon := func(r Ref) error { return one(b.Abandon(t.Context(), []Ref{r}, AbandonOptions{})) }
	trash := func(r Ref) error { return one(b.Trash(t.Context(), []Ref{r}, nil, "")) }
	for name, calls := range map[string][2]func(Ref) error{"trash": {trash, abandon}, "abandon": {abandon, trash}} {
		id := postN(t, b, 1)[0].ID
		r := refOf(b, claimOne(t, b, ClaimRequest{IDs: []job.ID{id}}))
		wantKind(t, calls[0](r), job.NoKind)
		for _, later := range []func(){func() {}, func() { wantKind(t, abandon(takeJob(t, b, id)), job.NoKind) }, func() { takeJob(t, b, id) }} {
			later()
			if got := job.KindOf(calls[1](r)); got != job.LeaseLost {
				t.Errorf("the other ending after %s: got %v, want LEASE_LOST", name, got)
			}
			wantKind(t, calls[0](r), job.NoKind)
		}
	}
}
