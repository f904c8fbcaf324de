package board

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// TestClaimStaysWithinItsBytes claims large jobs: the answer holds fewer than
// asked for, and the next call goes on where it ended.
func TestClaimStaysWithinItsBytes(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	const jobs = 60
	postLarge(t, b, jobs)
	first, err := b.Claim(t.Context(), ClaimRequest{Owner: "o", Max: jobs})
	if err != nil || len(first.Claims) != firstRound {
		t.Fatalf("%d claims, %v; want the first %d and no more of this size", len(first.Claims), err, firstRound)
	}
	rest, err := b.Claim(t.Context(), ClaimRequest{Owner: "o", Max: jobs})
	if err != nil || len(rest.Claims) != jobs-firstRound {
		t.Fatalf("%d claims, %v; want the other %d", len(rest.Claims), err, jobs-firstRound)
	}
	postN(t, b, 200)
	small, err := b.Claim(t.Context(), ClaimRequest{Owner: "o", Max: 200})
	if err != nil || len(small.Claims) != 200 {
		t.Fatalf("%d claims of small jobs, %v; want all 200", len(small.Claims), err)
	}
}

// postLarge posts jobs of a MiB each.
func postLarge(t *testing.T, b *Board, n int) (ids []job.ID) {
	t.Helper()
	const size = 1 << 20
	details := append(append([]byte(`{"x":"`), bytes.Repeat([]byte("x"), size)...), `"}`...)
	for range n {
		ids = append(ids, post(t, b, job.Posting{Name: "n", Details: details})[0].ID)
	}
	return ids
}

// TestManyAreNamed: a claim may name as many jobs as a call has items, and repeated with its
// request id it answers the same.
func TestManyAreNamed(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	gone, theirs := job.ID{15: 1}, postN(t, b, 1)[0].ID
	claimOne(t, b, ClaimRequest{Owner: "they"})
	ids := []job.ID{gone}
	for _, j := range postN(t, b, MaxBatch-3) {
		ids = append(ids, j.ID)
	}
	ids = append(ids, theirs, ids[1])
	for _, request := range []string{"", "once", "once"} {
		r, err := b.Claim(t.Context(), ClaimRequest{Owner: "o", IDs: ids, RequestID: request})
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[job.ID]job.Kind{}
		for _, f := range r.Failures {
			kinds[f.ID] = job.KindOf(f.Err)
		}
		if len(r.Claims) != MaxBatch-3 || kinds[gone] != job.NotFound || kinds[theirs] != job.AlreadyClaimed {
			t.Fatalf("%q: %d claims, %v; want all but the two that nobody can have", request, len(r.Claims), r.Failures)
		}
		for i, c := range r.Claims {
			if c.ID != ids[i+1] || len(kinds) > 3 {
				t.Fatalf("%q: claim %d is of %v, want %v; %d failures", request, i, c.ID, ids[i+1], len(kinds))
			}
		}
		if request != "" {
			continue
		}
		refs := make([]Ref, len(r.Claims))
		for i, c := range r.Claims {
			refs[i] = refOf(b, c)
		}
		none := time.Duration(0)
		mustAll(t)(b.Abandon(t.Context(), refs, AbandonOptions{RetryAfter: &none}))
	}
}

// TestNamedStayWithinTheirBytes names large jobs: those that the answer has no room for are left
// for another call, and it says so.
func TestNamedStayWithinTheirBytes(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	const jobs = 40
	ids := postLarge(t, b, jobs)
	first, err := b.Claim(t.Context(), ClaimRequest{Owner: "o", IDs: append(slices.Clone(ids), job.ID{15: 1}), RequestID: "once"})
	if err != nil || len(first.Claims) != firstRound || len(first.Failures) != jobs-firstRound+1 {
		t.Fatalf("%d claims, %d failures, %v; want the first %d and no more of this size", len(first.Claims), len(first.Failures), err, firstRound)
	}
	for i, f := range first.Failures[:jobs-firstRound] {
		if f.ID != ids[firstRound+i] || job.KindOf(f.Err) != job.QuotaExceeded {
			t.Errorf("failure %d: %v %v", i, f.ID, f.Err)
		}
	}
	wantKind(t, first.Failures[jobs-firstRound].Err, job.NotFound)
	again, err := b.Claim(t.Context(), ClaimRequest{Owner: "o", IDs: ids, RequestID: "once"})
	if err != nil || len(again.Claims) != firstRound || len(again.Failures) != jobs-firstRound {
		t.Fatalf("repeated: %d claims, %d failures, %v", len(again.Claims), len(again.Failures), err)
	}
	wantKind(t, again.Failures[0].Err, job.NotEligible)
	if rest := claim(t, b, ClaimRequest{IDs: ids[firstRound:]}); len(rest) != jobs-firstRound {
		t.Errorf("another call got %d of the other %d", len(rest), jobs-firstRound)
	}
}
