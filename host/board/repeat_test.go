package board

import (
	"fmt"
	"sync"
	"testing"
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

// A token that ended its claim in one way did not end it in another.
func TestOtherEndingsLater(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{Retry: Retry{MaxAttempts: 1}})
	abandon := func(r Ref) error { return one(b.Abandon(t.Context(), []Ref{r}, AbandonOptions{})) }
	trash := func(r Ref) error { return one(b.Trash(t.Context(), []Ref{r}, nil, "")) }
	restore := func(id job.ID) { wantKind(t, one(b.Restore(t.Context(), []job.ID{id})), job.NoKind) }
	for name, calls := range map[string][2]func(Ref) error{"trash": {trash, abandon}, "abandon": {abandon, trash}} {
		id := postN(t, b, 1)[0].ID
		r := refOf(b, claimOne(t, b, ClaimRequest{IDs: []job.ID{id}}))
		wantKind(t, calls[0](r), job.NoKind)
		for _, later := range []func(){func() {}, func() { restore(id) }, func() { takeJob(t, b, id) }} {
			later()
			if got := job.KindOf(calls[1](r)); got != job.LeaseLost {
				t.Errorf("the other ending after %s: got %v, want LEASE_LOST", name, got)
			}
			wantKind(t, calls[0](r), job.NoKind)
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
