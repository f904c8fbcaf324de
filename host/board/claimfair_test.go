package board

import (
	"sync"
	"testing"

	"github.com/boardd/boardd/sdk/job"
)

// TestNobodyGoesShort has many callers each post some jobs and claim as many: as
// there are always enough for all, nobody may get fewer, though every job is in
// somebody's hands most of the time.
func TestNobodyGoesShort(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	const each = 32
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for range 10 {
				if _, err := b.Post(t.Context(), postingsOf(each)); err != nil {
					t.Error(err)
					return
				}
				r, err := b.Claim(t.Context(), ClaimRequest{Owner: "o", Max: each})
				if err != nil || len(r.Claims) != each {
					t.Errorf("%d claims of %d: %v", len(r.Claims), each, err)
					return
				}
				refs := make([]Ref, each)
				for i, c := range r.Claims {
					refs[i] = refOf(b, c)
				}
				if _, err := b.Consume(t.Context(), refs); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

func postingsOf(n int) []job.Posting {
	postings := make([]job.Posting, n)
	for i := range postings {
		postings[i].Name = "n"
	}
	return postings
}
