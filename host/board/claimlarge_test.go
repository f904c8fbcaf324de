package board

import (
	"bytes"
	"testing"

	"github.com/boardd/boardd/sdk/job"
)

// TestClaimStaysWithinItsBytes claims large jobs: the answer holds fewer than
// asked for, and the next call goes on where it ended.
func TestClaimStaysWithinItsBytes(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	const jobs, size = 60, 1 << 20
	details := append(append([]byte(`{"x":"`), bytes.Repeat([]byte("x"), size)...), `"}`...)
	for range jobs {
		post(t, b, job.Posting{Name: "n", Details: details})
	}
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
